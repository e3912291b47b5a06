"""The interfaces inside the part `files`: where bytes are kept, and what is read out of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct

from nexo.metrics.families import Sample

PLACEHOLDER_MAX_BYTES = 64
PIECE_BYTES = 256 * 1024  # of a file in memory, for each transfer


class Previews(Struct, frozen=True):
    """Smaller pictures of a file, as WebP files that the caller moves away or deletes. None: there is none."""

    small: Path | None = None
    medium: Path | None = None


def preview_beside(path: Path, preview: str) -> Path:
    """Returns where the preview of a file is written."""
    return path.with_name(f"{path.name}.{preview}")


class Examined(Struct, frozen=True):
    """What the bytes of a file show. `placeholder` is a BlurHash: ASCII, at most `PLACEHOLDER_MAX_BYTES` bytes."""

    mime: str
    width: int | None = None
    height: int | None = None
    duration_ms: int | None = None
    placeholder: str | None = None
    previews: Previews = Previews()


class MediaReader(Protocol):
    """Reads a complete file. It decodes nothing in the server's own process."""

    async def examine(self, path: Path, name: str) -> Examined:
        """Returns what the file is, decided by its bytes; `name` decides only between types that share their first
        bytes. Previews are written beside `path`. Raises `bad_file` for a file that is not what its bytes promise,
        and for one that takes more pixels, memory or time than allowed."""

    def samples(self) -> Iterable[Sample]: ...

    async def close(self) -> None: ...


class DirectSource(Protocol):
    """A body that a thread takes from its socket."""

    @property
    def left(self) -> int: ...

    async def take(self, sink: Callable[[memoryview], object], limit: int, timeout_s: float | None = None) -> int:
        """Hand at most `limit` bytes to `sink`. Returns how many, fewer when the time is over or after `stop`. Raises
        ConnectionError when the client has left, and what `sink` raises."""

    def stop(self) -> None: ...


class StorageError(Exception):
    """The storage could not do it now; another attempt may work."""


class StorageFull(StorageError):
    """The storage has no room."""


class BlobMissing(StorageError):
    """There is no blob of this name."""


class Listed(NamedTuple):
    name: str
    size: int
    age_s: float  # since it was written


class Storage(Protocol):
    """Keeps blobs under names that never change their meaning.

    A blob exists completely or not at all, also after a crash at any moment. Putting a name that exists changes
    nothing: the bytes are the same. A name may have folders (`a/b`)."""

    url: str  # without secrets
    scratch: Path  # a folder for files that are being received; what a crash leaves there is deleted later

    async def put(self, name: str, source: Path, *, stays: bool = False) -> None:
        """Store the bytes of a file under `name`; the file is gone afterwards, unless it `stays`. Returns when the
        bytes are durable. Raises `StorageFull`, `StorageError`."""

    def growing(self, name: str) -> Path | None:
        """Returns where a blob is, so that it can be written there piece by piece; None where that cannot be done."""

    def pieces(self, name: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yields the bytes from `start` up to `end` (not included), at most `PIECE_BYTES` at a time. Raises
        `BlobMissing` before the first of them."""

    async def size_of(self, name: str) -> int | None:
        """Returns the size of a blob; None when there is none."""

    async def delete(self, name: str) -> None:
        """Delete a blob; one that is not there counts as deleted. A name that ends with a slash is a folder: everything
        in it is deleted."""

    def listed(self, folder: str = "") -> AsyncIterator[Listed]:
        """Yields every blob, or those of a folder, in any order."""

    async def check(self) -> None:
        """Raises StorageError when nothing can be stored as configured."""

    async def close(self) -> None: ...
