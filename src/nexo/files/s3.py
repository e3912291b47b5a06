"""Blobs in a bucket of any service that speaks S3. An object appears when it is complete: that is S3's own promise.

A blob is one object, so it has at most 5 GB. Parts of an upload are objects of their own, and joined by the server,
which has to read the file anyway: S3's multipart uploads would need parts of 5 MiB and more, and clients send less.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import httpx
from msgspec import Struct

from nexo.files.ports import PIECE_BYTES, BlobMissing, Listed, StorageError, StorageFull
from nexo.files.s3_signing import EMPTY_SHA256, encoded, query_text, signed_headers
from nexo.files.spool import in_thread

CONNECT_S = 5.0
SILENCE_S = 30.0  # without a byte in either direction
TRIES = 3
PAUSE_S = 0.3
CONNECTIONS_MAX = 64
ERROR_MAX_BYTES = 4096
_FULL = ("StorageFull", "InsufficientStorage", "QuotaExceeded", "EntityTooLarge", "SlowDownWrite")


class S3Settings(Struct, frozen=True):
    bucket: str
    prefix: str  # empty, or with a slash at its end
    endpoint: str
    region: str
    key: str
    secret: str

    def __repr__(self) -> str:
        return f"S3Settings({self.bucket}/{self.prefix} at {self.endpoint})"


class S3Storage:
    def __init__(self, settings: S3Settings, scratch: Path) -> None:
        self.url = f"s3://{settings.bucket}/{settings.prefix}"
        self.scratch = scratch
        self._settings = settings
        self._endpoint = settings.endpoint.rstrip("/")
        self._host = urlsplit(self._endpoint).netloc
        self._client: httpx.AsyncClient | None = None

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:  # it takes a tenth of a second, and is rarely needed by commands
            self._client = httpx.AsyncClient(
                timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
                limits=httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
                trust_env=False,
            )
        return self._client

    def _request(
        self, method: str, name: str, query: dict[str, str], sha256: str, headers: dict[str, str], content: Any = None
    ) -> httpx.Request:
        settings = self._settings
        path = "/" + encoded(settings.bucket)
        if name:
            path += "/" + encoded(settings.prefix + name, keeps_slashes=True)
        signed = signed_headers(
            method, self._host, path, query, sha256, datetime.now(UTC),
            region=settings.region, key=settings.key, secret=settings.secret, headers=headers,
        )  # fmt: skip
        url = self._endpoint + path + (f"?{query_text(query)}" if query else "")
        return self._http().build_request(method, url, headers=signed, content=content)

    async def _call(
        self, method: str, name: str, *, query: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        """Returns an answer whose body is not read yet. Raises BlobMissing for 404; failures are repeated."""
        for attempt in range(1, TRIES + 1):
            try:
                request = self._request(method, name, query or {}, EMPTY_SHA256, headers or {})
                answer = await self._http().send(request, stream=True)
                await _check(answer, name)
            except BlobMissing:
                raise
            except (httpx.HTTPError, StorageError) as error:
                if attempt == TRIES:
                    raise _failure(error) from error
                await asyncio.sleep(PAUSE_S * attempt)
            else:
                return answer
        raise AssertionError

    async def check(self) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        query = {"list-type": "2", "max-keys": "1", "prefix": self._settings.prefix}
        try:
            answer = await self._call("GET", "", query=query)
        except BlobMissing:
            raise StorageError(f"there is no bucket {self._settings.bucket}") from None
        await answer.aclose()

    async def create_bucket(self) -> None:
        """Create the bucket; one that is there counts as created."""
        answer = await self._http().send(self._request("PUT", "", {}, EMPTY_SHA256, {}))
        if answer.status_code not in (200, 409):
            raise StorageError(f"the storage answered {answer.status_code}")

    def growing(self, name: str) -> Path | None:
        return None

    async def put(self, name: str, source: Path, *, stays: bool = False) -> None:
        size, sha256 = await in_thread(lambda: _measure(source))
        headers = {"content-length": str(size)}
        for attempt in range(1, TRIES + 1):
            try:
                request = self._request("PUT", name, {}, sha256, headers, _read(source) if size else b"")
                answer = await self._http().send(request, stream=True)
                await _check(answer, name)
                await answer.aclose()
                break
            except StorageFull:
                raise
            except (httpx.HTTPError, StorageError) as error:
                if attempt == TRIES:
                    raise _failure(error) from error
                await asyncio.sleep(PAUSE_S * attempt)
        if not stays:
            await in_thread(lambda: source.unlink(missing_ok=True))

    async def pieces(self, name: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        if end is not None and start >= end:
            return
        headers = {"range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}
        answer = await self._call("GET", name, headers=headers)
        if headers and answer.status_code != 206:
            await answer.aclose()
            raise StorageError("the storage does not answer parts of objects")
        wanted = None if end is None else end - start
        got = 0
        try:
            async for data in answer.aiter_raw(PIECE_BYTES):
                got += len(data)
                yield data
        except httpx.HTTPError as error:
            raise _failure(error) from error
        finally:
            await answer.aclose()
        if wanted is not None and got != wanted:
            raise StorageError(f"{name} has {got} bytes in place of {wanted}")

    async def size_of(self, name: str) -> int | None:
        try:
            answer = await self._call("HEAD", name)
        except BlobMissing:
            return None
        await answer.aclose()
        return int(answer.headers["content-length"])

    async def delete(self, name: str) -> None:
        names = [name]
        if name.endswith("/"):
            names = [found.name async for found in self.listed(name)]
        for one in names:
            try:
                answer = await self._call("DELETE", one)
            except BlobMissing:
                continue
            await answer.aclose()

    async def listed(self, folder: str = "") -> AsyncIterator[Listed]:
        query = {"list-type": "2", "prefix": self._settings.prefix + folder}
        while True:
            answer = await self._call("GET", "", query=query)
            root = ElementTree.fromstring(await answer.aread())
            space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
            now = datetime.now(UTC)
            for found in root.iter(f"{space}Contents"):
                key = found.findtext(f"{space}Key") or ""
                at = datetime.fromisoformat((found.findtext(f"{space}LastModified") or "").replace("Z", "+00:00"))
                size = int(found.findtext(f"{space}Size") or 0)
                yield Listed(key.removeprefix(self._settings.prefix), size, (now - at).total_seconds())
            more = root.findtext(f"{space}NextContinuationToken")
            if not more:
                return
            query["continuation-token"] = more

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


async def _check(answer: httpx.Response, name: str) -> None:
    """Raises for an answer that reports a failure, whose body is closed then."""
    status = answer.status_code
    if status < 300:
        return
    try:
        text = (await answer.aread())[:ERROR_MAX_BYTES].decode("utf-8", "replace")
    finally:
        await answer.aclose()
    code = text.partition("<Code>")[2].partition("</Code>")[0]
    if status == 404 and code != "NoSuchBucket":
        raise BlobMissing(name)
    if status == 507 or any(word in code for word in _FULL):
        raise StorageFull(code or str(status))
    raise StorageError(f"the storage answered {status} {code}")


def _failure(error: Exception) -> StorageError:
    return error if isinstance(error, StorageError) else StorageError(f"{type(error).__name__}: {error}")


def _measure(path: Path) -> tuple[int, str]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()


async def _read(path: Path) -> AsyncIterator[bytes]:
    file = await in_thread(lambda: open(path, "rb"))  # noqa: SIM115
    try:
        while data := await in_thread(lambda: file.read(PIECE_BYTES)):
            yield data
    finally:
        file.close()
