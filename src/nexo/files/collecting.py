"""Deletes what nothing needs any more: uploads that were left, files that nothing names, bytes without a row."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import structlog

from nexo.core.files import PREVIEWS, STAGED, FileTotals
from nexo.files.ports import Storage
from nexo.files.receiving import storage_refusals
from nexo.files.spool import in_thread
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally
from nexo.ports.files import FileStore

log = structlog.get_logger()

DAY_S = 86_400.0


class Collecting:
    """Its methods are chores of one instance at a time; several at once do no harm either."""

    def __init__(self, store: FileStore, storage: Storage, keep_uses_ms: int, keep_bytes_ms: int) -> None:
        """`keep_uses_ms`: how long moderators can read recalled messages. `keep_bytes_ms`: how long bytes outlive
        their row."""
        self._store = store
        self._storage = storage
        self._keep_uses_ms = keep_uses_ms
        self._keep_bytes_ms = keep_bytes_ms
        self._totals: FileTotals | None = None
        self.done = Tally(looked_at=0)

    def samples(self) -> Iterable[Sample]:
        yield from f.FILES_COLLECTED.each(self.done)
        if self._totals is not None:
            yield f.FILES_KEPT(self._totals.files)
            yield f.FILE_BLOBS(self._totals.blobs)
            yield f.FILE_BYTES(self._totals.bytes)

    async def step(self) -> int:
        """Delete some of what is due. Returns how much there was: 0 when all is done."""
        looked_at = await self._store.collect(self._keep_uses_ms, self._keep_bytes_ms)
        names = await self._store.leftovers()
        with storage_refusals():
            for name in names:
                await self._storage.delete(name)
                if not name.endswith("/"):
                    for preview in PREVIEWS:
                        await self._storage.delete(f"{name}.{preview}")
                    self.done.add("blobs")
        if names:
            await self._store.forget_leftovers(names)
        self.done.add("looked_at", looked_at)
        return looked_at + len(names)

    async def sweep(self) -> int:
        """Delete what a crash left beside the rows: parts of uploads that have ended, and scratch files. Old ones only:
        younger ones may be in use by any instance."""
        orphans = 0
        with storage_refusals():
            old = [found.name async for found in self._storage.listed(STAGED) if found.age_s > DAY_S]
            running = await self._store.open_uploads()
            for name in old:
                if name.removeprefix(STAGED).partition("/")[0] not in running:
                    await self._storage.delete(name)
                    orphans += 1
            orphans += await in_thread(lambda: _clear(self._storage.scratch))
        if orphans:
            log.info("file_orphans_deleted", count=orphans)
            self.done.add("orphans", orphans)
        return 0

    async def count(self) -> int:
        """Count all files, for the metrics."""
        self._totals = await self._store.totals()
        return 0


def _clear(scratch: Path) -> int:
    count, now = 0, time.time()
    for path in scratch.iterdir() if scratch.is_dir() else ():
        try:
            if path.is_file() and now - path.stat().st_mtime > DAY_S:
                path.unlink()
                count += 1
        except FileNotFoundError:
            continue
    return count
