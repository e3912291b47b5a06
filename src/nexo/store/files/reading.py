"""Reading files, and who may: the owner, and every user who may see a message that names the file.

Permission by a message asks the visibility gate (`open_view`), as every other read does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexo.core.files import FileTotals, Measured, StoredFile
from nexo.core.model import MessageStatus
from nexo.core.visibility import is_visible
from nexo.errors import NexoError
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.history import open_view
from nexo.store.sql import Sql

MEASURED = ("mime", "width", "height", "duration_ms", "placeholder", "small_bytes", "medium_bytes")
_FILE = "f.file_id,f.owner_id,f.name,f.size,b.sha256,f.blob_name,f.created_at," + ",".join(
    f"b.{name}" for name in MEASURED
)
SELECT_FILES = f"SELECT {_FILE} FROM files f JOIN blobs b ON b.blob_name=f.blob_name"
CONVERSATIONS_ASKED = 200  # a file that is in more conversations of one user is found by these
_NORMAL = int(MessageStatus.NORMAL)


def file_of(row: Sequence[Any]) -> StoredFile:
    file_id, owner_id, name, size, sha256, blob, created_at, *measures = row
    return StoredFile(file_id, owner_id, name, size, sha256, blob, created_at, Measured(*measures))


def read_file(file_id: str) -> Script[StoredFile]:
    """Returns a file without checking the caller. Raises `file_not_found`."""
    found = yield query(f"{SELECT_FILES} WHERE f.file_id=?", file_id)
    if not found:
        raise NexoError("file_not_found")
    return file_of(found[0])


def read_files(sql: Sql, file_ids: Sequence[str]) -> Script[dict[str, StoredFile]]:
    """Returns the files that exist."""
    chosen = sql.one_of("f.file_id", file_ids)
    found = yield query(f"{SELECT_FILES} WHERE {chosen.sql}", *chosen.params)
    return {row[0]: file_of(row) for row in found}


def read_for(user_id: str, file_id: str) -> Script[StoredFile]:
    """Returns a file that this user may read. Raises `file_not_found`, also for one that may not be read."""
    file = yield from read_file(file_id)
    if file.owner_id != user_id and not (yield from is_avatar(file_id)) and not (yield from is_seen(user_id, file_id)):
        raise NexoError("file_not_found")
    return file


def read_open(file_id: str) -> Script[StoredFile]:
    """Returns a file that needs no permission: a picture of a profile."""
    file = yield from read_file(file_id)
    if not (yield from is_avatar(file_id)):
        raise NexoError("file_not_found")
    return file


def read_by_message(file_id: str, server_msg_id: int) -> Script[StoredFile]:
    """Returns a file by an address that was handed out with a message, which must still have its content."""
    file = yield from read_file(file_id)
    named = yield query(
        "SELECT 1 FROM file_uses u JOIN messages m ON m.server_msg_id=u.server_msg_id "
        f"WHERE u.server_msg_id=? AND u.file_id=? AND u.ended_at=0 AND m.status={_NORMAL}",
        server_msg_id,
        file_id,
    )
    if not named:
        raise NexoError("file_not_found", "The message that named this file is gone")
    return file


def is_avatar(file_id: str) -> Script[bool]:
    return bool((yield query("SELECT 1 FROM file_avatars WHERE file_id=? LIMIT 1", file_id)))


def is_seen(user_id: str, file_id: str) -> Script[bool]:
    """Returns whether the user may see a message that names the file."""
    names = yield query(
        "SELECT DISTINCT c.conversation_id FROM file_uses u JOIN conversations c ON c.id=u.conv "
        "JOIN members b ON b.conv=u.conv AND b.user_id=? "
        f"WHERE u.file_id=? AND u.ended_at=0 LIMIT {CONVERSATIONS_ASKED}",
        user_id,
        file_id,
    )
    for (name,) in names:
        view = yield from open_view(user_id, name)
        assert view.conversation is not None
        seqs = yield query(
            "SELECT u.seq FROM file_uses u JOIN messages m ON m.server_msg_id=u.server_msg_id "
            f"WHERE u.file_id=? AND u.conv=? AND u.ended_at=0 AND m.status={_NORMAL}",
            file_id,
            view.conversation.id,
        )
        if any(is_visible(view.ranges, seq) for (seq,) in seqs):
            return True
    return False


def list_files(owner_id: str, after: str, limit: int) -> Script[list[StoredFile]]:
    """Returns a page in the order of ids; of one owner unless that is empty."""
    where = "f.file_id>?" + (" AND f.owner_id=?" if owner_id else "")
    params = (after, owner_id) if owner_id else (after,)
    found = yield query(f"{SELECT_FILES} WHERE {where} ORDER BY f.file_id LIMIT {int(limit)}", *params)
    return [file_of(row) for row in found]


def totals() -> Script[FileTotals]:
    ((files,),) = yield query("SELECT COUNT(*) FROM files")
    ((blobs, size),) = yield query("SELECT COUNT(*),COALESCE(SUM(size),0) FROM blobs WHERE is_ready=1")
    return FileTotals(int(files), int(blobs), int(size))
