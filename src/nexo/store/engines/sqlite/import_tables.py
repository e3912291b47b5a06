"""A file of t_* tables, made of data that is in no database, for `store.legacy` to import.

It is written under another name and renamed when it is complete, so that a run which was killed finds all of it or
nothing. Only its owner may read it: it holds messages.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nexo.config import StoreUrl
from nexo.errors import StartupError

Note = tuple[str, str, int]  # kind, place, count: what does not come along

_TABLES = """
CREATE TABLE t_user (id TEXT PRIMARY KEY, nickname TEXT, avatar_url TEXT, created_at INTEGER);
CREATE TABLE t_single_chat (id TEXT PRIMARY KEY, user1_id TEXT, user2_id TEXT, created_at INTEGER);
CREATE TABLE t_single_chat_member (single_chat_id TEXT, user_id TEXT, last_delivered_msg_id INTEGER,
  last_read_msg_id INTEGER, mute_until INTEGER, last_delivered_msg_seq INTEGER, last_read_msg_seq INTEGER,
  PRIMARY KEY (single_chat_id, user_id));
CREATE TABLE t_group (id TEXT PRIMARY KEY, name TEXT, avatar_url TEXT, created_by TEXT, created_at INTEGER,
  nexo_join_policy TEXT);
CREATE TABLE t_group_member (group_id TEXT, user_id TEXT, last_delivered_msg_id INTEGER, last_read_msg_id INTEGER,
  role INTEGER, join_at INTEGER, mute_until INTEGER, speak_mute_until INTEGER, last_delivered_msg_seq INTEGER,
  last_read_msg_seq INTEGER, PRIMARY KEY (group_id, user_id));
CREATE TABLE found (conv TEXT, seq INTEGER, at INTEGER, from_id TEXT, to_id TEXT, group_id TEXT, msg_type INTEGER,
  content TEXT, status INTEGER, client_msg_id TEXT, extra TEXT, mentions TEXT, PRIMARY KEY (conv, seq)) WITHOUT ROWID;
CREATE TABLE notes (kind TEXT, place TEXT, count INTEGER);
CREATE TABLE made_of (digest TEXT);
"""
_NUMBER = """
CREATE TABLE t_message (id INTEGER PRIMARY KEY, single_chat_id TEXT, group_id TEXT, from_user_id TEXT, content TEXT,
  to_user_id TEXT, chat_type INTEGER, msg_type INTEGER, status INTEGER, client_msg_id TEXT, created_at INTEGER,
  msg_seq INTEGER, nexo_extra TEXT);
CREATE TABLE t_message_mention (message_id INTEGER, mentioned_user_id TEXT, mention_type INTEGER);
CREATE TABLE numbered AS SELECT row_number() OVER (ORDER BY placed_at, conv, seq) AS id, conv, seq FROM
  (SELECT conv, seq, max(at) OVER (PARTITION BY conv ORDER BY seq) AS placed_at FROM found);
CREATE INDEX numbered_by_id ON numbered (id);
INSERT INTO t_message SELECT n.id, CASE WHEN f.group_id IS NULL THEN f.conv END, f.group_id, f.from_id, f.content,
  f.to_id, CASE WHEN f.group_id IS NULL THEN 1 ELSE 2 END, f.msg_type, f.status, f.client_msg_id, f.at, f.seq, f.extra
  FROM numbered n JOIN found f ON f.conv=n.conv AND f.seq=n.seq ORDER BY n.id;
INSERT INTO t_message_mention SELECT n.id, j.value, CASE WHEN j.value='AtAllTag' THEN 3 ELSE 1 END
  FROM numbered n JOIN found f ON f.conv=n.conv AND f.seq=n.seq, json_each(f.mentions) j WHERE f.mentions IS NOT NULL;
DROP TABLE numbered;
DROP TABLE found;
"""


class ImportTables:
    """The tables while they are filled. Of two rows with one key the first counts."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def add(self, table: str, *values: Any) -> bool:
        """Returns whether the row is new."""
        marks = ",".join("?" * len(values))
        return self._database.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values).rowcount > 0

    def silence(self, conversation: str, group_id: str, user_id: str, until: int) -> None:
        """Note that a member of a group, or of a chat of two, gets no notifications until then."""
        self._change("mute_until=?", conversation, group_id, user_id, until)

    def read(self, conversation: str, group_id: str, user_id: str, seq: int) -> None:
        """Note how far a member has read."""
        self._change("last_delivered_msg_seq=?,last_read_msg_seq=?", conversation, group_id, user_id, seq, seq)

    def _change(self, change: str, conversation: str, group_id: str, user_id: str, *values: int) -> None:
        table, key = ("t_group_member", "group_id") if group_id else ("t_single_chat_member", "single_chat_id")
        self._database.execute(
            f"UPDATE {table} SET {change} WHERE {key}=? AND user_id=?", (*values, group_id or conversation, user_id)
        )


def url_of(path: Path) -> StoreUrl:
    return StoreUrl(engine="sqlite", path=path)


def made_tables(path: Path, digest: str, fill: Callable[[ImportTables], list[Note]]) -> list[Note]:
    """Have the file filled, unless it is complete and made of the same data. Returns what `fill` returned."""
    if path.exists():
        notes = _complete(path, digest)
        if notes is not None:
            return notes
        path.unlink()
    half = path.with_name(path.name + ".half")
    half.unlink(missing_ok=True)
    os.close(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    database = sqlite3.connect(half, isolation_level=None)
    try:
        database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES)
        database.execute("BEGIN")
        notes = fill(ImportTables(database))
        database.execute("COMMIT")
        database.executescript(_NUMBER)
        database.executemany("INSERT INTO notes VALUES (?,?,?)", notes)
        database.execute("INSERT INTO made_of VALUES (?)", (digest,))
    finally:
        database.close()
    half.rename(path)
    return notes


def _complete(path: Path, digest: str) -> list[Note] | None:
    database = sqlite3.connect(path)
    try:
        if database.execute("SELECT digest FROM made_of").fetchall() == [(digest,)]:
            return [(row[0], row[1], row[2]) for row in database.execute("SELECT kind,place,count FROM notes")]
    except sqlite3.DatabaseError:
        raise StartupError(f"{path} is no file of an import: choose another one with --work") from None
    finally:
        database.close()
    return None
