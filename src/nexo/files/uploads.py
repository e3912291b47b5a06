"""Uploads: a whole file in one request, or in parts that any instance takes."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import structlog

from nexo.core.files import StoredFile, Upload, clean_name, new_file_id, staged_in
from nexo.errors import NexoError
from nexo.files.arriving import Body, BodyCut, Turn
from nexo.files.parts import GrowingPart
from nexo.files.ports import Storage, StorageError
from nexo.files.receiving import Receiving, storage_refusals
from nexo.files.spool import Spool, in_thread
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports.files import FileStore, UploadRoom

log = structlog.get_logger()

PART_BYTES = 8 * 1024 * 1024  # of an upload where a part is an object of its own
SYNCED_BYTES = 8 * 1024 * 1024  # that wait to be written to the disk, of each upload
COUNTED_BYTES = 32 * 1024 * 1024  # what a crash of the server can cost a fast upload,
COUNTED_S = 5.0  # and a slow one
DIGESTS_MAX = 1000  # of uploads in parts, between two requests
RUNNING_MAX = 256  # requests that bring bytes, on this instance
TURN_S = 10.0  # how long a request waits for the end of another one for the same upload
IDLE_MS = 600_000  # an upload that rests for longer gives way to a new one of its user
FINAL = ("bad_file", "file_type_refused", "quota_exceeded", "content_rejected")  # trying again changes nothing


class WrongOffset(Exception):
    """The upload has another offset."""

    def __init__(self, received: int) -> None:
        super().__init__(f"the offset is {received}")
        self.received = received


class UploadBusy(Exception):
    """Another request works on the upload, and does not end."""


class WrongChecksum(Exception):
    """The bytes are not those that the client has hashed."""


class Uploads:
    def __init__(self, store: FileStore, storage: Storage, receiving: Receiving) -> None:
        self._store = store
        self._storage = storage
        self._receiving = receiving
        self.rules = receiving.rules
        self._room = UploadRoom(self.rules.uploads_per_user, IDLE_MS, self.rules.upload_ms, self.rules.quota)
        self._running: dict[str, int] = {}  # requests that bring bytes, by user
        self._turns: dict[str, Turn] = {}  # of uploads that a request works on
        self._mark = secrets.token_hex(4)  # of parts that this process alone writes
        self._digests: dict[str, tuple[int, Any]] = {}  # blob → its size and its hash so far

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(sum(self._running.values()), "uploads")
        yield f.QUEUE_LIMIT(RUNNING_MAX, "uploads")
        yield from f.FILE_UPLOADS.each(self._receiving.outcomes)
        yield f.FILE_BYTES_STORED(self._receiving.bytes_stored)

    # -- one request -----------------------------------------------------------------------------------------

    async def receive(self, owner_id: str, name: str, body: AsyncIterator[bytes]) -> StoredFile:
        """Returns the file of a whole body. Nothing is left of a body that is cut off or refused."""
        with self._taking(owner_id), storage_refusals():
            async with Spool(self._storage.scratch) as spool:
                async for data in body:
                    await spool.add(data)
                    if spool.size > self.rules.simple_max:
                        raise too_large(self.rules.simple_max)
                await spool.finish()
                return await self._receiving.make_file(new_file_id(), owner_id, clean_name(name), spool)

    # -- in parts --------------------------------------------------------------------------------------------

    async def begin(self, owner_id: str, name: str, length: int) -> Upload:
        if length > self.rules.max_bytes:
            raise too_large(self.rules.max_bytes)
        if not length:
            raise NexoError("bad_file", "The file is empty")
        upload, ended = await self._store.begin_upload(new_file_id(), owner_id, clean_name(name), length, self._room)
        if ended:
            log.info("upload_gave_way", file_id=ended, user_id=owner_id)
            await self._discard(ended)
        return upload

    async def state(self, file_id: str, owner_id: str) -> tuple[int, int, int]:
        """Returns the offset, the length and when it expires (0: it is a file by now). An upload that has all its bytes
        and is no file yet becomes one: the server was killed in between, and the client sends nothing more."""
        async with self._turn(file_id, owner_id):
            try:
                upload = await self._store.upload(file_id, owner_id)
            except NexoError as error:
                if error.name != "file_not_found":
                    raise
                file = await self._store.read(file_id)
                if file.owner_id != owner_id:
                    raise
                return file.size, file.size, 0
            if upload.received == upload.length:
                await self._complete(upload)
                return upload.length, upload.length, 0
            return upload.received, upload.length, upload.expires_at

    async def append(
        self, file_id: str, owner_id: str, offset: int, body: Body, checksum: tuple[str, bytes] | None = None
    ) -> tuple[Upload, StoredFile | None]:
        """Returns the upload with the bytes of this body, and the file if it is complete. What arrived of a body that
        is cut off counts, unless it has a checksum. Raises WrongOffset, WrongChecksum, BodyCut."""
        with self._taking(owner_id), storage_refusals():
            async with self._turn(file_id, owner_id) as turn:
                upload = await self._store.upload(file_id, owner_id)
                if offset != upload.received:
                    raise WrongOffset(upload.received)
                turn.receive(body)
                if checksum is not None:
                    upload = await self._append_checked(upload, body, *checksum)
                elif self._storage.growing(staged_in(file_id)) is None:
                    upload = await self._append_parts(upload, body)
                else:
                    upload = await self._append_in_place(upload, body)
                if upload.received < upload.length:
                    return upload, None
                return upload, await self._complete(await self._store.upload(file_id, owner_id))

    async def end(self, file_id: str, owner_id: str) -> None:
        if not await self._store.end_upload(file_id, owner_id):
            raise NexoError("file_not_found", "There is no such upload")
        await self._discard(file_id)

    async def _append_parts(self, upload: Upload, body: Body) -> Upload:
        """Store the body in parts, each of which counts as soon as it is stored."""
        while True:
            async with Spool(self._storage.scratch) as spool:
                cut: BodyCut | None = None
                is_over = True
                try:
                    is_over = await body.fill(spool, PART_BYTES, upload.length - upload.received, COUNTED_S)
                except BodyCut as error:
                    cut = error
                await spool.finish()
                upload = await self._put_part(upload, spool)
                if cut is not None:
                    raise cut
                if is_over:
                    return upload

    async def _append_in_place(self, upload: Upload, body: Body) -> Upload:
        """Let a part grow by the body: the last one if only this process can have written to it, or a new one."""
        start, size, blob = upload.received, 0, f"{staged_in(upload.file_id)}{upload.received:013d}-{self._mark}"
        if upload.parts and upload.parts[-1][2].endswith(self._mark):
            start, size, blob = upload.parts[-1]
        path = self._storage.growing(blob)
        assert path is not None
        known_size, digest = self._digests.pop(blob, (0, None))
        loop = asyncio.get_running_loop()
        counted_at = loop.time()
        async with GrowingPart(path, size, digest if known_size == size else None) as part:
            while True:
                cut: BodyCut | None = None
                is_over = True
                try:
                    is_over = await body.fill(part, part.size + SYNCED_BYTES, upload.length - start, COUNTED_S)
                except BodyCut as error:
                    cut = error
                uncounted = start + part.size - upload.received
                if uncounted:
                    await part.sync()
                    is_slow = loop.time() - counted_at >= COUNTED_S
                    if is_over or cut is not None or is_slow or uncounted >= COUNTED_BYTES:
                        await self._count(upload, start, part.size, blob)
                        upload, counted_at = upload._replace(received=start + part.size), loop.time()
                if is_over or cut is not None:
                    self._keep_digest(blob, part)
                if cut is not None:
                    raise cut
                if is_over:
                    return upload

    def _keep_digest(self, blob: str, part: GrowingPart) -> None:
        if part.digest is not None:
            self._digests[blob] = part.size, part.digest
        while len(self._digests) > DIGESTS_MAX:
            del self._digests[next(iter(self._digests))]

    async def _append_checked(self, upload: Upload, body: Body, algorithm: str, expected: bytes) -> Upload:
        """Store the body as one part, which counts only if its hash is this."""
        async with Spool(self._storage.scratch) as spool:
            rest = upload.length - upload.received
            while not await body.fill(spool, spool.size + PART_BYTES, rest, COUNTED_S):
                pass
            await spool.finish()
            if await in_thread(lambda: _digest(spool.path, algorithm)) != expected:
                raise WrongChecksum
            return await self._put_part(upload, spool)

    async def _put_part(self, upload: Upload, spool: Spool) -> Upload:
        if not spool.size:
            return upload
        start, size = upload.received, spool.size
        blob = f"{staged_in(upload.file_id)}{start:013d}-{secrets.token_hex(4)}"
        await self._storage.put(blob, spool.path)
        await self._count(upload, start, size, blob)
        return upload._replace(received=start + size)

    async def _count(self, upload: Upload, start: int, size: int, blob: str) -> None:
        """Count the stored bytes of a part. Raises WrongOffset when another instance has counted others."""
        if not await self._store.add_part(upload.file_id, start, size, blob, self.rules.upload_ms):
            now = await self._store.upload(upload.file_id, upload.owner_id)
            if all(part[2] != blob for part in now.parts):
                await self._storage.delete(blob)
            raise WrongOffset(now.received)

    async def _complete(self, upload: Upload) -> StoredFile:
        """Make a file of the stored parts."""
        with storage_refusals():
            spool = await self._whole(upload)
        async with spool:
            with storage_refusals():
                if isinstance(spool, GrowingPart):
                    await spool.finish_hash()
                else:
                    for _, size, blob in upload.parts:
                        async for data in self._storage.pieces(blob, 0, size):
                            await spool.add(data)
                    await spool.finish()
            try:
                file = await self._receiving.make_file(upload.file_id, upload.owner_id, upload.name, spool)
            except NexoError as error:
                if error.name in FINAL:
                    await self._store.end_upload(upload.file_id, upload.owner_id)
                    await self._discard(upload.file_id)
                raise
        await self._discard(upload.file_id)
        return file

    async def _whole(self, upload: Upload) -> Spool:
        """Returns the one part of an upload in its place, or a new spool for all of them."""
        _, size, blob = upload.parts[0]
        known_size, digest = self._digests.pop(blob, (0, None))
        path = self._storage.growing(blob)
        if len(upload.parts) > 1 or path is None or await self._storage.size_of(blob) != size:
            return Spool(self._storage.scratch)
        return GrowingPart(path, size, digest if known_size == size else None)

    async def _discard(self, file_id: str) -> None:
        """Delete the parts of an upload that has ended. What fails is a leftover, and is tried again later."""
        folder = staged_in(file_id)
        try:
            await self._storage.delete(folder)
        except StorageError as error:
            log.warning("file_storage_failed", error=str(error))
        else:
            await self._store.forget_leftovers([folder])

    # -- bounds ----------------------------------------------------------------------------------------------

    @contextmanager
    def _taking(self, owner_id: str) -> Iterator[None]:
        """Counts a request that brings bytes."""
        running = self._running.get(owner_id, 0)
        if running >= self.rules.uploads_per_user:
            raise NexoError("too_many_uploads", retry_after_ms=1000)
        if sum(self._running.values()) >= RUNNING_MAX:
            raise NexoError("server_busy", "This instance receives as many files as it may", retry_after_ms=1000)
        self._running[owner_id] = running + 1
        try:
            yield
        finally:
            self._running[owner_id] -= 1
            if not self._running[owner_id]:
                del self._running[owner_id]

    @asynccontextmanager
    async def _turn(self, file_id: str, owner_id: str) -> AsyncIterator[Turn]:
        """Waits for the request that works on the same upload, which stores what it has received. Between instances
        the row of the upload decides."""
        key = f"{owner_id}/{file_id}"  # only the owner's requests make others wait
        before, turn = self._turns.get(key), Turn()
        self._turns[key] = turn
        async with turn.lock:
            try:
                if before is not None:
                    before.want()
                    async with asyncio.timeout(TURN_S), before.lock:
                        pass
            except TimeoutError:
                raise UploadBusy from None
            else:
                yield turn
            finally:
                if self._turns.get(key) is turn:
                    del self._turns[key]


def too_large(max_bytes: int) -> NexoError:
    return NexoError("file_too_large", f"At most {max_bytes} bytes are accepted here", max_bytes=max_bytes)


def _digest(path: Path, algorithm: str) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).digest()
