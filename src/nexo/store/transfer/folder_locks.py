"""Locks of the folders of embedded databases: no server starts on one that is being copied."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.data_folder import locked_folder
from nexo.store.transfer.progress_record import TransferRefused


@contextmanager
def lock_folders(*urls: StoreUrl) -> Iterator[None]:
    """Hold the locks of embedded databases' folders. One that cannot be written needs none: no server could use it."""
    folders = {url.path.parent.absolute() for url in urls if url.is_embedded}
    with lock_paths(*(folder for folder in folders if not folder.exists() or os.access(folder, os.W_OK))):
        yield


@contextmanager
def lock_paths(*folders: Path) -> Iterator[None]:
    """Hold the locks of folders; raises TransferRefused while a server holds one."""
    with ExitStack() as stack:
        for folder in sorted({folder.absolute() for folder in folders}):
            _hold(stack, folder)
        yield


def _hold(stack: ExitStack, folder: Path) -> None:
    try:
        stack.enter_context(locked_folder(folder))
    except StartupError as error:
        if not isinstance(error.__cause__, BlockingIOError):
            raise
        raise TransferRefused(
            f"the folder {folder} is in use by a server, or by another copy: stop it first"
        ) from error
