"""Whole SQLite files: copied, proven, folded into one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from nexo.store.engines.database_files import DatabaseFiles, FileDamaged, FileInUse, Pages
from nexo.store.engines.sqlite.transfer import open_read_only

NOTES = "nexo_backup"
_PAGES_AT_ONCE = 2000
_BUSY_S = 5.0
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SqliteFiles(DatabaseFiles):
    def copy(self, source: Path, target: Path, progress: Pages) -> None:
        with _damage(), closing(open_read_only(source)) as reader, closing(_open(target)) as writer:
            # A half-written target is thrown away, and a whole one is synced by the caller.
            writer.execute("PRAGMA journal_mode=OFF").fetchall()
            writer.execute("PRAGMA synchronous=OFF").fetchall()
            # One snapshot for all steps: without it, every write of a server would begin the copy anew.
            reader.execute("BEGIN")
            reader.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            reader.backup(writer, pages=_PAGES_AT_ONCE, progress=lambda _, left, total: progress(total - left, total))
        with _damage(), closing(_open(target)) as writer:  # the copy asks for a log beside it, as its source did
            writer.execute("PRAGMA journal_mode=DELETE").fetchall()

    def check_whole(self, path: Path) -> None:
        with _damage(), closing(_open(path)) as connection:
            found = [str(text) for (text,) in connection.execute("PRAGMA integrity_check(3)")]
        if found != ["ok"]:
            raise FileDamaged("; ".join(found))

    def read_revision(self, path: Path) -> str | None:
        with closing(_open(path)) as connection:
            if not _has(connection, "alembic_version"):
                return None
            found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        return str(found[0][0]) if found else None

    def write_notes(self, path: Path, notes: Mapping[str, str]) -> None:
        with closing(_open(path)) as connection:
            connection.execute(f"CREATE TABLE {NOTES} (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
            connection.executemany(f"INSERT INTO {NOTES} VALUES (?,?)", list(notes.items()))

    def take_notes(self, path: Path) -> dict[str, str]:
        with closing(_open(path)) as connection:
            if not _has(connection, NOTES):
                return {}
            notes = dict(connection.execute(f"SELECT name,value FROM {NOTES}").fetchall())
            connection.execute("PRAGMA secure_delete=ON").fetchall()
            connection.execute(f"DROP TABLE {NOTES}")
        return notes

    def fold(self, path: Path) -> bool:
        try:
            # Read first: to open a damaged file for writing would already change it, and remove its log at the end.
            with closing(open_read_only(path)) as reader:
                reader.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
            with closing(_open(path)) as connection:
                connection.execute("PRAGMA journal_mode=DELETE").fetchall()
        except sqlite3.DatabaseError as error:
            if _code(error) in _IN_USE:
                raise FileInUse(str(path)) from error
            return False
        return not any(one.exists() for one in self.beside(path))

    def beside(self, path: Path) -> list[Path]:
        return [path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")]


@contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if _code(error) not in _DAMAGED:
            raise
        raise FileDamaged(str(error)) from error


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)


def _has(connection: sqlite3.Connection, table: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", (table,)).fetchall())
