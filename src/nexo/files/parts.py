"""A part of an upload that grows in its place, so that a file of one part need not be copied when it is complete."""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import os
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nexo.files.spool import Spool, in_thread, storage_error, sync_path

_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}  # numbers of the system call
_IDLE = 3 << 13


def _give_way() -> None:
    """Let the disk serve the database before this thread, where its scheduler knows priorities."""
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None:
        ctypes.CDLL(None).syscall(number, 1, 0, _IDLE)


# One file at a time: a disk that has much to write makes commits of the database wait.
_syncing = ThreadPoolExecutor(1, thread_name_prefix="files-sync", initializer=_give_way)


class GrowingPart(Spool):
    """The file of a part, cut to the bytes that count, and taking more. It stays at the end.

    `digest` is the hash of the bytes that count, as it was kept by the request before; without it the whole file is
    read for `finish_hash`."""

    stays = True

    def __init__(self, path: Path, size: int, digest: Any = None) -> None:
        super().__init__(path.parent)
        self.path = path
        self.size = size
        self._is_hashed = digest is not None or not size
        if digest is not None:
            self.sha256 = digest
        self._is_known = bool(size)  # its name is durable

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            descriptor = os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path, flags, 0o600)
        os.ftruncate(descriptor, self.size)
        os.lseek(descriptor, self.size, os.SEEK_SET)
        return descriptor

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def digest(self) -> Any:
        """The hash of everything so far; None where it is not known."""
        return self.sha256 if self._is_hashed else None

    async def sync(self) -> None:
        """Make everything so far durable."""
        await self._write()
        try:
            await asyncio.get_running_loop().run_in_executor(_syncing, self._sync_now)
        except OSError as error:
            raise storage_error(error) from error

    def _sync_now(self) -> None:
        os.fdatasync(self._descriptor)
        if not self._is_known:
            for folder in self.path.parents[:3]:  # of the upload, of all uploads, of all blobs
                sync_path(folder)
            self._is_known = True

    async def finish_hash(self) -> None:
        """Know the hash of the whole file."""
        if not self._is_hashed:
            self.sha256 = await in_thread(self._hash)
            self._is_hashed = True

    def _hash(self) -> Any:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256")
