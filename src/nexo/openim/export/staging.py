"""An export of OpenIM as a file of t_* tables, which `store.legacy` imports.

Seqs, cursors and recalls have a place there.
Collections: user, group, group_member, conversation, msg (documents of 100 messages of a conversation), seq_user. The
file is made again unless it is complete and of the same export, so that a run which was killed finds the same rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

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


class Tables(Protocol):
    """The tables to fill: `store.engines.sqlite.import_tables`. Of two rows with one key the first counts."""

    def add(self, table: str, *values: Any) -> bool: ...
    def silence(self, conversation: str, group_id: str, user_id: str, until: int) -> None: ...
    def read(self, conversation: str, group_id: str, user_id: str, seq: int) -> None: ...


def digest_of(folder: Path) -> str:
    """Returns what changes whenever a file of the export does."""
    found = hashlib.blake2b(digest_size=16)
    for name in (*COLLECTIONS, *NOT_IMPORTED):
        path = find(folder, name)
        if path is not None:
            known = path.stat()
            found.update(f"{path.name}:{known.st_size}:{known.st_mtime_ns};".encode())
    return found.hexdigest()


def check_export(folder: Path) -> None:
    for name in ("user", "msg"):
        if find(folder, name) is None:
            raise StartupError(f"there is no {name}.bson or {name}.json in {folder}: is this the export of OpenIM?")


def fill(folder: Path, tables: Tables, progress: Progress) -> list[tuple[str, str, int]]:
    """Fill the tables. Returns what does not come along: kind, place, count."""
    staging = _Staging(tables, folder, progress)
    staging.run()
    return sorted((kind, place, count) for (kind, place), count in staging.notes.items())


class _Staging:
    def __init__(self, tables: Tables, folder: Path, progress: Progress) -> None:
        self._tables = tables
        self._add = tables.add
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
            self._tables.silence(name, _text(found, "group_id") if kind == _GROUP else "", owner, silent)

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
        self._tables.read(name, name[3:] if name.startswith("sg_") else "", user_id, read)

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
