"""Files and blobs as rows: claimed, stored, deleted.

The bytes of a file are written between two transactions. The first one claims a blob, a row with a name of its own
that is never used again; the second one makes the file. A blob that no file refers to is deleted after its time, row
first: so bytes without a row are known (`blob_leftovers`), and bytes of a row are never deleted.
"""

from __future__ import annotations

import secrets

from msgspec import structs

from nexo.core.files import BlobClaim, Measured, StoredFile
from nexo.errors import NexoError
from nexo.store import audit
from nexo.store.engine import NOW, Script, do, many
from nexo.store.engine import rows as query
from nexo.store.files import uploads
from nexo.store.files.reading import MEASURED, SELECT_FILES, file_of
from nexo.store.files.uses import is_named
from nexo.store.journal import writing
from nexo.store.sql import Sql

STEP = 100
_MEASURES = ",".join(MEASURED)


def claim(sql: Sql, sha256: str, size: int, grace_ms: int) -> Script[BlobClaim]:
    """Claims the blob of a content, for longer than storing it may take. Raises Conflict when another upload of the
    same bytes claims it at the same moment."""
    now_ms = yield NOW
    found = yield query(
        f"SELECT blob_name,is_ready,free_at,{_MEASURES} FROM blobs WHERE sha256=?{sql.for_update}", sha256
    )
    if found:
        blob, is_ready, free_at, *measures = found[0]
        if free_at:
            yield do("UPDATE blobs SET free_at=? WHERE blob_name=?", now_ms + grace_ms, blob)
        return BlobClaim(blob, Measured(*measures) if is_ready else None)
    blob = f"{sha256}-{secrets.token_hex(4)}"
    yield do(
        "INSERT INTO blobs (blob_name,sha256,size,created_at,free_at) VALUES (?,?,?,?,?)",
        blob,
        sha256,
        size,
        now_ms,
        now_ms + grace_ms,
    )
    return BlobClaim(blob, None)


def store_file(sql: Sql, file: StoredFile, grace_ms: int, quota: int) -> Script[StoredFile | None]:
    """Makes a file of a claimed blob whose bytes are stored, and ends its upload. Returns None when the claim is gone
    by now, and the file itself when an earlier run of this script has made it."""
    if quota:
        yield query(f"SELECT user_id FROM users WHERE user_id=?{sql.for_update}", file.owner_id)
    locked = yield query(f"SELECT is_ready FROM blobs WHERE blob_name=?{sql.for_update}", file.blob)
    if not locked:
        return None
    known = yield query(f"{SELECT_FILES} WHERE f.file_id=?", file.file_id)
    if known:
        return file_of(known[0])
    if quota:
        ((used,),) = yield query("SELECT COALESCE(SUM(size),0) FROM files WHERE owner_id=?", file.owner_id)
        if used + file.size > quota:
            raise NexoError("quota_exceeded", f"Your files may have {quota} bytes, and have {used}")
    now_ms = yield NOW
    if not locked[0][0]:
        assignments = ",".join(f"{name}=?" for name in MEASURED)
        measures = structs.astuple(file.measured)
        yield do(f"UPDATE blobs SET is_ready=1,{assignments} WHERE blob_name=?", *measures, file.blob)
    yield do("UPDATE blobs SET free_at=0 WHERE blob_name=?", file.blob)
    yield do(
        "INSERT INTO files (file_id,owner_id,blob_name,name,size,created_at,free_at) VALUES (?,?,?,?,?,?,?)",
        file.file_id,
        file.owner_id,
        file.blob,
        file.name,
        file.size,
        now_ms,
        now_ms + grace_ms,
    )
    if (yield query("SELECT 1 FROM uploads WHERE file_id=?", file.file_id)):
        yield from uploads.forget(file.file_id, now_ms)
    yield from writing.note(now_ms, writing.file(file.file_id, "stored", file.owner_id))
    return file_of((yield query(f"{SELECT_FILES} WHERE f.file_id=?", file.file_id))[0])


def delete_file(sql: Sql, file_id: str, actor: str) -> Script[None]:
    """Deletes a file on behalf of an operator, whatever names it. Messages keep its description."""
    found = yield query(f"SELECT owner_id FROM files WHERE file_id=?{sql.for_update}", file_id)
    if not found:
        raise NexoError("file_not_found")
    yield do("DELETE FROM file_uses WHERE file_id=?", file_id)
    yield do("DELETE FROM file_avatars WHERE file_id=?", file_id)
    yield from _delete_row(sql, file_id, found[0][0], (yield NOW))
    yield from audit.write(actor, "file.delete", file_id, {"owner_id": found[0][0]})


