"""A storage in a file that survives a kill of the process at any moment."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from pathlib import Path
from typing import Any

_REWRITE_AT_BYTES = 1 << 18
_REWRITE_FACTOR = 4  # lines per key
_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class FileStorage:
    """A log of changes, one JSON line each, flushed to the disk before `set` returns; concurrent changes are flushed
    together. A line that a crash has cut off is ignored. When most lines are outdated, the file is replaced atomically
    by a shorter one. Only one process can use it at a time.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._values: dict[str, str] | None = None
        self._file: Any = None
        self._lines = 0
        self._waiting: list[tuple[str, str | None]] = []
        self._lock = asyncio.Lock()
        self._opening = asyncio.Lock()

    async def get(self, key: str) -> Any:
        values = await self._opened()
        return json.loads(values[key]) if key in values else None

    async def entries(self, prefix: str) -> list[tuple[str, Any]]:
        values = await self._opened()
        return [(key, json.loads(values[key])) for key in sorted(values) if key.startswith(prefix)]

    async def set(self, key: str, value: Any) -> None:
        await self._change(key, json.dumps(value))

    async def delete(self, key: str) -> None:
        if key in await self._opened():
            await self._change(key, None)

    async def close(self) -> None:
        async with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = self._values = None

    async def _opened(self) -> dict[str, str]:
        if self._values is None:
            async with self._opening:
                if self._values is None:
                    self._values = await asyncio.to_thread(self._open)
        return self._values

    async def _change(self, key: str, value: str | None) -> None:
        values = await self._opened()
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
        mine = (key, value)
        self._waiting.append(mine)
        async with self._lock:
            if any(waiting is mine for waiting in self._waiting):  # else an earlier call has written it
                batch, self._waiting = self._waiting, []
                await asyncio.to_thread(self._write, batch, dict(values))

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
        values: dict[str, str] = {}
        good = 0
        for line in self._file:
            change = _read_line(line)
            if change is None:
                break  # cut off when the process was killed
            good += len(line)
            self._lines += 1
            key, value = change
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        self._file.truncate(good)
        return values

    def _write(self, batch: list[tuple[str, str | None]], values: dict[str, str]) -> None:
        if self._file is None:
            raise RuntimeError(f"{self.path} is closed")
        self._file.write(b"".join(_line(key, value) for key, value in batch))
        self._file.flush()
        _sync_data(self._file.fileno())
        self._lines += len(batch)
        if self._file.tell() > _REWRITE_AT_BYTES and self._lines > _REWRITE_FACTOR * len(values):
            self._rewrite(values)

    def _rewrite(self, values: dict[str, str]) -> None:
        replacement = self.path.with_name(self.path.name + ".new")
        file = open(replacement, "wb+", opener=lambda path, flags: os.open(path, flags, 0o600))  # noqa: SIM115
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b"".join(_line(key, value) for key, value in values.items()))
        file.flush()
        os.fsync(file.fileno())
        os.replace(replacement, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._file.close()
        self._file, self._lines = file, len(values)


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
