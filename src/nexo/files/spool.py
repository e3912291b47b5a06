"""Receiving a file: bytes go to a scratch file in pieces, hashed and written by a thread."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from nexo.core.files import PREVIEWS
from nexo.files.ports import PIECE_BYTES, StorageError, StorageFull, preview_beside

THREADS = 4  # for all reading and writing of files: the event loop and the database have their own
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
T = TypeVar("T")

_executor = ThreadPoolExecutor(THREADS, thread_name_prefix="files")


async def in_thread(work: Callable[[], T]) -> T:
    """Returns the result of `work`, done by a thread of the files. Raises StorageError for OSError."""
    try:
        return await asyncio.get_running_loop().run_in_executor(_executor, work)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error) from error


def storage_error(error: OSError) -> StorageError:
    text = f"{type(error).__name__}: {error.strerror or error}"
    return StorageFull(text) if error.errno in _NO_ROOM else StorageError(text)


def sync_path(path: Path) -> None:
    """Make a file or a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Spool:
    """A scratch file that takes bytes. At the end it is deleted, with previews made of it, unless a storage has moved
    them away."""

    stays = False  # whether the file is still needed after a storage has stored it

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{secrets.token_hex(12)}.part"
        self.size = 0
        self.sha256 = hashlib.sha256()
        self._descriptor = -1
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    async def __aenter__(self) -> Spool:
        self._descriptor = await in_thread(self._open)
        return self

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.path, flags, 0o600)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        await asyncio.shield(in_thread(self._unlink))

    def _unlink(self) -> None:
        for path in (self.path, *(preview_beside(self.path, preview) for preview in PREVIEWS)):
            path.unlink(missing_ok=True)

    async def add(self, data: bytes) -> None:
        """Take some bytes; they are written once there are enough of them."""
        self._pending.append(data)
        self._pending_bytes += len(data)
        self.size += len(data)
        if self._pending_bytes >= PIECE_BYTES:
            await self._write()

    async def finish(self) -> None:
        """Write what is left. The file is complete afterwards, and not synced."""
        await self._write()
        self._close()

    async def _write(self) -> None:
        data = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        if data:
            await in_thread(lambda: self._write_now(data))

    def _write_now(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self.sha256.update(data)

    def write(self, data: memoryview) -> None:
        """Take some bytes and write them at once, in the thread that calls. Raises OSError."""
        self._write_now(data)
        self.size += len(data)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
