"""Write a backup: the database and the signing secret in one file, proven before it gets its name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.backup.part_file import free_name, part_file, sync
from nexo.store.check import Report
from nexo.store.data_folder import check_database_exists
from nexo.store.engines.database_files import DatabaseFiles
from nexo.store.engines.registry import engine_kind
from nexo.store.migrate import HALF_DONE
from nexo.store.schema_version import newest
from nexo.store.transfer.progress_record import TransferRefused

NAME = "nexo-{}.backup"
FORMAT = "1"

Progress = Callable[[str, int, int], None]  # a stage, and how far it is
Verify = Callable[[StoreUrl], Report]  # asks the laws of `nexo check`


class ProvenFile(msgspec.Struct):
    """A database file that was read back."""

    revision: str
    laws_checked: bool  # of another version's schema, only the structure can be checked
    conversations: int = 0
    messages: int = 0
    findings: dict[str, int] = {}


class BackupReport(msgspec.Struct):
    path: Path
    size: int
    has_secret: bool
    proven: ProvenFile


def files_of(url: StoreUrl) -> DatabaseFiles:
    files = engine_kind(url).files
    assert files is not None, "the caller asks for embedded databases only"
    return files


def write_backup(
    url: StoreUrl, target: Path, notes: dict[str, str], *, progress: Progress, verify: Verify
) -> BackupReport:
    """Write a backup to a file, or under a name with the time into a folder. A server may be running. `notes` go along,
    among them the secret."""
    check_database_exists(url)
    if target.is_dir():
        target = free_name(target / NAME.format(stamp()))
    elif target.exists():
        raise TransferRefused(f"{target} exists already: name another file, or a folder to get a new one each time")
    folder = target.absolute().parent
    if not folder.is_dir():
        raise TransferRefused(f"there is no folder {folder} to write the backup to")
    files = files_of(url)
    try:
        with part_file(folder) as part:
            files.copy(url.path, part, lambda done, of: progress("copying", done, of))
            proven = prove(url, part, progress=progress, verify=verify)
            files.write_notes(part, notes | {"format": FORMAT, "revision": proven.revision})
            sync(part)
            size = part.stat().st_size
            os.rename(part, target)
            sync(folder)
    except OSError as error:
        raise StartupError(f"the backup cannot be written to {folder}: {error.strerror}") from error
    return BackupReport(target, size, "secret" in notes, proven)


def prove(url: StoreUrl, part: Path, *, progress: Progress, verify: Verify) -> ProvenFile:
    """Read a copy of a database back; raises FileDamaged when its structure is broken."""
    files = files_of(url)
    progress("reading back", 0, 1)
    files.check_whole(part)
    progress("reading back", 1, 1)
    revision = files.read_revision(part)
    if revision is None:
        raise TransferRefused("the file is a database, and none of Nexo's: it has no schema")
    if revision == HALF_DONE:
        raise TransferRefused(
            "the database holds half a copy: run the same `nexo copy-store` or `nexo import-legacy` again first"
        )
    if revision != newest():
        return ProvenFile(revision, False)
    report = verify(msgspec.structs.replace(url, path=part))
    return ProvenFile(revision, True, report.conversations, report.messages, report.counts)


def stamp() -> str:
    """Returns the time for names of files: UTC, to the second."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())
