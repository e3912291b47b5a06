"""Work on accounts that takes longer than a request: closing and exporting, step by step, on any instance."""

from __future__ import annotations

import asyncio
import base64
import gzip

from nexo.config import Config
from nexo.core.people import Export
from nexo.store import closing, exports
from nexo.store.database import Database
from nexo.store.publish_seam import PublishSeam

HOUR_MS = 3_600_000
MIB = 1 << 20
PACKING = 6


class SqlAccountWork:
    """Behind the port `service.account_work.AccountWorkStore`."""

    def __init__(self, database: Database, seam: PublishSeam, config: Config) -> None:
        self._database = database
        self._sql = database.sql
        self._seam = seam
        self._keep_ms = config.export.keep_h * HOUR_MS
        self._max_bytes = config.export.max_mb * MIB

    # -- closing -------------------------------------------------------------------------------------

    async def close(self, user_id: str, erases: bool, actor: str) -> list[str]:
        memo: list[list[str]] = []

        def publish(_: list[str]) -> None:
            self._seam.account_changed(user_id)
            self._seam.visibility_changed(user_id)

        return await self._database.change_and_publish(
            lambda: closing.close(self._sql, user_id, erases, actor, memo), publish
        )

    async def next_closing(self) -> str | None:
        return await self._database.look(closing.waiting)

    async def closing_step(self, user_id: str) -> bool:
        event_ids = self._database.ids.take(closing.events_needed())
        done = await self._database.change_and_publish(
            lambda: closing.step(self._sql, user_id, list(event_ids)), self._publish
        )
        return not done.is_over

    def _publish(self, done: closing.StepDone) -> None:
        for change in done.groups:
            self._seam.group_changed(change)
        for recalled in done.recalls:
            self._seam.recalled(recalled)
        for name in done.audiences:
            self._seam.audience_changed(name)

    # -- exporting -----------------------------------------------------------------------------------

    async def begin_export(self, user_id: str, export_id: str) -> Export:
        return await self._database.change(lambda: exports.begin(self._sql, user_id, export_id, self._keep_ms))

    async def export(self, user_id: str) -> Export:
        return await self._database.look(lambda: exports.read(user_id))

    async def export_part(self, user_id: str, export_id: str, part: int) -> bytes | None:
        data = await self._database.look(lambda: exports.read_part(user_id, export_id, part))
        return None if data is None else base64.b64decode(data)

    async def next_export(self) -> str | None:
        return await self._database.look(exports.waiting)

    async def export_step(self, user_id: str) -> bool:
        at = await self._database.look(lambda: exports.position(user_id))
        if at is None:
            return False
        portion = await self._database.look(lambda: exports.read_portion(self._sql, user_id, at))
        packed = await asyncio.to_thread(gzip.compress, portion.lines, PACKING, mtime=0)
        data = base64.b64encode(packed).decode()
        await self._database.change(
            lambda: exports.write_portion(self._sql, user_id, at, portion, data, len(packed), self._max_bytes)
        )
        return not portion.is_last

    async def trim_exports(self) -> int:
        return await self._database.change(lambda: exports.trim(self._sql))
