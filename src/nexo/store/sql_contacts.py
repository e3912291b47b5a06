"""Contacts behind the port `service.contacts.ContactStore`: each method runs one script on one database."""

from __future__ import annotations

from nexo.config import Config
from nexo.core import events
from nexo.core.people import Contact, ContactChange, ContactRequest
from nexo.ids import single_conversation_id
from nexo.store import contacts
from nexo.store.conversations import create_singles
from nexo.store.database import Database
from nexo.store.history import clamp_limit
from nexo.store.paging import encode_cursor, read_user_cursor
from nexo.store.publish_seam import PublishSeam


class SqlContacts:
    def __init__(self, database: Database, seam: PublishSeam, config: Config) -> None:
        self._database = database
        self._sql = database.sql
        self._seam = seam
        self._bounds = contacts.ContactBounds(config.contact.max, config.contact.max_requests)

    async def request(self, user_id: str, other_id: str, message: str) -> ContactChange:
        (request_id,) = self._database.ids.take(1)

        def publish(change: ContactChange | None) -> None:
            if change is None or not change.is_new:
                return
            if change.status == "pending":
                event = events.ContactRequested(change.request_id, user_id, change.message, change.at)
                self._seam.user_event([other_id], event)
                return
            self._contact_changed(user_id, other_id)
            for receiver, decider, number in (
                (other_id, user_id, change.crossed),
                (user_id, other_id, change.request_id),
            ):
                self._seam.user_event([receiver], events.ContactDecided(number, decider, True, change.at))

        chat = single_conversation_id(user_id, other_id)
        while True:
            done = await self._database.change_and_publish(
                lambda: contacts.request(self._sql, user_id, other_id, message, request_id, self._bounds), publish
            )
            if done is not None:
                return done
            await self._database.change(lambda: create_singles(self._sql, [chat]))

    async def decide(self, user_id: str, other_id: str, accept: bool) -> ContactChange:
        def publish(change: ContactChange) -> None:
            if accept:
                self._contact_changed(user_id, other_id)
            event = events.ContactDecided(change.request_id, user_id, accept, change.at)
            self._seam.user_event([other_id], event)

        memo: list[ContactChange] = []
        return await self._database.change_and_publish(
            lambda: contacts.decide(self._sql, user_id, other_id, accept, self._bounds, memo), publish
        )

    async def remove(self, user_id: str, other_id: str) -> None:
        memo: list[bool] = []
        await self._database.change_and_publish(
            lambda: contacts.remove(self._sql, user_id, other_id, memo),
            lambda _: self._contact_changed(user_id, other_id),
        )

    def _contact_changed(self, user_id: str, other_id: str) -> None:
        """Contacts may see each other's presence where strangers may not."""
        self._seam.audience_changed(single_conversation_id(user_id, other_id))

    async def set_remark(self, user_id: str, other_id: str, remark: str) -> Contact:
        return await self._database.change(lambda: contacts.set_remark(user_id, other_id, remark))

    async def contacts(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[Contact], str, bool]:
        after, count = read_user_cursor(cursor), clamp_limit(limit)
        found = await self._database.look(lambda: contacts.read_contacts(user_id, after, count + 1))
        has_more = len(found) > count
        return found[:count], encode_cursor(found[count - 1].user_id) if has_more else "", has_more

    async def requests(
        self, user_id: str, sent: bool, cursor: str | None, limit: int | None
    ) -> tuple[list[ContactRequest], str, bool]:
        after, count = read_user_cursor(cursor), clamp_limit(limit)
        found = await self._database.look(lambda: contacts.read_requests(user_id, sent, after, count + 1))
        has_more = len(found) > count
        return found[:count], encode_cursor(found[count - 1].user_id) if has_more else "", has_more
