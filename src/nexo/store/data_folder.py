"""The data folder of the embedded default: one server at a time may use it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nexo.config import StoreUrl
from nexo.errors import StartupError


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the folder's lock. The kernel releases it when the process ends, also after a kill."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartupError(
            f"the data folder {folder} cannot be used: {error.strerror}; it must be a folder that the user which Nexo "
            "runs as may write to, or choose another with --data"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            raise StartupError(
                f"the data folder {folder} is in use by another server (process {holder or 'unknown'}): "
                "stop it, or choose another folder with --data"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def check_database_exists(url: StoreUrl) -> None:
    """Raise a StartupError for an embedded database without a file: a mistyped folder must not become a new one."""
    if url.is_embedded and not url.path.exists():
        raise StartupError(f"there is no database at {url.path}: is data.dir or store.url right?")
