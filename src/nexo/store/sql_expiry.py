"""Erasing behind the port `journal.erasing.ExpiryStore`."""

from __future__ import annotations

from nexo.store import expiry
from nexo.store.database import Database
from nexo.store.expiry import DueMessage


class SqlExpiry:
    def __init__(self, database: Database, retention_ms: int) -> None:
        self._database = database
        self._sql = database.sql
        self._retention_ms = retention_ms

    async def is_due(self) -> bool:
        if await self._database.look(expiry.due):
            return True
        if not self._retention_ms:
            return False
        page = await self._database.look(lambda: expiry.retention_page(self._retention_ms))
        return page.rows > 0

    async def erase_some(self) -> int:
        due = await self._database.look(expiry.due)
        await self._erase(due)
        if len(due) == expiry.STEP or not self._retention_ms:
            return len(due)
        page = await self._database.look(lambda: expiry.retention_page(self._retention_ms))
        if not page.rows:
            return len(due)
        await self._erase(page.over)
        await self._database.change(lambda: expiry.pass_retention(self._sql, page))
        return len(due) + page.rows

    async def _erase(self, due: list[DueMessage]) -> None:
        by_conv: dict[int, list[int]] = {}
        for one in due:
            by_conv.setdefault(one.conv, []).append(one.server_msg_id)
        for conv, server_msg_ids in by_conv.items():
            await self._erase_in(conv, server_msg_ids)

    async def _erase_in(self, conv: int, server_msg_ids: list[int]) -> None:
        await self._database.change(lambda: expiry.erase(self._sql, conv, server_msg_ids))
