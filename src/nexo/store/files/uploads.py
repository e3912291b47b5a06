"""Uploads in parts as rows. A part counts once its bytes are durable in the storage and its row is committed: so any
instance can go on, and after a crash the offset is that of the last committed part."""

from __future__ import annotations

from nexo.core.files import Upload, staged_in
from nexo.errors import NexoError
from nexo.ports.files import UploadRoom
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

STEP = 100
_UPLOAD = "file_id,owner_id,name,length,received,expires_at"


def begin(
    sql: Sql, file_id: str, owner_id: str, name: str, length: int, room: UploadRoom
) -> Script[tuple[Upload, str]]:
    """Begins an upload; uploads of one user begin one after another, so that the limit is exact. Returns it, and the id
    of an older one that was ended for it."""
    yield query(f"SELECT user_id FROM users WHERE user_id=?{sql.for_update}", owner_id)
    now_ms = yield NOW
    own = yield query(f"SELECT {_UPLOAD},touched_at FROM uploads WHERE owner_id=? ORDER BY touched_at", owner_id)
    for row in own:
        if row[0] == file_id:  # by an earlier run of this script
            return Upload(*row[:6]), ""
    running = [row for row in own if row[5] > now_ms]
    ended = ""
    if len(running) >= room.uploads_max:
        if now_ms - running[0][6] < room.idle_ms:
            raise NexoError("too_many_uploads", retry_after_ms=1000)
        ended = running[0][0]
        yield from forget(ended, now_ms)
    if room.quota:
        ((used,),) = yield query("SELECT COALESCE(SUM(size),0) FROM files WHERE owner_id=?", owner_id)
        promised = sum(row[3] for row in running if row[0] != ended)
        if used + promised + length > room.quota:
            raise NexoError("quota_exceeded", f"Your files may have {room.quota} bytes, and have {used + promised}")
    upload = Upload(file_id, owner_id, name, length, 0, now_ms + room.lifetime_ms)
    yield do(
        f"INSERT INTO uploads ({_UPLOAD},created_at,touched_at) VALUES (?,?,?,?,?,?,?,?)", *upload[:6], now_ms, now_ms
    )
    return upload, ended


def read(file_id: str, owner_id: str) -> Script[Upload]:
    """Returns an upload of this user with its parts. Raises `file_not_found`, `upload_expired`."""
    found = yield query(f"SELECT {_UPLOAD} FROM uploads WHERE file_id=? AND owner_id=?", file_id, owner_id)
    if not found:
        raise NexoError("file_not_found", "There is no such upload")
    upload = Upload(*found[0])
    if upload.expires_at <= (yield NOW):
        raise NexoError("upload_expired")
    parts = yield query("SELECT start,size,blob_name FROM upload_parts WHERE file_id=? ORDER BY start", file_id)
    return upload._replace(parts=tuple((int(start), int(size), blob) for start, size, blob in parts))


def add_part(sql: Sql, file_id: str, start: int, size: int, blob: str, lifetime_ms: int) -> Script[bool]:
    """Counts a part whose bytes are stored up to `size`; one that has grown is the same part. Returns False when the
    upload got other bytes, or has ended."""
    found = yield query(f"SELECT received,length FROM uploads WHERE file_id=?{sql.for_update}", file_id)
    if not found:
        return False
    known = yield query(
        "SELECT size FROM upload_parts WHERE file_id=? AND start=? AND blob_name=?", file_id, start, blob
    )
    before = known[0][0] if known else 0
    if known and before >= size:
        return True  # by an earlier run of this script
    received, length = found[0]
    if received != start + before or start + size > length:
        return False
    now_ms = yield NOW
    if known:
        yield do("UPDATE upload_parts SET size=? WHERE file_id=? AND start=?", size, file_id, start)
    else:
        yield do("INSERT INTO upload_parts (file_id,start,size,blob_name) VALUES (?,?,?,?)", file_id, start, size, blob)
    yield do(
        "UPDATE uploads SET received=?,touched_at=?,expires_at=? WHERE file_id=?",
        start + size,
        now_ms,
        now_ms + lifetime_ms,
        file_id,
    )
    return True


def end(sql: Sql, file_id: str, owner_id: str) -> Script[bool]:
    """Ends an upload of this user. Returns whether there was one."""
    found = yield query(
        f"SELECT file_id FROM uploads WHERE file_id=? AND owner_id=?{sql.for_update}", file_id, owner_id
    )
    if found:
        yield from forget(file_id, (yield NOW))
    return bool(found)


def expire() -> Script[int]:
    """Ends some uploads whose time is over. Returns how many."""
    now_ms = yield NOW
    due = yield query(f"SELECT file_id FROM uploads WHERE expires_at<=? ORDER BY expires_at LIMIT {STEP}", now_ms)
    for file_id in sorted(row[0] for row in due):
        yield from forget(file_id, now_ms)
    return len(due)


def open_ones() -> Script[set[str]]:
    return {row[0] for row in (yield query("SELECT file_id FROM uploads"))}


def forget(file_id: str, now_ms: int) -> Script[None]:
    """Deletes the rows of an upload; the bytes of its parts become a leftover of the storage."""
    yield do("DELETE FROM blob_leftovers WHERE blob_name=?", staged_in(file_id))
    yield do("INSERT INTO blob_leftovers (blob_name,due_at) VALUES (?,?)", staged_in(file_id), now_ms)
    yield do("DELETE FROM upload_parts WHERE file_id=?", file_id)
    yield do("DELETE FROM uploads WHERE file_id=?", file_id)
