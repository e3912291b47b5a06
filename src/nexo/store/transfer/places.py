"""The folders of embedded databases: whoever copies one holds its lock, so that no server starts meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.folder import locked_folder
from nexo.store.transfer.record import Refused


@contextmanager
def held(*urls: StoreUrl) -> Iterator[None]:
    """Lock the folders of those that are files. One that cannot be written needs no lock: no server could use it."""
    folders = {url.path.parent.absolute() for url in urls if url.engine == "sqlite"}
    with ExitStack() as stack:
        for folder in sorted(folders):
            if folder.exists() and not os.access(folder, os.W_OK):
                continue
            _hold(stack, folder)
        yield


def _hold(stack: ExitStack, folder: Path) -> None:
    try:
        stack.enter_context(locked_folder(folder))
    except StartupError as error:
        if not isinstance(error.__cause__, BlockingIOError):
            raise
        raise Refused(f"the folder {folder} is in use by a server, or by another copy: stop it first") from error
