"""Calls about contacts: `client.contacts`."""

from __future__ import annotations

from msgspec import Struct

from nexo_client.http import Call, decode
from nexo_client.types import Contact, ContactRequest, ContactStatus


class ContactsPage(Struct):
    contacts: list[Contact]
    next_cursor: str = ""
    has_more: bool = False


class ContactRequestsPage(Struct):
    requests: list[ContactRequest]
    next_cursor: str = ""
    has_more: bool = False


class Contacts:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def list(self, *, cursor: str | None = None, limit: int | None = None) -> ContactsPage:
        return decode(await self._call("GET", "/contact/list", {"cursor": cursor, "limit": limit}), ContactsPage)

    async def requests(
        self, *, sent: bool = False, cursor: str | None = None, limit: int | None = None
    ) -> ContactRequestsPage:
        """Returns open requests: those you have received, or those you have sent."""
        asked = {"sent": sent or None, "cursor": cursor, "limit": limit}
        return decode(await self._call("GET", "/contact/requests", asked), ContactRequestsPage)

    async def request(self, user_id: str, message: str | None = None) -> ContactStatus:
        """Asks a user; one who has asked you before becomes a contact at once."""
        asked = {"user_id": user_id, "message": message}
        return decode(await self._call("POST", "/contact/request", asked), ContactStatus)

    async def decide(self, user_id: str, accept: bool) -> ContactStatus:
        asked = {"user_id": user_id, "accept": accept}
        return decode(await self._call("POST", "/contact/decide", asked), ContactStatus)

    async def remove(self, user_id: str) -> None:
        """Ends the contact, for both."""
        await self._call("POST", "/contact/remove", {"user_id": user_id})

    async def remark(self, user_id: str, remark: str) -> Contact:
        """Sets your own name for a contact."""
        asked = {"user_id": user_id, "remark": remark}
        return decode(await self._call("POST", "/contact/remark", asked), Contact)
