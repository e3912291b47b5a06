"""Where the session, the outbox and the baselines are kept: in memory, or in a file that survives being killed."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from pathlib import Path
from typing import Any, Protocol

_REWRITE_AT_BYTES = 1 << 18
_REWRITE_FACTOR = 4  # as many lines as there are keys


class Storage(Protocol):
    """Keys are strings, values plain JSON values. When `set` and `delete` return, it is kept."""

    async def get(self, key: str) -> Any: ...

    async def set(self, key: str, value: Any) -> None: ...

    async def delete(self, key: str) -> None: ...

    async def entries(self, prefix: str) -> list[tuple[str, Any]]:
        """In the order of the keys."""

    async def close(self) -> None: ...


class MemoryStorage:
    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    async def get(self, key: str) -> Any:
        return json.loads(self._kept[key]) if key in self._kept else None

    async def set(self, key: str, value: Any) -> None:
        self._kept[key] = json.dumps(value)  # as a file would: a later change of the object changes nothing

    async def delete(self, key: str) -> None:
        self._kept.pop(key, None)

    async def entries(self, prefix: str) -> list[tuple[str, Any]]:
        return [(key, json.loads(self._kept[key])) for key in sorted(self._kept) if key.startswith(prefix)]

    async def close(self) -> None:
        """There is nothing to let go of."""


class FileStorage:
    """A log of changes, one JSON line each, flushed to the disk before `set` returns; everything that waits is
    flushed together. A line that was cut off by a crash is ignored. From time to time the file is written anew,
    beside the old one, and takes its place in one step. One process at a time.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._kept: dict[str, str] | None = None
        self._file: Any = None
        self._lines = 0
        self._waiting: list[tuple[str, str | None]] = []
        self._lock = asyncio.Lock()
        self._opening = asyncio.Lock()

    async def get(self, key: str) -> Any:
        kept = await self._opened()
        return json.loads(kept[key]) if key in kept else None

    async def entries(self, prefix: str) -> list[tuple[str, Any]]:
        kept = await self._opened()
        return [(key, json.loads(kept[key])) for key in sorted(kept) if key.startswith(prefix)]

    async def set(self, key: str, value: Any) -> None:
        await self._change(key, json.dumps(value))

    async def delete(self, key: str) -> None:
        if key in await self._opened():
            await self._change(key, None)

    async def close(self) -> None:
        async with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = self._kept = None

    async def _opened(self) -> dict[str, str]:
        if self._kept is None:
            async with self._opening:
                if self._kept is None:
                    self._kept = await asyncio.to_thread(self._open)
        return self._kept

    async def _change(self, key: str, value: str | None) -> None:
        kept = await self._opened()
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = value
        mine = (key, value)
        self._waiting.append(mine)
        async with self._lock:
            if any(waiting is mine for waiting in self._waiting):  # else whoever was before has written it too
                batch, self._waiting = self._waiting, []
                await asyncio.to_thread(self._write, batch, dict(kept))

    # -- in a thread -----------------------------------------------------------------------------------------

    def _open(self) -> dict[str, str]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "ab+", opener=lambda path, flags: os.open(path, flags, 0o600))  # noqa: SIM115
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise RuntimeError(f"{self.path} is in use by another process") from None
        self._file.seek(0)
        kept: dict[str, str] = {}
        good = 0
        for line in self._file:
            change = _read_line(line)
            if change is None:
                break  # what was being written when the process was killed
            good += len(line)
            self._lines += 1
            key, value = change
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value
        self._file.truncate(good)
        return kept

    def _write(self, batch: list[tuple[str, str | None]], kept: dict[str, str]) -> None:
        if self._file is None:
            raise RuntimeError(f"{self.path} is closed")
        self._file.write(b"".join(_line(key, value) for key, value in batch))
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self._lines += len(batch)
        if self._file.tell() > _REWRITE_AT_BYTES and self._lines > _REWRITE_FACTOR * len(kept):
            self._rewrite(kept)

    def _rewrite(self, kept: dict[str, str]) -> None:
        beside = self.path.with_name(self.path.name + ".new")
        file = open(beside, "wb+", opener=lambda path, flags: os.open(path, flags, 0o600))  # noqa: SIM115
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b"".join(_line(key, value) for key, value in kept.items()))
        file.flush()
        os.fsync(file.fileno())
        os.replace(beside, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._file.close()
        self._file, self._lines = file, len(kept)


def _line(key: str, value: str | None) -> bytes:
    return json.dumps([key, value]).encode() + b"\n"


def _read_line(line: bytes) -> tuple[str, str | None] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        key, value = json.loads(line)
    except (ValueError, TypeError):
        return None
    return (key, value) if isinstance(key, str) else None
