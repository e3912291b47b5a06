"""Uploads the files of messages in the outbox, by the protocol tus: after a lost connection or a restart an upload
continues where the server has it."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol

from nexo_client.core.backoff import Backoff
from nexo_client.core.engine import Engine
from nexo_client.core.options import Options
from nexo_client.core.outbox import OutboxItem
from nexo_client.core.outputs import StorageWrite
from nexo_client.errors import ClientError
from nexo_client.http import Headers, Http
from nexo_client.sessions import Sessions
from nexo_client.types import Storage, Upload
from nexo_client.upload_source import read_part

AT_A_TIME = 2  # the server allows a user a few
FIRST_BYTES = 128 << 10
MOST_BYTES = 4 << 20
QUICK_S = 0.5  # a request that took less than this is followed by a larger one
_PROTOCOL = {"Tus-Resumable": "1.0.0"}
_PLACE = "/files/tus"
_AGAIN = (404, 410)  # of an upload: it has expired, or the server does not know it
_ELSE = (409, 423)  # the server has more or less of it, or another request adds to it


class UploadHost(Protocol):
    """What uploads need: the driver."""

    engine: Engine

    def pump(self) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...


class Uploads:
    def __init__(self, host: UploadHost, http: Http, sessions: Sessions, storage: Storage, options: Options) -> None:
        self._host = host
        self._http = http
        self._sessions = sessions
        self._storage = storage
        self._backoff = Backoff(options, random.Random())
        self._running: dict[str, asyncio.Task[None]] = {}
        self._given: dict[str, bytes] = {}  # of this process; later ones read the storage
        self.is_on = False

    def keep(self, item: OutboxItem, content: bytes) -> StorageWrite:
        """Keeps the bytes of a file that has no path; returns the write after which they survive a restart."""
        self._given[item.client_msg_id] = content
        return StorageWrite(self._key(item), {"data": base64.b64encode(content).decode()})

    def look(self) -> None:
        """Starts what may start, and stops what was removed from the outbox."""
        waiting = {item.client_msg_id: item for item in self._host.engine.outbox.uploading()}
        for client_msg_id, task in list(self._running.items()):
            if client_msg_id not in waiting:
                task.cancel()
        if not self.is_on:
            return
        for client_msg_id, item in waiting.items():
            if len(self._running) >= AT_A_TIME:
                return
            if client_msg_id not in self._running:
                task = self._running[client_msg_id] = self._host.spawn(self._run(item))
                task.add_done_callback(partial(self._ended, client_msg_id))

    def _ended(self, client_msg_id: str, _: asyncio.Task[None]) -> None:
        self._running.pop(client_msg_id, None)
        self.look()

    async def _run(self, item: OutboxItem) -> None:
        """Uploads until it is complete, or refused for good."""
        failures = 0
        try:
            while True:
                before = item.uploaded_bytes
                try:
                    file_id = await self._upload(item)
                    break
                except ClientError as error:
                    if not error.is_transient and error.status < 500:
                        self._host.engine.upload_failed(item, error.reason, error.detail)
                        self._host.pump()
                        return
                    failures = 1 if item.uploaded_bytes > before else failures + 1
                    pause_s = self._backoff.pause_s(failures, error.retry_after_ms)
                await asyncio.sleep(pause_s)
        except asyncio.CancelledError:
            if item.reason == "cancelled":
                await self._abandon(item)
            raise
        self._host.engine.uploaded(item, file_id)
        self._host.pump()
        await self._forget(item)

    def _moved(self, item: OutboxItem, offset: int) -> None:
        self._host.engine.upload_moved(item, offset)
        self._host.pump()

    async def _upload(self, item: OutboxItem) -> str:
        """Returns the id of the file."""
        upload = item.upload
        assert upload is not None
        source = await self._open(item, upload)
        address, offset = await self._place(item, upload)
        size, piece_bytes = upload.size, FIRST_BYTES
        self._moved(item, offset)
        while offset < size:
            piece = await asyncio.to_thread(source, offset, min(piece_bytes, size - offset))
            started = asyncio.get_running_loop().time()
            headers = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
            offset = _number(await self._add(address, headers, piece), "Upload-Offset")
            if asyncio.get_running_loop().time() - started < QUICK_S:
                piece_bytes = min(piece_bytes * 2, MOST_BYTES)
            else:
                piece_bytes = max(piece_bytes // 2, FIRST_BYTES)
            self._moved(item, offset)
        return address.rpartition("/")[2]

    async def _add(self, address: str, headers: dict[str, str], piece: bytes) -> Headers:
        try:
            return await self._request("PATCH", address, headers, piece)
        except ClientError as error:
            if error.status not in (*_AGAIN, *_ELSE):
                raise
            # The server is at another place, or has forgotten the upload: the next attempt asks where it is.
            raise ClientError("server_busy", error.detail, retry_after_ms=error.retry_after_ms) from error

    async def _place(self, item: OutboxItem, upload: Upload) -> tuple[str, int]:
        """Returns the address of the upload, and how much of it the server has."""
        if upload.address:
            try:
                return upload.address, _number(await self._request("HEAD", upload.address, {}), "Upload-Offset")
            except ClientError as error:
                if error.status not in _AGAIN:
                    raise
        name = base64.b64encode(upload.name.encode()).decode()
        headers = {"Upload-Length": str(upload.size), "Upload-Metadata": f"filename {name}"}
        answer = await self._request("POST", _PLACE, headers)
        address = f"{_PLACE}/{answer.get('Location', '').rstrip('/').rpartition('/')[2]}"
        if address == f"{_PLACE}/":
            raise ClientError("bad_answer", "The server gave no address for the upload")
        self._host.engine.upload_began(item, address)
        self._host.pump()
        return address, 0

    async def _request(self, method: str, path: str, headers: dict[str, str], content: bytes = b"") -> Headers:
        try:
            token = await self._sessions.fresh_token()
            return await self._http.send_raw(method, path, token, _PROTOCOL | headers, content)
        except ClientError as error:
            if error.status != 401:  # an answer to HEAD has no reason
                raise
        token = await self._sessions.fresh_token(renew=True)
        return await self._http.send_raw(method, path, token, _PROTOCOL | headers, content)

    async def _open(self, item: OutboxItem, upload: Upload) -> Callable[[int, int], bytes]:
        """Returns the function that reads a part of the file, in a thread."""
        if upload.path:
            return lambda start, count: read_part(upload, start, count)
        content = self._given.get(item.client_msg_id)
        if content is None:
            stored = await self._storage.get(self._key(item))
            if stored is None:
                raise ClientError("file_changed", "The bytes of the file are not in the storage")
            content = self._given[item.client_msg_id] = base64.b64decode(stored["data"])
        given = content
        return lambda start, count: given[start : start + count]

    async def _abandon(self, item: OutboxItem) -> None:
        """Deletes on the server what was uploaded, if that is possible now; it expires otherwise."""
        await self._forget(item)
        if item.upload is not None and item.upload.address:
            self._host.spawn(self._delete(item.upload.address))

    async def _delete(self, address: str) -> None:
        try:
            await self._request("DELETE", address, {})
        except ClientError:
            return

    async def _forget(self, item: OutboxItem) -> None:
        if self._given.pop(item.client_msg_id, None) is not None or not (item.upload and item.upload.path):
            await self._storage.delete(self._key(item))

    def _key(self, item: OutboxItem) -> str:
        return f"uploads/{self._host.engine.user_id}/{item.client_msg_id}"


def _number(headers: Headers, name: str) -> int:
    try:
        return int(headers[name])
    except (KeyError, ValueError):
        raise ClientError("bad_answer", f"The server gave no {name}") from None
