"""Restore a backup in place of an embedded database.

Whatever moment the process is killed at, the folder holds the old database or the restored one, each with what belongs
to it. The copy is complete and proven before the first change: the old database is folded into one file, so that no log
of it is left to be read into another file, gets a second name, and is replaced in one step.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store import migrate
from nexo.store.backup.part_file import free_name, part_file, sync
from nexo.store.backup.writing import FORMAT, Progress, ProvenFile, Verify, files_of, prove, stamp
from nexo.store.engines.database_files import FileInUse
from nexo.store.transfer.folder_locks import lock_paths
from nexo.store.transfer.progress_record import TransferRefused

_KEPT = "before"  # nexo.db.before-20261116-154300


class RestoreReport(msgspec.Struct):
    made_at: int  # 0: the file has no note of it
    kept: Path | None  # the database that was there
    secret_restored: bool
    proven: ProvenFile


def restore_backup(
    url: StoreUrl, backup: Path, *, data_dir: Path, secret: Path | None, progress: Progress, verify: Verify
) -> RestoreReport:
    """Put a backup in the place of a database. `secret` is the file for the signing secret; None when that is
    configured. Raises TransferRefused while a server uses the folder."""
    if not backup.is_file():
        raise TransferRefused(f"there is no file {backup}")
    if url.path.exists() and backup.samefile(url.path):
        raise TransferRefused(f"{backup} is the database itself, not a backup of it")
    folder = url.path.absolute().parent
    files = files_of(url)
    try:
        with lock_paths(data_dir, folder), part_file(folder) as part:
            files.copy(backup, part, lambda done, of: progress("copying", done, of))
            notes = files.take_notes(part)
            if notes.get("format", FORMAT) != FORMAT:
                raise TransferRefused(f"{backup} was made by a newer version of Nexo: restore it with that version")
            proven = prove(url, part, progress=progress, verify=verify)
            migrate.check_known(msgspec.structs.replace(url, path=backup), proven.revision)
            sync(part)
            give_to_owner(part, folder)
            for locked in (data_dir, folder):
                give_to_owner(locked / "lock", locked)
            secret_text = notes.get("secret", "")
            if secret is not None and secret_text:
                _put_secret(secret, secret_text)
            kept = _replace(url, part)
    except OSError as error:
        raise StartupError(f"{backup} cannot be restored to {folder}: {error.strerror}") from error
    return RestoreReport(int(notes.get("made_at", "0")), kept, secret is not None and bool(secret_text), proven)


def _replace(url: StoreUrl, part: Path) -> Path | None:
    """Put a complete file in the place of the database, and return the new name of the old one."""
    path, files = url.path, files_of(url)
    kept: Path | None = None
    name = f"{path.name}.{_KEPT}-{stamp()}"
    if path.exists():
        _drop_second_names(path)
        try:
            files.fold(path)
        except FileInUse as error:
            raise TransferRefused(f"another program has {path} open: end it first") from error
        kept = free_name(path.with_name(name))
    # Of a damaged database only: it is kept with all its parts, and they are first out of the way of the new one.
    for left in files.beside(path):
        if left.exists():
            os.rename(left, left.with_name(left.name.replace(path.name, kept.name if kept else name, 1)))
    if kept is not None:
        _name_again(path, kept)
    sync(path.parent)
    os.replace(part, path)
    sync(path.parent)
    return kept


def _drop_second_names(path: Path) -> None:
    """Remove names that a restore gave to the database and was killed before it replaced it."""
    for other in path.parent.glob(f"{path.name}.{_KEPT}-*"):
        if other.samefile(path):
            other.unlink()


def _name_again(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except OSError:  # a file system without links
        with part_file(path.parent) as part:
            shutil.copyfile(path, part)
            sync(part)
            os.rename(part, name)


def _put_secret(path: Path, text: str) -> None:
    old = path.read_text(encoding="ascii", errors="replace") if path.exists() else ""
    if old.strip() == text:
        return
    if old:
        _name_again(path, free_name(path.with_name(f"{path.name}.{_KEPT}-{stamp()}")))
    with part_file(path.absolute().parent) as part:
        part.write_text(f"{text}\n", encoding="ascii")
        sync(part)
        give_to_owner(part, path.absolute().parent)
        os.replace(part, path)
    sync(path.absolute().parent)


def give_to_owner(path: Path, folder: Path) -> None:
    """Files made by root in a folder of the server's user belong to that user: the server must be able to use them."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
