"""Contacts: the shape of each request is checked here, the rest under the lock of the two users' chat."""

from __future__ import annotations

from typing import Protocol

from nexo.core.content import check_text
from nexo.core.people import Contact, ContactChange, ContactRequest
from nexo.errors import NexoError
from nexo.ids import check_user_id, is_reserved

MESSAGE_MAX_CHARS = 512
REMARK_MAX_CHARS = 128


class ContactStore(Protocol):
    """Contacts of two users at a time: changes of the same two happen one after the other. A contact belongs to
    both."""

    async def request(self, user_id: str, other_id: str, message: str) -> ContactChange:
        """Returns `pending`, or `accepted` when the other user has asked before, at the same moment included. Raises
        `user_not_found`, `blocked`, `too_many_contacts`. Repeated: the same request."""

    async def decide(self, user_id: str, other_id: str, accept: bool) -> ContactChange:
        """Raises `contact_request_not_found`, `user_not_found`, `too_many_contacts`."""

    async def remove(self, user_id: str, other_id: str) -> None:
        """Or `not_contact`."""

    async def set_remark(self, user_id: str, other_id: str, remark: str) -> Contact:
        """Or `not_contact`."""

    async def contacts(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[Contact], str, bool]:
        """Returns a page of contacts, the next cursor, and whether there is more."""

    async def requests(
        self, user_id: str, sent: bool, cursor: str | None, limit: int | None
    ) -> tuple[list[ContactRequest], str, bool]:
        """Returns a page of open requests that the user has received, or sent."""


class Contacts:
    def __init__(self, store: ContactStore) -> None:
        self._store = store

    async def request(self, user_id: str, other_id: str, message: str = "") -> ContactChange:
        _check_other(user_id, other_id)
        check_text(message, "message", MESSAGE_MAX_CHARS)
        if is_reserved(other_id):
            raise NexoError("user_not_found", f"There is no user {other_id}")
        return await self._store.request(user_id, other_id, message)

    async def decide(self, user_id: str, other_id: str, accept: bool) -> ContactChange:
        _check_other(user_id, other_id)
        return await self._store.decide(user_id, other_id, accept)

    async def remove(self, user_id: str, other_id: str) -> None:
        _check_other(user_id, other_id)
        await self._store.remove(user_id, other_id)

    async def set_remark(self, user_id: str, other_id: str, remark: str) -> Contact:
        _check_other(user_id, other_id)
        check_text(remark, "remark", REMARK_MAX_CHARS)
        return await self._store.set_remark(user_id, other_id, remark)

    async def contacts(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[Contact], str, bool]:
        return await self._store.contacts(user_id, cursor, limit)

    async def requests(
        self, user_id: str, sent: bool, cursor: str | None, limit: int | None
    ) -> tuple[list[ContactRequest], str, bool]:
        return await self._store.requests(user_id, sent, cursor, limit)


def _check_other(user_id: str, other_id: str) -> None:
    check_user_id(other_id)
    if other_id == user_id:
        raise NexoError("bad_user_id", "The contact must be another user")
