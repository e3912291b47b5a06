"""Which messages and profiles name a file. A file is deleted only while nothing names it, under the lock of its row,
which every new use takes too."""

from __future__ import annotations

from typing import NamedTuple

from nexo.core.files import ADDRESS, NAMED, PREVIEWS, is_file_id
from nexo.errors import NexoError
from nexo.store.engine import NOW, Script, do, many
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

STEP = 200


class NewUse(NamedTuple):
    server_msg_id: int
    file_id: str
    conv: int
    seq: int


def add(uses: list[NewUse]) -> Script[None]:
    """Notes that stored messages name files, whose rows are locked."""
    yield many("INSERT INTO file_uses (server_msg_id,file_id,conv,seq) VALUES (?,?,?,?)", uses)
    yield many("UPDATE files SET free_at=0 WHERE file_id=?", [(file_id,) for file_id in sorted({u[1] for u in uses})])


def end(server_msg_id: int, now_ms: int) -> Script[None]:
    """Notes that a message has lost its content; its files stay as long as moderators can read it. To be called by
    every script that blanks a message of a media type."""
    yield do("UPDATE file_uses SET ended_at=? WHERE server_msg_id=? AND ended_at=0", now_ms, server_msg_id)


def drop_ended(sql: Sql, keep_ms: int) -> Script[int]:
    """Deletes some uses that ended longer ago than this, and frees files without any other. Returns how many."""
    now_ms = yield NOW
    found = yield query(
        f"SELECT server_msg_id,file_id FROM file_uses WHERE ended_at>0 AND ended_at<=? ORDER BY ended_at LIMIT {STEP}",
        now_ms - keep_ms,
    )
    for file_id in sorted({row[1] for row in found}):
        yield query(f"SELECT file_id FROM files WHERE file_id=?{sql.for_update}", file_id)
        gone = [(row[0], file_id) for row in found if row[1] == file_id]
        yield many("DELETE FROM file_uses WHERE server_msg_id=? AND file_id=?", gone)
        yield from free_if_unnamed(file_id, now_ms)
    return len(found)


def is_named(file_id: str) -> Script[bool]:
    if (yield query("SELECT 1 FROM file_uses WHERE file_id=? LIMIT 1", file_id)):
        return True
    return bool((yield query("SELECT 1 FROM file_avatars WHERE file_id=? LIMIT 1", file_id)))


def free_if_unnamed(file_id: str, now_ms: int) -> Script[None]:
    """Lets a file be deleted that nothing names any more. Its row is locked."""
    if not (yield from is_named(file_id)):
        yield do("UPDATE files SET free_at=? WHERE file_id=? AND free_at=0", now_ms, file_id)


def broken(limit: int) -> Script[list[str]]:
    """Returns messages that name a file without a row, or whose use has none; each as a line. For checks."""
    lost = yield query(
        "SELECT u.server_msg_id,u.file_id FROM file_uses u LEFT JOIN files f ON f.file_id=u.file_id "
        f"WHERE f.file_id IS NULL LIMIT {int(limit)}"
    )
    unnoted = yield query(
        "SELECT m.server_msg_id FROM messages m LEFT JOIN file_uses u ON u.server_msg_id=m.server_msg_id "
        "WHERE m.msg_type BETWEEN 2 AND 5 AND m.status=0 AND m.content LIKE ? AND u.file_id IS NULL "
        f"LIMIT {int(limit)}",
        NAMED + "%",
    )
    return [f"message {msg_id}: there is no file {file_id}" for msg_id, file_id in lost] + [
        f"message {msg_id}: its file was deleted, or is not noted" for (msg_id,) in unnoted
    ]


# -- pictures of profiles ------------------------------------------------------------------------------


def avatar_file(avatar: str) -> str:
    """Returns the file_id in the address of a picture; empty for an address of another server."""
    if not avatar.startswith(ADDRESS):
        return ""
    file_id, _, preview = avatar.removeprefix(ADDRESS).partition("/")
    if not is_file_id(file_id) or (preview and preview not in PREVIEWS):
        raise NexoError("bad_avatar", "avatar is an http or https address, or /files/ and a file_id")
    return file_id


def set_avatar(sql: Sql, subject: str, setter_id: str, avatar: str) -> Script[None]:
    """Notes the picture of a user or group, in the transaction that changes the profile. It must be an upload of the
    user who sets it, or the picture that is set already."""
    file_id = avatar_file(avatar)
    found = yield query("SELECT file_id FROM file_avatars WHERE subject=?", subject)
    old_id = found[0][0] if found else ""
    if file_id == old_id:
        return
    for locked in sorted({file_id, old_id} - {""}):
        found = yield query(f"SELECT owner_id,blob_name FROM files WHERE file_id=?{sql.for_update}", locked)
        if locked == file_id:
            if not found or found[0][0] != setter_id:
                raise NexoError("file_not_found", "A picture of a profile is a file that its user has uploaded")
            yield from _check_picture(found[0][1])
    yield do("DELETE FROM file_avatars WHERE subject=?", subject)
    if file_id:
        yield do("INSERT INTO file_avatars (subject,file_id) VALUES (?,?)", subject, file_id)
        yield do("UPDATE files SET free_at=0 WHERE file_id=?", file_id)
    if old_id:
        yield from free_if_unnamed(old_id, (yield NOW))


def _check_picture(blob: str) -> Script[None]:
    """Raises `bad_avatar` unless there are previews: any visitor may open it, so it can be a picture only."""
    if not (yield query("SELECT 1 FROM blobs WHERE blob_name=? AND small_bytes IS NOT NULL", blob)):
        raise NexoError("bad_avatar", "The picture of a profile is a file with a picture that can be shown")
