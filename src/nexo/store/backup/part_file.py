"""Files that get their name when they are complete, and not before."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAMES = ".nexo-*.part"


@contextmanager
def part_file(folder: Path) -> Iterator[Path]:
    """Yields an empty file in a folder, readable by its owner only, which is removed at the end unless the caller has
    renamed it. What killed processes left there is removed first."""
    _remove_left(folder)
    path = folder / f".nexo-{secrets.token_hex(8)}.part"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield path
    finally:
        _remove(path)
        os.close(descriptor)


def _remove_left(folder: Path) -> None:
    """A part that is not locked has lost its process."""
    for path in folder.glob(_NAMES):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(descriptor)


def _remove(path: Path) -> None:
    for one in (path, *path.parent.glob(f"{path.name}-*")):  # an engine's own files beside it
        one.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Return when a file or the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_name(path: Path) -> Path:
    """Returns this path, or one with a number after it if that exists."""
    number = 1
    found = path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found
