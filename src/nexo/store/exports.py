"""Exports as scripts: everything that a user may see, as parts of one gzip file of JSON lines.

A portion is read without a lock, packed, and written together with the position behind it, if that is still where the
portion began. So any instance may do the next portion, and a crash repeats one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from nexo.core.people import Export, ExportStatus
from nexo.core.profile_shapes import user_shape
from nexo.core.shapes import message_shape
from nexo.errors import NexoError
from nexo.store import history, rows
from nexo.store.accounts import list_blocks, read_user
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

PAGE = 200
PORTION_BYTES = 512 * 1024
PAGES_MAX = 50  # of one portion: many conversations have a few messages only

_encode = msgspec.json.Encoder().encode
_EXPORT = rows.columns(Export.__struct_fields__)


class Position(NamedTuple):
    export_id: str
    parts: int
    conv: int
    next_seq: int  # in that conversation; 0: it is done


class Portion(NamedTuple):
    lines: bytes
    messages: int
    conv: int
    next_seq: int
    is_last: bool


def begin(sql: Sql, user_id: str, export_id: str, keep_ms: int) -> Script[Export]:
    """Returns the export that runs, or begins one in place of the last."""
    if not (yield query(f"SELECT 1 FROM users WHERE user_id=? AND deleted_at=0{sql.for_update}", user_id)):
        raise NexoError("user_deleted")
    found = yield query(f"SELECT {_EXPORT} FROM exports WHERE user_id=?", user_id)
    if found and (found[0][1] == ExportStatus.RUNNING or found[0][0] == export_id):
        return Export(*found[0])
    now_ms = yield NOW
    yield do("DELETE FROM export_parts WHERE user_id=?", user_id)
    yield do("DELETE FROM exports WHERE user_id=?", user_id)
    export = Export(export_id, int(ExportStatus.RUNNING), 0, 0, 0, now_ms, now_ms + keep_ms)
    names = ("user_id", *Export.__struct_fields__)
    yield do(
        f"INSERT INTO exports ({','.join(names)}) VALUES ({','.join('?' * len(names))})",
        user_id,
        *(getattr(export, name) for name in Export.__struct_fields__),
    )
    return export


def read(user_id: str) -> Script[Export]:
    """Returns the state of the last export; raises `not_found` without one, or when its time is over."""
    found = yield query(f"SELECT {_EXPORT} FROM exports WHERE user_id=? AND expires_at>?", user_id, (yield NOW))
    if not found:
        raise NexoError("not_found", "There is no export; begin one first")
    return Export(*found[0])


def read_part(user_id: str, export_id: str, part: int) -> Script[str | None]:
    found = yield query(
        "SELECT p.data FROM export_parts p JOIN exports e ON e.user_id=p.user_id "
        "WHERE p.user_id=? AND p.part=? AND e.export_id=?",
        user_id,
        part,
        export_id,
    )
    return found[0][0] if found else None


def waiting() -> Script[str | None]:
    """Returns a user whose export is not done, the oldest first."""
    running = int(ExportStatus.RUNNING)
    found = yield query("SELECT user_id FROM exports WHERE status=? ORDER BY created_at,user_id LIMIT 1", running)
    return found[0][0] if found else None


def position(user_id: str) -> Script[Position | None]:
    found = yield query(
        "SELECT export_id,parts,conv,next_seq FROM exports WHERE user_id=? AND status=?",
        user_id,
        int(ExportStatus.RUNNING),
    )
    return Position(*found[0]) if found else None


def read_portion(sql: Sql, user_id: str, at: Position) -> Script[Portion]:
    """Returns what follows a position, through the same gate as every reading of this user."""
    lines: list[bytes] = [] if at.parts else (yield from _profile(user_id))
    size = sum(map(len, lines))
    conv, next_seq, messages = at.conv, at.next_seq, 0
    for _ in range(PAGES_MAX):
        if not next_seq:
            found = yield query(
                "SELECT m.conv,c.conversation_id FROM members m JOIN conversations c ON c.id=m.conv "
                "WHERE m.user_id=? AND m.conv>? AND c.head_seq>0 ORDER BY m.conv LIMIT 1",
                user_id,
                conv,
            )
            if not found:
                return Portion(_joined(lines), messages, conv, 0, True)
            conv, next_seq = found[0][0], 1
            lines.append(_encode({"type": "conversation", "conversation_id": found[0][1]}))
        ((name,),) = yield query("SELECT conversation_id FROM conversations WHERE id=?", conv)
        page = yield from history.pull(sql, user_id, name, next_seq, None, PAGE, PORTION_BYTES)
        for message in page.messages:
            lines.append(_encode({"type": "message", "message": message_shape(message)}))
            size += len(lines[-1])
        messages += len(page.messages)
        next_seq = page.next_seq or 0 if page.has_more else 0
        if size >= PORTION_BYTES:
            break
    return Portion(_joined(lines), messages, conv, next_seq, False)


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _profile(user_id: str) -> Script[list[bytes]]:
    """Returns the first lines: the profile, and the lists that are not messages."""
    user = yield from read_user(user_id)
    lines: list[Any] = [{"type": "user", "user": user_shape(user)}]
    contacts = yield query(
        "SELECT contact_id,remark,created_at FROM contacts WHERE user_id=? ORDER BY contact_id", user_id
    )
    lines += [{"type": "contact", "user_id": row[0], "remark": row[1], "created_at": row[2]} for row in contacts]
    lines += [{"type": "block", "user_id": other} for other in (yield from list_blocks(user_id))]
    groups = yield query(
        "SELECT g.group_id,g.name,m.joined_at,m.group_nickname,m.group_avatar,m.extra FROM members m "
        "JOIN chat_groups g ON g.conv=m.conv WHERE m.user_id=? AND m.status=0 ORDER BY m.conv",
        user_id,
    )
    for group_id, name, joined_at, nickname, avatar, extra in groups:
        own = {"group_nickname": nickname, "group_avatar": avatar, "extra": Raw(extra.encode()) if extra else None}
        lines.append({"type": "group", "group_id": group_id, "name": name, "joined_at": joined_at, **own})
    sessions = yield query(
        "SELECT device_id,platform_id,address,created_at,last_seen_at FROM sessions WHERE user_id=? AND revoked_at=0 "
        "ORDER BY created_at,sid",
        user_id,
    )
    names = ("device_id", "platform_id", "address", "created_at", "last_seen_at")
    lines += [{"type": "session", **dict(zip(names, row, strict=True))} for row in sessions]
    return [_encode(line) for line in lines]


def write_portion(
    sql: Sql, user_id: str, at: Position, portion: Portion, data: str, size: int, max_bytes: int
) -> Script[None]:
    """Appends a packed portion (base64), unless another instance was faster. A file that gets too large is given up."""
    found = yield query(
        f"SELECT export_id,parts,size FROM exports WHERE user_id=? AND status=?{sql.for_update}",
        user_id,
        int(ExportStatus.RUNNING),
    )
    if not found or (found[0][0], found[0][1]) != (at.export_id, at.parts):
        return
    if found[0][2] + size > max_bytes:
        yield do("DELETE FROM export_parts WHERE user_id=?", user_id)
        yield do("UPDATE exports SET status=?,size=0,parts=0 WHERE user_id=?", int(ExportStatus.TOO_LARGE), user_id)
        return
    yield do("INSERT INTO export_parts (user_id,part,data) VALUES (?,?,?)", user_id, at.parts, data)
    yield do(
        "UPDATE exports SET status=?,parts=parts+1,conv=?,next_seq=?,messages=messages+?,size=size+? WHERE user_id=?",
        int(ExportStatus.DONE if portion.is_last else ExportStatus.RUNNING),
        portion.conv,
        portion.next_seq,
        portion.messages,
        size,
        user_id,
    )


def trim(sql: Sql) -> Script[int]:
    """Deletes one export whose time is over. Returns how many were deleted."""
    found = yield query("SELECT user_id FROM exports WHERE expires_at<=? ORDER BY expires_at LIMIT 1", (yield NOW))
    for (user_id,) in found:
        yield query(f"SELECT 1 FROM exports WHERE user_id=?{sql.for_update}", user_id)
        yield do("DELETE FROM export_parts WHERE user_id=?", user_id)
        yield do("DELETE FROM exports WHERE user_id=?", user_id)
    return len(found)
