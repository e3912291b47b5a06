"""Finding a file for a reader, and reading its bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from msgspec import Struct

from nexo.core.file_links import LINKS
from nexo.core.files import StoredFile, check_file_id
from nexo.errors import NexoError
from nexo.files.ports import Storage
from nexo.ids import now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally
from nexo.ports.files import FileStore

PREVIEW_MIME = "image/webp"


class OpenedFile(Struct, frozen=True):
    """A file, or a preview of it, that the reader may have."""

    file: StoredFile
    blob: str
    size: int
    mime: str
    etag: str
    is_public: bool


class Serving:
    def __init__(self, store: FileStore, storage: Storage) -> None:
        self._store = store
        self._storage = storage
        self.outcomes = Tally(whole=0)
        self.bytes_sent = 0

    def samples(self) -> Iterable[Sample]:
        yield from f.FILE_DOWNLOADS.each(self.outcomes)
        yield f.FILE_BYTES_SENT(self.bytes_sent)

    async def for_user(self, user_id: str, file_id: str, preview: str) -> OpenedFile:
        """Returns a file for its owner, or for a user who may see a message with it. Raises `file_not_found`."""
        return _opened(await self._store.read_for(user_id, check_file_id(file_id)), preview)

    async def for_operator(self, file_id: str, preview: str) -> OpenedFile:
        return _opened(await self._store.read(check_file_id(file_id)), preview)

    async def for_everyone(self, file_id: str, preview: str) -> OpenedFile:
        """Returns a picture of a profile."""
        return _opened(await self._store.read_open(check_file_id(file_id)), preview, is_public=True)

    async def by_address(self, file_id: str, preview: str, msg: str, exp: str, sig: str) -> OpenedFile:
        """Returns a file by a signed address, while its message has its content."""
        is_number = all(text.isascii() and text.isdigit() and len(text) < 20 for text in (msg, exp))
        if not is_number or not LINKS.is_valid(check_file_id(file_id), int(msg), int(exp), sig, now_ms() // 1000):
            raise NexoError("file_not_found", "The address is not valid, or its time is over; fetch the message again")
        return _opened(await self._store.read_by_message(file_id, int(msg)), preview)

    async def read(self, opened: OpenedFile, start: int, end: int) -> AsyncIterator[bytes]:
        """Yields the bytes from `start` up to `end` (not included). Raises StorageError."""
        async for data in self._storage.pieces(opened.blob, start, end):
            self.bytes_sent += len(data)
            yield data

    async def delete(self, file_id: str, actor: str) -> None:
        await self._store.delete(check_file_id(file_id), actor)

    async def delete_own(self, file_id: str, owner_id: str) -> None:
        await self._store.delete_own(check_file_id(file_id), owner_id)


def _opened(file: StoredFile, preview: str, *, is_public: bool = False) -> OpenedFile:
    if not preview:
        return OpenedFile(file, file.blob, file.size, file.measured.mime, f'"{file.sha256[:40]}"', is_public)
    size = file.preview_bytes(preview)
    if size is None:
        raise NexoError("file_not_found", "There is no preview of this file")
    return OpenedFile(file, f"{file.blob}.{preview}", size, PREVIEW_MIME, f'"{file.sha256[:40]}.{preview}"', is_public)
