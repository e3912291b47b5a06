"""Blobs in a folder. A blob gets its name when it is complete and synced; several instances may share the folder."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

from nexo.files.ports import PIECE_BYTES, BlobMissing, Listed, StorageError
from nexo.files.spool import in_thread, storage_error, sync_path

BLOBS = "blobs"
SCRATCH = "scratch"
LISTED_AT_ONCE = 1000


class FolderStorage:
    """Lies in `root`: `blobs/ab/abcdef…` by the first letters of a name, or by the folders of a name that has some."""

    def __init__(self, root: Path) -> None:
        self.url = f"file://{root}"
        self.scratch = root / SCRATCH
        self._root = root
        self._blobs = root / BLOBS

    def _path(self, name: str) -> Path:
        return self._blobs / name if "/" in name else self._blobs / name[:2] / name

    async def check(self) -> None:
        await in_thread(self._check_writable)

    def _check_writable(self) -> None:
        """Folders are made when the first file is stored."""
        there = next(folder for folder in (self._blobs, *self._blobs.parents) if folder.is_dir())
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"{there} cannot be written")

    def growing(self, name: str) -> Path | None:
        return self._path(name)

    async def put(self, name: str, source: Path, *, stays: bool = False) -> None:
        try:
            await in_thread(lambda: self._put(self._path(name), self._twin(source) if stays else source))
        except FileNotFoundError as error:
            raise storage_error(error) from error

    def _put(self, target: Path, source: Path) -> None:
        if not source.is_relative_to(self._root):  # of another file system, perhaps: renaming has to be atomic
            copy = self.scratch / f"{source.name}.copy"
            shutil.copyfile(source, copy)
            source.unlink()
            source = copy
        sync_path(source)
        while True:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                source.rename(target)
                break
            except FileNotFoundError:
                if not source.exists():
                    raise
                # the folder was empty, and has been deleted in between
        for folder in (target.parent, *target.parent.parents):
            sync_path(folder)
            if folder == self._blobs:
                break

    def _twin(self, source: Path) -> Path:
        """Returns another name for a file, or a copy on file systems where a file has one name only."""
        twin = self.scratch / f"{secrets.token_hex(12)}.twin"
        self.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.link(source, twin)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
            shutil.copyfile(source, twin)
        return twin

    async def pieces(self, name: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        path = self._path(name)
        try:
            descriptor = await in_thread(lambda: os.open(path, os.O_RDONLY))
        except FileNotFoundError:
            raise BlobMissing(name) from None
        try:
            place = start
            while end is None or place < end:
                size = PIECE_BYTES if end is None else min(PIECE_BYTES, end - place)
                data = await in_thread(lambda place=place, size=size: os.pread(descriptor, size, place))  # type: ignore[misc]
                if not data:
                    if end is not None:
                        raise StorageError(f"{name} is shorter than {end} bytes")
                    return
                yield data
                place += len(data)
        finally:
            os.close(descriptor)

    async def size_of(self, name: str) -> int | None:
        try:
            found = await in_thread(self._path(name).stat)
        except FileNotFoundError:
            return None
        return found.st_size

    async def delete(self, name: str) -> None:
        if name.endswith("/"):
            folder = self._blobs / name
            await in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))
        else:
            path = self._path(name)
            await in_thread(lambda: path.unlink(missing_ok=True))

    async def listed(self, folder: str = "") -> AsyncIterator[Listed]:
        walk = os.walk(self._blobs / folder)
        while True:
            found = await in_thread(lambda: self._some_of(walk))
            for one in found:
                yield one
            if not found:
                return

    def _some_of(self, walk: object) -> list[Listed]:
        now, some = time.time(), []
        for where, _, names in walk:  # type: ignore[attr-defined]
            place = Path(where).relative_to(self._blobs)
            is_plain = len(place.parts) == 1 and len(place.name) == 2
            for name in names:
                try:
                    state = (Path(where) / name).stat()
                except FileNotFoundError:
                    continue
                some.append(Listed(name if is_plain else f"{place}/{name}", state.st_size, now - state.st_mtime))
            if len(some) >= LISTED_AT_ONCE:
                break
        return some

    async def close(self) -> None: ...
