"""Files behind the port `FileStore`: each method runs one script on one database."""

from __future__ import annotations

import builtins

from nexo.core.files import BlobClaim, FileTotals, StoredFile, Upload
from nexo.ports.files import BlobState, UploadRoom
from nexo.store.database import Database
from nexo.store.engine import Conflict, Script
from nexo.store.engine import rows as query
from nexo.store.files import reading, storing, uploads, uses


class SqlFiles:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql

    async def claim(self, sha256: str, size: int, grace_ms: int) -> BlobClaim:
        while True:
            try:
                return await self._database.change(lambda: storing.claim(self._sql, sha256, size, grace_ms))
            except Conflict:  # another upload of the same bytes was faster: the second run finds its claim
                continue

    async def store(self, file: StoredFile, grace_ms: int, quota: int) -> StoredFile | None:
        return await self._database.change(lambda: storing.store_file(self._sql, file, grace_ms, quota))

    async def read(self, file_id: str) -> StoredFile:
        return await self._database.look(lambda: reading.read_file(file_id))

    async def read_for(self, user_id: str, file_id: str) -> StoredFile:
        return await self._database.look(lambda: reading.read_for(user_id, file_id))

    async def read_open(self, file_id: str) -> StoredFile:
        return await self._database.look(lambda: reading.read_open(file_id))

    async def read_by_message(self, file_id: str, server_msg_id: int) -> StoredFile:
        return await self._database.look(lambda: reading.read_by_message(file_id, server_msg_id))

    async def delete(self, file_id: str, actor: str) -> None:
        await self._database.change(lambda: storing.delete_file(self._sql, file_id, actor))

    async def delete_own(self, file_id: str, owner_id: str) -> None:
        await self._database.change(lambda: storing.delete_own(self._sql, file_id, owner_id))

    async def begin_upload(
        self, file_id: str, owner_id: str, name: str, length: int, room: UploadRoom
    ) -> tuple[Upload, str]:
        return await self._database.change(lambda: uploads.begin(self._sql, file_id, owner_id, name, length, room))

    async def upload(self, file_id: str, owner_id: str) -> Upload:
        return await self._database.look(lambda: uploads.read(file_id, owner_id))

    async def add_part(self, file_id: str, start: int, size: int, blob: str, lifetime_ms: int) -> bool:
        return await self._database.change(lambda: uploads.add_part(self._sql, file_id, start, size, blob, lifetime_ms))

    async def end_upload(self, file_id: str, owner_id: str) -> bool:
        return await self._database.change(lambda: uploads.end(self._sql, file_id, owner_id))

    async def collect(self, keep_uses_ms: int, keep_bytes_ms: int) -> int:
        done = await self._database.change(uploads.expire)
        done += await self._database.change(lambda: uses.drop_ended(self._sql, keep_uses_ms))
        done += await self._database.change(lambda: storing.collect_files(self._sql))
        return done + await self._database.change(lambda: storing.collect_blobs(self._sql, keep_bytes_ms))

    async def leftovers(self) -> builtins.list[str]:
        return await self._database.look(storing.leftovers)

    async def forget_leftovers(self, blobs: builtins.list[str]) -> None:
        await self._database.change(lambda: storing.forget_leftovers(blobs))

    async def open_uploads(self) -> set[str]:
        return await self._database.look(uploads.open_ones)

    async def known_blobs(self, after: str, limit: int) -> builtins.list[BlobState]:
        return await self._database.look(lambda: _known_blobs(after, limit))

    async def all_leftovers(self) -> set[str]:
        return await self._database.look(storing.all_leftovers)

    async def broken_uses(self, limit: int) -> builtins.list[str]:
        return await self._database.look(lambda: uses.broken(limit))

    async def overdue(self, late_ms: int, limit: int) -> builtins.list[str]:
        return await self._database.look(lambda: storing.overdue(late_ms, limit))

    async def list(self, owner_id: str, after: str, limit: int) -> builtins.list[StoredFile]:
        return await self._database.look(lambda: reading.list_files(owner_id, after, limit))

    async def totals(self) -> FileTotals:
        return await self._database.look(reading.totals)


def _known_blobs(after: str, limit: int) -> Script[list[BlobState]]:
    found = yield query(
        "SELECT blob_name,size,is_ready,small_bytes,medium_bytes,CASE WHEN EXISTS (SELECT 1 FROM files f "
        "WHERE f.blob_name=b.blob_name) THEN 1 ELSE 0 END FROM blobs b WHERE blob_name>? "
        f"ORDER BY blob_name LIMIT {int(limit)}",
        after,
    )
    return [
        BlobState(blob, size, bool(is_ready), small, medium, bool(used))
        for blob, size, is_ready, small, medium, used in found
    ]
