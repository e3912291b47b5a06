"""What the files of users need of the store."""

from __future__ import annotations

import builtins
from typing import NamedTuple, Protocol

from nexo.core.files import BlobClaim, FileTotals, StoredFile, Upload


class UploadRoom(NamedTuple):
    """What one user may have under way."""

    uploads_max: int
    idle_ms: int  # an upload without progress for longer is ended when there is no room for a new one
    lifetime_ms: int
    quota: int  # 0: none


class BlobState(NamedTuple):
    """A blob as `nexo files check` compares it with the storage."""

    blob: str
    size: int
    is_ready: bool
    small_bytes: int | None
    medium_bytes: int | None
    is_used: bool  # a file refers to it


class FileStore(Protocol):
    """Metadata of files. All times are the database's."""

    async def claim(self, sha256: str, size: int, grace_ms: int) -> BlobClaim:
        """BlobClaim the blob of a content before its bytes are stored; it is kept for `grace_ms` at least."""

    async def store(self, file: StoredFile, grace_ms: int, quota: int) -> StoredFile | None:
        """Make a file of a claimed blob whose bytes are stored. Returns None when the claim has ended."""

    async def read(self, file_id: str) -> StoredFile: ...

    async def read_for(self, user_id: str, file_id: str) -> StoredFile:
        """Returns a file of this user's, of a profile, or of a message that the user may see. Raises
        `file_not_found`."""

    async def read_open(self, file_id: str) -> StoredFile:
        """Returns a picture of a profile."""

    async def read_by_message(self, file_id: str, server_msg_id: int) -> StoredFile:
        """Returns a file that this message names and still has."""

    async def delete(self, file_id: str, actor: str) -> None:
        """Delete a file for an operator, whatever names it."""

    async def delete_own(self, file_id: str, owner_id: str) -> None:
        """Delete a file that nothing names, for its owner."""

    async def begin_upload(
        self, file_id: str, owner_id: str, name: str, length: int, room: UploadRoom
    ) -> tuple[Upload, str]:
        """Returns the upload, and the id of an older one that was ended for it (empty: none)."""

    async def upload(self, file_id: str, owner_id: str) -> Upload: ...

    async def add_part(self, file_id: str, start: int, size: int, blob: str, lifetime_ms: int) -> bool:
        """Count a part whose bytes are durable, again when it has grown. Returns False when the upload has ended or got
        other bytes."""

    async def end_upload(self, file_id: str, owner_id: str) -> bool: ...

    async def collect(self, keep_uses_ms: int, keep_bytes_ms: int) -> int:
        """Delete rows that nothing needs any more, some of them. Returns how many were looked at: 0 when all is
        done. `keep_uses_ms`: how long moderators can read what recalled messages were; `keep_bytes_ms`: how long bytes
        outlive their row."""

    async def leftovers(self) -> builtins.list[str]:
        """Returns names of bytes that are to be deleted; a name that ends with a slash is a folder."""

    async def forget_leftovers(self, blobs: builtins.list[str]) -> None: ...

    async def open_uploads(self) -> set[str]: ...

    async def known_blobs(self, after: str, limit: int) -> builtins.list[BlobState]:
        """Returns a page of all blobs, in the order of their names."""

    async def all_leftovers(self) -> set[str]: ...

    async def broken_uses(self, limit: int) -> builtins.list[str]:
        """Returns messages that name a file which is not known, or whose use is not, each as a line."""

    async def overdue(self, late_ms: int, limit: int) -> builtins.list[str]:
        """Returns files, uploads and bytes that should have been deleted longer ago than this, each as a line."""

    async def list(self, owner_id: str, after: str, limit: int) -> builtins.list[StoredFile]: ...

    async def totals(self) -> FileTotals: ...
