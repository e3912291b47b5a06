"""Makes a file of bytes that have arrived: examined, stored once for equal content, then known to the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import structlog
from msgspec import Struct

from nexo.config import Config
from nexo.core.files import PREVIEWS, Measured, StoredFile
from nexo.core.filter import filter_content
from nexo.core.model import MsgType
from nexo.errors import NexoError
from nexo.files.ports import Examined, MediaReader, Storage, StorageError, StorageFull
from nexo.files.spool import Spool, in_thread
from nexo.metrics.measures import Tally
from nexo.ports.files import FileStore
from nexo.service.filter import FilterFile

log = structlog.get_logger()

HOUR_MS = 3_600_000
RETRY_MS = 5000


class FileRules(Struct, frozen=True):
    max_bytes: int
    simple_max: int
    quota: int
    uploads_per_user: int
    upload_ms: int
    unused_ms: int
    allowed: tuple[str, ...]
    refused: tuple[str, ...]

    @classmethod
    def of(cls, config: Config) -> FileRules:
        files = config.files
        return cls(
            files.max_bytes,
            min(files.simple_max, files.max_bytes),
            files.quota_bytes,
            files.uploads_per_user,
            files.upload_hours * HOUR_MS,
            files.unused_hours * HOUR_MS,
            tuple(files.types_allowed),
            tuple(files.types_refused),
        )

    def check_type(self, mime: str) -> None:
        if _is_one_of(mime, self.refused) or (self.allowed and not _is_one_of(mime, self.allowed)):
            raise NexoError("file_type_refused", f"Files of the type {mime} are not accepted here")


def _is_one_of(mime: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(mime, pattern.lower()) for pattern in patterns)


@contextmanager
def storage_refusals() -> Iterator[None]:
    """Raises errors that a client may see for failures of the storage. Messages are not concerned by either."""
    try:
        yield
    except StorageFull as error:
        log.warning("file_storage_full", error=str(error))
        raise NexoError("storage_full", retry_after_ms=RETRY_MS) from error
    except StorageError as error:
        log.warning("file_storage_failed", error=str(error))
        raise NexoError("server_busy", "The storage of files cannot be used now", retry_after_ms=RETRY_MS) from error


class Receiving:
    def __init__(
        self, store: FileStore, storage: Storage, reader: MediaReader, rules: FileRules, words: FilterFile | None = None
    ) -> None:
        self._store = store
        self._storage = storage
        self._reader = reader
        self._words = words
        self.rules = rules
        self.outcomes = Tally(stored=0)  # by `stored`, or the name of the error
        self.bytes_stored = 0

    def checked_name(self, name: str) -> str:
        """Returns the name after the word filter, to which names of media were always subject."""
        if self._words is None or not self._words.is_on:
            return name
        filtered, _, is_rejected = filter_content(self._words.current(), MsgType.FILE, {"name": name})
        if is_rejected:
            raise NexoError("content_rejected", "The name of the file is not accepted here")
        found: str = filtered["name"]
        return found

    async def make_file(self, file_id: str, owner_id: str, name: str, spool: Spool) -> StoredFile:
        """Returns the file, once it is durable and known. Raises what is wrong with it, and `quota_exceeded`."""
        try:
            with storage_refusals():
                file = await self._make(file_id, owner_id, self.checked_name(name), spool)
        except NexoError as error:
            self.outcomes.add(error.name)
            raise
        self.outcomes.add("stored")
        self.bytes_stored += file.size
        return file

    async def _make(self, file_id: str, owner_id: str, name: str, spool: Spool) -> StoredFile:
        if not spool.size:
            raise NexoError("bad_file", "The file is empty")
        rules, sha256 = self.rules, spool.sha256.hexdigest()
        examined: Examined | None = None
        while True:
            blob, measured = await self._store.claim(sha256, spool.size, rules.unused_ms)
            if measured is not None and await self._storage.size_of(blob) == spool.size:
                rules.check_type(measured.mime)
            else:  # new bytes, or bytes that the storage has lost
                if examined is None:
                    examined = await self._reader.examine(spool.path, name)
                    rules.check_type(examined.mime)
                measured = await self._put(blob, spool, examined)
            file = StoredFile(file_id, owner_id, name, spool.size, sha256, blob, 0, measured)
            stored = await self._store.store(file, rules.unused_ms, rules.quota)
            if stored is not None:
                return stored

    async def _put(self, blob: str, spool: Spool, examined: Examined) -> Measured:
        sizes: dict[str, int | None] = {}
        for preview in PREVIEWS:
            source: Path | None = getattr(examined.previews, preview)
            sizes[preview] = None
            if source is not None:
                sizes[preview] = (await in_thread(source.stat)).st_size
                await self._storage.put(f"{blob}.{preview}", source)
        await self._storage.put(blob, spool.path, stays=spool.stays)
        return Measured(
            examined.mime,
            examined.width,
            examined.height,
            examined.duration_ms,
            examined.placeholder,
            sizes["small"],
            sizes["medium"],
        )
