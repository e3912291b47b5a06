"""The numbers of several processes that serve one port, from any one of them.

Each process writes a snapshot every second into a folder that they share. The supervisor keeps the last snapshot of a
process that has ended, so counters never decrease when a process is started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from nexo.metrics.exposition import encode_snapshot, merge_snapshots, without_process
from nexo.metrics.families import FAMILIES, MetricKind, Sample

EVERY_S = 1.0
_SUFFIX = ".snapshot"
_ENDED = "ended"


class _Past(msgspec.Struct):
    """What ended processes counted. `names` are those whose own file is in it and may still be there."""

    names: list[str] = []
    snapshot: bytes = b"[]"


class Siblings:
    """One process and the numbers of the other processes."""

    def __init__(self, folder: Path, number: int, own: Callable[[], Iterable[Sample]]) -> None:
        self._folder = folder
        self._number = str(number)
        self._file = folder / _file_name(number, os.getpid())
        self._own = own
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY_S, self.start)
        self._leave()

    def stop(self) -> None:
        """Keep what was counted up to now."""
        if self._timer is not None:
            self._timer.cancel()
        self._leave()

    def samples(self) -> list[Sample]:
        """Returns the numbers of all processes together: this process as it is now, other processes at most a second
        old."""
        return merge_snapshots(self._snapshots())

    def by_process(self) -> dict[str, list[Sample]]:
        """The same apart, without what has ended."""
        found = {name: merge_snapshots({name: data}) for name, data in self._snapshots().items() if name != _ENDED}
        return {name: [without_process(sample) for sample in samples] for name, samples in found.items()}

    def _snapshots(self) -> dict[str, bytes]:
        past = _read_past(self._folder)
        found = {_ENDED: past.snapshot}
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if path != self._file and path.name not in past.names:
                try:
                    found[path.name.partition("-")[0]] = path.read_bytes()
                except FileNotFoundError:  # ended meanwhile: look again, so that its numbers are not missing
                    return self._snapshots()
        found[self._number] = encode_snapshot(self._own())
        return found

    def _leave(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: the last one stays, and the next may fit
            _replace(self._file, encode_snapshot(self._own()))


def keep_ended(folder: Path, number: int, pid: int) -> None:
    """Add what a process counted to what ended ones did; gauges are of no interest any more."""
    path = folder / _file_name(number, pid)
    try:
        snapshot = path.read_bytes()
    except FileNotFoundError:  # it ended before it had begun
        return
    past = _read_past(folder)
    merged = merge_snapshots({_ENDED: past.snapshot, "": snapshot})
    counted = [sample for sample in merged if FAMILIES[sample.name].kind is not MetricKind.GAUGE]
    # First the sum with the name in it, then the file: no reader counts both or misses it.
    _replace(folder / _ENDED, msgspec.json.encode(_Past([path.name], encode_snapshot(counted))))
    path.unlink()


def _file_name(number: int, pid: int) -> str:
    return f"{number}-{pid}{_SUFFIX}"


def _read_past(folder: Path) -> _Past:
    try:
        return msgspec.json.decode((folder / _ENDED).read_bytes(), type=_Past)
    except FileNotFoundError:
        return _Past()


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.write_bytes(data)
    fresh.replace(path)
