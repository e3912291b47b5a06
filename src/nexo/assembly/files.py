"""The files of users, on an open store."""

from __future__ import annotations

import structlog

from nexo.config import Config
from nexo.files.checking import check_storage
from nexo.files.collecting import Collecting
from nexo.files.files import Files
from nexo.files.media.reader import Reader
from nexo.files.receiving import FileRules, Receiving
from nexo.files.serving import Serving
from nexo.files.storages import make_storage
from nexo.files.uploads import Uploads
from nexo.journal.housekeeping import Chore
from nexo.journal.journal import Journal
from nexo.service.filter import FilterFile
from nexo.store.store import Store

__all__ = ["Files", "add_chores", "make_files", "report_storage"]

log = structlog.get_logger()

HOUR_MS = 3_600_000
SWEEP_S = 6 * 3600.0
COUNT_S = 300.0


def make_files(config: Config, store: Store, words: FilterFile) -> Files:
    """Returns the files of this process."""
    storage, reader = make_storage(config), Reader(config)
    receiving = Receiving(store.files, storage, reader, FileRules.of(config), words)
    keep_uses_ms = config.recall.keep_days * 24 * HOUR_MS
    collecting = Collecting(store.files, storage, keep_uses_ms, config.files.deleted_keep_hours * HOUR_MS)
    return Files(storage, reader, Uploads(store.files, storage, receiving), Serving(store.files, storage), collecting)


def add_chores(files: Files, journal: Journal) -> None:
    """Let one instance delete files that are not needed any more."""
    journal.add_chore(Chore("files", files.collecting.step))
    journal.add_chore(Chore("file_orphans", files.collecting.sweep, SWEEP_S))
    journal.add_chore(Chore("file_totals", files.collecting.count, COUNT_S))


async def report_storage(files: Files) -> None:
    """Log at the start that the storage cannot be used. The server runs all the same: messages need no files."""
    trouble = await check_storage(files.storage)
    if trouble:
        log.warning("file_storage_failed", error=trouble)
