"""Messages behind the port `MessageStore`: each method runs one script on one database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from nexo.config import Config
from nexo.core.model import (
    Draft,
    Message,
    OfflinePage,
    Page,
    Receipts,
)
from nexo.errors import NexoError
from nexo.metrics.families import Sample
from nexo.ports import Located, Permission, RecallResult
from nexo.store import history, listing, permission, recall
from nexo.store.committer import Committer
from nexo.store.database import Database
from nexo.store.engine import MakeScript, Script
from nexo.store.expiry import hide_expired, shown
from nexo.store.history import clamp_limit
from nexo.store.publish_seam import PublishSeam
from nexo.store.reader_view import complete
from nexo.store.replica import open_replica

T = TypeVar("T")


def _of_page(page: Page | OfflinePage) -> list[Message]:
    return page.messages


def _of_pair(found: tuple[list[Message], bool]) -> list[Message]:
    return found[0]


class SqlMessages:
    def __init__(
        self, database: Database, committer: Committer, seam: PublishSeam, config: Config, retention_ms: int
    ) -> None:
        self._database = database
        self._replica = open_replica(database, config)
        self._sql = database.sql
        self._seam = seam
        self.submit = committer.submit  # an attribute, not a method: this is the path of every send
        self.send = committer.send
        self._recall = config.recall
        self._contacts_only = config.policy.single_chat == "contacts"
        self._max_bytes = config.pull.max_bytes
        self._retention_ms = retention_ms

    async def _look(self, make: MakeScript[T], messages_of: Callable[[T], Iterable[Message]]) -> T:
        """Returns what a script reads, without the content of messages whose time is over."""
        return await self._database.look(lambda: shown(make(), messages_of, self._retention_ms))

    async def _page(self, user_id: str, conversation_id: str, make: MakeScript[Page]) -> Page:
        """As `_look`, for a page of one conversation, which may be read from a replica."""
        if self._replica is None:
            return await self._look(make, _of_page)
        return await self._replica.look(user_id, conversation_id, lambda: shown(make(), _of_page, self._retention_ms))

    def samples(self) -> Iterable[Sample]:
        if self._replica is not None:
            yield from self._replica.samples()

    async def close(self) -> None:
        if self._replica is not None:
            await self._replica.close()

    async def may_send(self, drafts: Sequence[Draft]) -> list[Permission]:
        contacts_only = self._contacts_only
        return await self._database.look(lambda: permission.may_send(self._sql, drafts, contacts_only=contacts_only))

    async def is_saved(self, sender_id: str, client_msg_id: str) -> bool:
        return await self._database.look(lambda: history.is_saved(sender_id, client_msg_id))

    async def pull(
        self, user_id: str, conversation_id: str, begin_seq: int, end_seq: int | None, limit: int | None
    ) -> Page:
        count = clamp_limit(limit)
        return await self._page(
            user_id,
            conversation_id,
            lambda: history.pull(self._sql, user_id, conversation_id, begin_seq, end_seq, count, self._max_bytes),
        )

    async def pull_seqs(self, user_id: str, conversation_id: str, seqs: Sequence[int]) -> Page:
        return await self._page(
            user_id,
            conversation_id,
            lambda: history.pull_seqs(self._sql, user_id, conversation_id, seqs, self._max_bytes),
        )

    async def history(self, user_id: str, conversation_id: str, before_seq: int | None, limit: int | None) -> Page:
        count = clamp_limit(limit)
        return await self._page(
            user_id,
            conversation_id,
            lambda: history.history(self._sql, user_id, conversation_id, before_seq, count, self._max_bytes),
        )

    async def last_messages(self, user_id: str, conversation_ids: Sequence[str]) -> tuple[list[Message], bool]:
        return await self._look(
            lambda: listing.last_messages(self._sql, user_id, conversation_ids, self._max_bytes), _of_pair
        )

    async def offline(
        self, user_id: str, cursor: str | None, limit: int | None, baselines: Mapping[str, int]
    ) -> OfflinePage:
        count = clamp_limit(limit)
        return await self._look(
            lambda: listing.offline(self._sql, user_id, cursor, count, baselines, self._max_bytes), _of_page
        )

    async def resend(
        self, user_id: str, kind: int, limit: int, baselines: Mapping[str, int]
    ) -> tuple[list[Message], bool]:
        return await self._look(lambda: listing.resend(self._sql, user_id, kind, limit, baselines), _of_pair)

    async def locate(self, server_msg_id: int) -> Located | None:
        found = await self._database.look(lambda: history.locate(server_msg_id))
        return None if found is None else Located(*found)

    async def last_by_author(self, conversation_id: str, low: int, high: int) -> dict[str, tuple[int, int]]:
        return await self._database.look(lambda: history.last_by_author(conversation_id, low, high))

    async def find(self, user_id: str, server_msg_id: int) -> Message:
        return await self._database.look(lambda: self._find(user_id, server_msg_id))

    def _find(self, user_id: str, server_msg_id: int) -> Script[Message]:
        message, view = yield from history.find_message(user_id, server_msg_id)
        yield from complete(self._sql, user_id, [message], {message.conversation_id: view.shown})
        yield from hide_expired([message], self._retention_ms)
        return message

    async def seq_of(self, user_id: str, conversation_id: str, server_msg_id: int) -> int:
        found = await self._database.look(lambda: history.find_message(user_id, server_msg_id, deleted_too=True))
        if found.message.conversation_id != conversation_id:
            raise NexoError("message_not_found")
        return found.message.seq

    async def receipts(self, user_id: str, server_msg_id: int) -> Receipts:
        return await self._database.look(lambda: history.receipts(user_id, server_msg_id))

    async def recall(self, user_id: str, server_msg_id: int) -> RecallResult:
        (event_id,) = self._database.ids.take(1)
        rules = self._recall
        done = await self._database.change_and_publish(
            lambda: recall.recall(
                self._sql, user_id, server_msg_id, event_id, rules.window_s, rules.admin, rules.keep_days > 0
            ),
            self._seam.recalled,
        )
        return RecallResult(*done)
