"""An export of OpenIM as a file of t_* tables, which `store.legacy` imports.

Seqs, cursors and recalls have a place there.
Collections: user, group, group_member, conversation, msg (documents of 100 messages of a conversation), seq_user. The
file is made again unless it is complete and of the same export, so that a run which was killed finds the same rows.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from nexo.core.model import MsgType
from nexo.errors import NexoError, StartupError
from nexo.openim.export.documents import documents, find
from nexo.wire.openim.content import FIRST_NOTIFICATION, TEXT, send_of

COLLECTIONS = ("user", "group", "group_member", "conversation", "msg", "seq_user")
NOT_IMPORTED = ("friend", "friend_request", "black", "group_request")
RECALLED = 4  # t_message.status
_DISMISSED = 2
_BATCH = 5000
_FOREVER_MS = 253_402_300_799_000
_ROLES = {100: 1, 60: 2}  # of roleLevel; t_group_member.role
_JOIN = {0: "approval", 1: "invite", 2: "open"}  # of need_verification
_SINGLE, _GROUP = 1, 3
_encode = msgspec.json.encode

Progress = Callable[[str, int, int], None]

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


def digest_of(folder: Path) -> str:
    """Returns what changes whenever a file of the export does."""
    found = hashlib.blake2b(digest_size=16)
    for name in (*COLLECTIONS, *NOT_IMPORTED):
        path = find(folder, name)
        if path is not None:
            known = path.stat()
            found.update(f"{path.name}:{known.st_size}:{known.st_mtime_ns};".encode())
    return found.hexdigest()


def stage(folder: Path, target: Path, progress: Progress) -> list[tuple[str, str, int]]:
    """Make the file of t_* tables, or find it complete. Returns what does not come along: kind, place, count."""
    for name in ("user", "msg"):
        if find(folder, name) is None:
            raise StartupError(f"there is no {name}.bson or {name}.json in {folder}: is this the export of OpenIM?")
    digest = digest_of(folder)
    if target.exists():
        notes = _complete(target, digest)
        if notes is not None:
            return notes
        target.unlink()
    half = target.with_name(target.name + ".half")
    half.unlink(missing_ok=True)
    os.close(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # it holds messages
    database = sqlite3.connect(half, isolation_level=None)
    try:
        database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES)
        staging = _Staging(database, folder, progress)
        database.execute("BEGIN")
        staging.run()
        database.execute("COMMIT")
        database.executescript(_NUMBER)
        notes = sorted((kind, place, count) for (kind, place), count in staging.notes.items())
        database.executemany("INSERT INTO notes VALUES (?,?,?)", notes)
        database.execute("INSERT INTO made_of VALUES (?)", (digest,))
    finally:
        database.close()
    half.rename(target)
    return notes


def _complete(target: Path, digest: str) -> list[tuple[str, str, int]] | None:
    database = sqlite3.connect(target)
    try:
        if database.execute("SELECT digest FROM made_of").fetchall() == [(digest,)]:
            return [tuple(row) for row in database.execute("SELECT kind,place,count FROM notes ORDER BY 1,2")]
    except sqlite3.DatabaseError:
        raise StartupError(f"{target} is no file of an import: choose another one with --work") from None
    finally:
        database.close()
    return None


class _Staging:
    def __init__(self, database: sqlite3.Connection, folder: Path, progress: Progress) -> None:
        self._database = database
        self._folder = folder
        self._progress = progress
        self._dismissed: set[str] = set()
        self._pairs: set[str] = set()
        self.notes: Counter[tuple[str, str]] = Counter()

    def run(self) -> None:
        for name in COLLECTIONS:
            collection = getattr(self, f"_{name}")
            for count, document in enumerate(documents(self._folder, name), 1):
                collection(document)
                if count % _BATCH == 0:
                    self._progress(f"reading {name}", count, count)
        for name in NOT_IMPORTED:
            count = sum(1 for _ in documents(self._folder, name))
            if count:
                self.notes["table_not_imported", name] += count

    def _add(self, table: str, *values: Any) -> bool:
        """Returns whether the row is new; of two rows with one key the first counts."""
        marks = ",".join("?" * len(values))
        return self._database.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values).rowcount > 0

    def _user(self, found: dict[str, Any]) -> None:
        shown = _text(found, "nickname"), _text(found, "face_url"), _number(found, "create_time")
        self._add("t_user", _text(found, "user_id"), *shown)

    def _group(self, found: dict[str, Any]) -> None:
        group_id = _text(found, "group_id")
        if _number(found, "status") == _DISMISSED:
            self._dismissed.add(group_id)
            self.notes["group_left_out", group_id] += 1
            return
        shown = _text(found, "group_name"), _text(found, "face_url"), _text(found, "creator_user_id") or None
        policy = _JOIN.get(_number(found, "need_verification"), "approval")
        self._add("t_group", group_id, *shown, _number(found, "create_time"), policy)

    def _group_member(self, found: dict[str, Any]) -> None:
        group_id = _text(found, "group_id")
        if group_id in self._dismissed:
            return
        role, joined = _ROLES.get(_number(found, "role_level"), 3), _number(found, "join_time")
        muted = _number(found, "mute_end_time")
        self._add("t_group_member", group_id, _text(found, "user_id"), 0, 0, role, joined, None, muted, 0, 0)

    def _conversation(self, found: dict[str, Any]) -> None:
        """A conversation as one of its members has it."""
        owner, name = _text(found, "owner_user_id"), _text(found, "conversation_id")
        silent = _FOREVER_MS if _number(found, "recv_msg_opt") else None
        kind = _number(found, "conversation_type")
        if found.get("is_pinned"):
            self.notes["setting_left_out", "conversation.is_pinned"] += 1
        if kind == _SINGLE:
            peer = _text(found, "user_id")
            if owner and peer and owner != peer:
                self._pair(name, owner, peer)
                self._add("t_single_chat_member", name, owner, 0, 0, silent, 0, 0)
                if silent:
                    where = "WHERE single_chat_id=? AND user_id=?"
                    self._database.execute(
                        f"UPDATE t_single_chat_member SET mute_until=? {where}", (silent, name, owner)
                    )
        elif kind == _GROUP and silent:
            where = "WHERE group_id=? AND user_id=?"
            group_id = _text(found, "group_id")
            self._database.execute(f"UPDATE t_group_member SET mute_until=? {where}", (silent, group_id, owner))

    def _pair(self, name: str, one: str, other: str) -> None:
        if name not in self._pairs:
            self._pairs.add(name)
            self._add("t_single_chat", name, min(one, other), max(one, other), 0)
        for user_id in (one, other):
            self._add("t_single_chat_member", name, user_id, 0, 0, None, 0, 0)

    def _seq_user(self, found: dict[str, Any]) -> None:
        """How far a user has read a conversation."""
        name, user_id, read = _text(found, "conversation_id"), _text(found, "user_id"), _number(found, "read_seq")
        if _number(found, "min_seq") > 1:
            self.notes["clearing_left_out", "seq_user.min_seq"] += 1
        table, key = "t_single_chat_member", "single_chat_id"
        if name.startswith("sg_"):
            table, key, name = "t_group_member", "group_id", name[3:]
        self._database.execute(
            f"UPDATE {table} SET last_delivered_msg_seq=?,last_read_msg_seq=? WHERE {key}=? AND user_id=?",
            (read, read, name, user_id),
        )

    def _msg(self, found: dict[str, Any]) -> None:
        conversation = _text(found, "doc_id").rpartition(":")[0]
        if not conversation.startswith(("si_", "sg_")):
            self.notes["notification_left_out", "msg"] += len(_listed(found, "msgs"))
            return
        for item in _listed(found, "msgs"):
            if isinstance(item, dict) and isinstance(item.get("msg"), dict):
                self._message(conversation, item)

    def _message(self, conversation: str, item: dict[str, Any]) -> None:
        message: dict[str, Any] = item["msg"]
        kind, seq = _number(message, "content_type"), _number(message, "seq")
        if not seq:
            return  # a place that is not used yet
        is_recalled = isinstance(item.get("revoke"), dict) or kind == 2101
        if kind >= FIRST_NOTIFICATION and not is_recalled:
            self.notes["notification_left_out", "msg"] += 1
            return
        sender, receiver = _text(message, "send_id"), _text(message, "recv_id")
        group_id = conversation[3:] if conversation.startswith("sg_") else None
        if group_id in self._dismissed:
            self.notes["message_left_out", f"msg of the dismissed group {group_id}"] += 1
            return
        if group_id is None:
            if not sender or not receiver or sender == receiver:
                self.notes["message_left_out", "msg without two users"] += 1
                return
            self._pair(conversation, sender, receiver)
        if _listed(item, "del_list"):
            self.notes["deletion_left_out", "msg.del_list"] += 1
        msg_type, content, extra = _content(message, is_recalled)
        named = [name for name in _listed(message, "at_user_id_list") if isinstance(name, str)]
        mentions = _encode(named[:1000]).decode() if named and group_id is not None else None
        at = _number(message, "send_time") or _number(message, "create_time")
        status = RECALLED if is_recalled else 1
        ids = _text(message, "client_msg_id") or None
        place = (conversation, seq, at, sender or None, receiver or None, group_id)
        if not self._add("found", *place, msg_type, content, status, ids, extra, mentions):
            self.notes["message_left_out", "msg twice"] += 1


def _content(message: dict[str, Any], is_recalled: bool) -> tuple[int, str, str | None]:
    """Returns type and content as the legacy tables have them, and what is kept for OpenIM's clients."""
    text = _text(message, "content")
    if is_recalled:
        return int(MsgType.TEXT), "", None
    data = {
        "contentType": _number(message, "content_type") or TEXT,
        "content": text.encode("utf-8", "replace"),
        "sessionType": _SINGLE,
        "recvID": "",
        "groupID": "",
        "clientMsgID": "",
        "senderPlatformID": _number(message, "sender_platform_id"),
        "createTime": _number(message, "create_time"),
        "ex": _text(message, "ex"),
        "attachedInfo": _text(message, "attached_info"),
        "senderNickname": _text(message, "sender_nickname"),
        "senderFaceURL": _text(message, "sender_face_url"),
        "options": {name: value for name, value in _part(message, "options").items() if isinstance(value, bool)},
        "offlinePushInfo": None,
        "atUserIDList": [],
    }
    try:
        made = send_of(data, own_files=False)
    except NexoError:
        return int(MsgType.TEXT), text or f"[Message of type {data['contentType']}]", None
    extra = _encode(made.extra).decode()
    if made.msg_type in (MsgType.TEXT, MsgType.QUOTE):
        return int(MsgType.TEXT), made.content if isinstance(made.content, str) else "", extra
    return made.msg_type, _encode(made.content).decode(), extra


def _text(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    return value.replace("\x00", "") if isinstance(value, str) else ""


def _number(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    if isinstance(value, float):
        value = int(value)
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def _part(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _listed(found: dict[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    return value if isinstance(value, list) else []
