"""Compares the storage with the database, and moves all blobs to another storage."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from nexo.core.files import PREVIEWS, STAGED, staged_in
from nexo.files.ports import BlobMissing, Storage, StorageError
from nexo.files.spool import Spool
from nexo.ports.files import BlobState, FileStore

PAGE = 500
LISTED_MAX = 100
LATE_MS = 3_600_000  # after which servers should have deleted what is due
YOUNG_S = 86_400.0  # bytes that are younger may belong to an upload in progress

Progress = Callable[[int], None]


class FilesReport(Struct):
    """What is wrong. `missing` breaks a file; `unknown` only takes room, and `nexo files gc` deletes it."""

    blobs: int = 0
    bytes: int = 0
    missing: list[str] = field(default_factory=list)
    wrong_size: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)  # messages whose file is not known
    overdue: list[str] = field(default_factory=list)  # what should have been deleted by now
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, what: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        listed: list[str] = getattr(self, kind)
        if len(listed) < LISTED_MAX:
            listed.append(what)


def _parts(state: BlobState) -> dict[str, int]:
    """Returns the names and sizes of everything that is stored of a blob."""
    sizes = {"": state.size, PREVIEWS[0]: state.small_bytes, PREVIEWS[1]: state.medium_bytes}
    return {f"{state.blob}.{part}" if part else state.blob: size for part, size in sizes.items() if size is not None}


async def check_storage(storage: Storage) -> str:
    """Returns why the storage cannot be used; empty: it can."""
    try:
        await storage.check()
    except StorageError as error:
        return str(error)
    return ""


async def check_files(store: FileStore, storage: Storage, progress: Progress = lambda _: None) -> FilesReport:
    """Compare sizes and existence of all blobs in both directions. Servers may be running."""
    report = FilesReport()
    stored: dict[str, tuple[int, float]] = {}
    staged: dict[str, float] = {}  # parts of uploads
    async for found in storage.listed():
        if found.name.startswith(STAGED):
            staged[found.name] = found.age_s
        else:
            stored[found.name] = (found.size, found.age_s)
    after = ""
    while states := await store.known_blobs(after, PAGE):
        for state in states:
            after = state.blob
            for name, size in _parts(state).items():
                known = stored.pop(name, None)
                if not state.is_ready or not state.is_used:
                    continue
                actual = known[0] if known is not None else await storage.size_of(name)
                if actual is None:
                    report.add("missing", name)
                elif actual != size:
                    report.add("wrong_size", name)
            report.blobs += 1
            report.bytes += state.size
        progress(report.blobs)
    due = set(await store.all_leftovers())
    for name, (_, age_s) in stored.items():
        if age_s > YOUNG_S and name.partition(".")[0] not in due:
            report.add("unknown", name)
    running = await store.open_uploads()
    for name, age_s in staged.items():
        file_id = name.removeprefix(STAGED).partition("/")[0]
        if age_s > YOUNG_S and file_id not in running and staged_in(file_id) not in due:
            report.add("unknown", name)
    for problem in await store.broken_uses(LISTED_MAX + 1):
        report.add("unnamed", problem)
    for late in await store.overdue(LATE_MS, LISTED_MAX + 1):
        report.add("overdue", late)
    return report


async def delete_unknown(storage: Storage, report: FilesReport) -> int:
    for name in report.unknown:
        await storage.delete(name)
    return len(report.unknown)


async def move_files(store: FileStore, source: Storage, target: Storage, progress: Progress = lambda _: None) -> int:
    """Copy every blob that the target does not have. Returns how many were copied. Interrupted, it continues where it
    was when it runs again; parts of unfinished uploads are copied too."""
    await target.check()
    copied = done = 0
    after = ""
    while states := await store.known_blobs(after, PAGE):
        for state in states:
            after = state.blob
            if state.is_ready:
                for name, size in _parts(state).items():
                    copied += await _copy(source, target, name, size)
            done += 1
        progress(done)
    async for found in source.listed(STAGED):
        copied += await _copy(source, target, found.name, found.size)
    return copied


async def _copy(source: Storage, target: Storage, name: str, size: int) -> int:
    if await target.size_of(name) == size:
        return 0
    async with Spool(target.scratch) as spool:
        try:
            async for data in source.pieces(name):
                await spool.add(data)
        except BlobMissing:
            return 0
        await spool.finish()
        if spool.size != size:
            raise StorageError(f"{name} has {spool.size} bytes in place of {size}")
        await target.put(name, spool.path)
    return 1