def delete_own(sql: Sql, file_id: str, owner_id: str) -> Script[None]:
    """Deletes a file of a user that nothing names. Raises `file_not_found`, and `no_permission` for one in use."""
    found = yield query(f"SELECT owner_id FROM files WHERE file_id=?{sql.for_update}", file_id)
    if not found or found[0][0] != owner_id:
        raise NexoError("file_not_found")
    if (yield from is_named(file_id)):
        raise NexoError("no_permission", "A message or a profile names this file: recall or change that first")
    yield from _delete_row(sql, file_id, owner_id, (yield NOW))


def collect_files(sql: Sql) -> Script[int]:
    """Deletes some files that nothing names and whose time is over. Returns how many were looked at."""
    now_ms = yield NOW
    due = yield query(f"SELECT file_id FROM files WHERE free_at>0 AND free_at<=? ORDER BY free_at LIMIT {STEP}", now_ms)
    for file_id in sorted(row[0] for row in due):
        found = yield query(f"SELECT owner_id,free_at FROM files WHERE file_id=?{sql.for_update}", file_id)
        if not found or not 0 < found[0][1] <= now_ms:
            continue
        if (yield from is_named(file_id)):
            yield do("UPDATE files SET free_at=0 WHERE file_id=?", file_id)
        else:
            yield from _delete_row(sql, file_id, found[0][0], now_ms)
    return len(due)


def _delete_row(sql: Sql, file_id: str, owner_id: str, now_ms: int) -> Script[None]:
    ((blob,),) = yield query("SELECT blob_name FROM files WHERE file_id=?", file_id)
    yield do("DELETE FROM files WHERE file_id=?", file_id)
    yield from writing.note(now_ms, writing.file(file_id, "deleted", owner_id))
    yield query(f"SELECT blob_name FROM blobs WHERE blob_name=?{sql.for_update}", blob)
    if not (yield query("SELECT 1 FROM files WHERE blob_name=? LIMIT 1", blob)):
        yield do("UPDATE blobs SET free_at=? WHERE blob_name=?", now_ms, blob)


def collect_blobs(sql: Sql, keep_ms: int) -> Script[int]:
    """Moves some blobs without a file, whose time is over, to the leftovers, which are deleted `keep_ms` later.
    Returns how many were looked at."""
    now_ms = yield NOW
    due = yield query(
        f"SELECT blob_name FROM blobs WHERE free_at>0 AND free_at<=? ORDER BY free_at LIMIT {STEP}", now_ms
    )
    for blob in sorted(row[0] for row in due):
        found = yield query(f"SELECT free_at FROM blobs WHERE blob_name=?{sql.for_update}", blob)
        if not found or not 0 < found[0][0] <= now_ms:
            continue
        if (yield query("SELECT 1 FROM files WHERE blob_name=? LIMIT 1", blob)):
            yield do("UPDATE blobs SET free_at=0 WHERE blob_name=?", blob)
            continue
        yield do("DELETE FROM blobs WHERE blob_name=?", blob)
        yield do("INSERT INTO blob_leftovers (blob_name,due_at) VALUES (?,?)", blob, now_ms + keep_ms)
    return len(due)


def leftovers() -> Script[list[str]]:
    """Returns some names of bytes that are to be deleted now."""
    found = yield query(
        f"SELECT blob_name FROM blob_leftovers WHERE due_at<=? ORDER BY due_at LIMIT {STEP}", (yield NOW)
    )
    return [row[0] for row in found]


def all_leftovers() -> Script[set[str]]:
    return {row[0] for row in (yield query("SELECT blob_name FROM blob_leftovers"))}


def overdue(late_ms: int, limit: int) -> Script[list[str]]:
    """Returns what should have been deleted longer ago than this; each as a line. For checks."""
    until_ms = (yield NOW) - late_ms
    found: list[str] = []
    for kind, name, table, column in (
        ("file", "file_id", "files", "free_at"),
        ("upload", "file_id", "uploads", "expires_at"),
        ("content", "blob_name", "blobs", "free_at"),
        ("bytes", "blob_name", "blob_leftovers", "due_at"),
    ):
        due = yield query(f"SELECT {name} FROM {table} WHERE {column}>0 AND {column}<=? LIMIT {int(limit)}", until_ms)
        found += [f"{kind} {row[0]}" for row in due]
    return found[:limit]


def forget_leftovers(blobs: list[str]) -> Script[None]:
    yield many("DELETE FROM blob_leftovers WHERE blob_name=?", [(blob,) for blob in sorted(blobs)])
