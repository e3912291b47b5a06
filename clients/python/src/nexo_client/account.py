"""The account as a whole: its export, and its end: `client.account`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nexo_client.http import Call, decode
from nexo_client.types import AccountExport


class Account:
    def __init__(
        self, call: Call, download: Callable[[str], Awaitable[bytes]], forget: Callable[[], Awaitable[None]]
    ) -> None:
        """`forget` deletes everything stored of the user here."""
        self._call = call
        self._download = download
        self._forget = forget

    async def export(self, *, password: str | None = None) -> AccountExport:
        """Begins to collect everything that you may see. Without a password only a moment after signing in."""
        return decode(await self._call("POST", "/user/export", {"password": password}), AccountExport)

    async def export_status(self) -> AccountExport:
        """Returns how far the export is."""
        return decode(await self._call("GET", "/user/export", {}), AccountExport)

    async def export_file(self) -> bytes:
        """Returns the file of the export when it is done: JSON lines, packed by gzip."""
        return await self._download("/user/export/file")

    async def close(self, *, password: str | None = None, erase_messages: bool = False) -> None:
        """Closes the account for good, and deletes everything stored of the user here. With `erase_messages`, its
        messages are erased for all. Without a password only a moment after signing in."""
        await self._call("DELETE", "/user", {"password": password, "erase_messages": erase_messages})
        await self._forget()
