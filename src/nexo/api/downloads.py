"""Sending files: permission, ranges, conditions, and headers that keep browsers from executing uploads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from urllib.parse import quote

from nexo.api.replies import Headers, Reply, data_reply
from nexo.api.shapes import Empty
from nexo.api.streams import StreamCall
from nexo.errors import NexoError
from nexo.files.ports import StorageError
from nexo.files.receiving import storage_refusals
from nexo.files.serving import OpenedFile, Serving

SCOPE = "files"
# Types that a browser shows without executing anything. Everything else is saved, not shown.
_SHOWN = re.compile(
    r"image/(?:png|jpeg|gif|webp|avif|bmp|heic)|(?:audio|video)/[a-z0-9.+-]+|text/plain|application/pdf"
)
_SANDBOX = b"sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


async def download(call: StreamCall) -> Reply | None:
    return await _download(call, "")


async def download_small(call: StreamCall) -> Reply | None:
    return await _download(call, "small")


async def download_medium(call: StreamCall) -> Reply | None:
    return await _download(call, "medium")


async def delete(call: StreamCall) -> Reply | None:
    """Deletes any file for a key with the scope `files`, an unnamed one for its owner."""
    serving, file_id = call.services.files.serving, call.context.path_id
    caller = await call.caller()
    if caller.key is not None and SCOPE in caller.key.scopes:
        await serving.delete(file_id, caller.actor)
    else:
        await serving.delete_own(file_id, caller.user_id)
    return data_reply(Empty())


async def _download(call: StreamCall, preview: str) -> Reply | None:
    serving = call.services.files.serving
    try:
        opened = await _open(call, serving, preview)
    except NexoError as error:
        serving.outcomes.add(error.name)
        raise
    return await _answer(call, serving, opened)


async def _open(call: StreamCall, serving: Serving, preview: str) -> OpenedFile:
    file_id, query = call.context.path_id, call.query()
    is_signed_in = b"authorization" in call.headers
    if "sig" in query:
        call.services.limits.request_from(call.context.address)
        try:
            return await serving.by_address(file_id, preview, query.get("msg", ""), query.get("exp", ""), query["sig"])
        except NexoError:
            if not is_signed_in:
                raise
    if not is_signed_in:
        call.services.limits.request_from(call.context.address)
        return await serving.for_everyone(file_id, preview)
    caller = await call.caller()
    if caller.key is not None and SCOPE in caller.key.scopes and not caller.user_id:
        return await serving.for_operator(file_id, preview)
    return await serving.for_user(caller.user_id, file_id, preview)


async def _answer(call: StreamCall, serving: Serving, opened: OpenedFile) -> Reply | None:
    headers = _headers(opened)
    if _matches(call.header("if-none-match"), opened.etag):
        serving.outcomes.add("unchanged")
        return Reply(304, headers, b"")
    start, end, status = 0, opened.size, 200
    asked = call.header("range")
    if asked and call.header("if-range") in ("", opened.etag):
        found = _range(asked, opened.size)
        if found is not None and not found:
            return Reply(
                416, [*headers, (b"content-range", b"bytes */%d" % opened.size), (b"content-length", b"0")], b""
            )
        if found:
            (start, end), status = found, 206
            headers.append((b"content-range", b"bytes %d-%d/%d" % (start, end - 1, opened.size)))
    headers += [(b"content-type", _content_type(opened)), (b"content-length", b"%d" % (end - start))]
    if call.scope["method"] == "HEAD":
        return Reply(status, headers, b"")
    pieces = serving.read(opened, start, end)
    with storage_refusals():
        first = await anext(pieces, b"")
    serving.outcomes.add("whole" if status == 200 else "part")
    await _send(call, serving, status, headers, first, pieces)
    return None


async def _send(
    call: StreamCall, serving: Serving, status: int, headers: Headers, first: bytes, pieces: AsyncIterator[bytes]
) -> None:
    """Send in pieces, each once the client has taken those before it; nothing more is read for one that has left."""
    leaving = asyncio.ensure_future(_left(call))
    try:
        await call.send({"type": "http.response.start", "status": status, "headers": headers})
        await call.send({"type": "http.response.body", "body": first, "more_body": True})
        async for data in pieces:
            if leaving.done():
                serving.outcomes.add("cut")
                return
            await call.send({"type": "http.response.body", "body": data, "more_body": True})
        await call.send({"type": "http.response.body", "body": b""})
    except StorageError:  # the connection ends before the announced length: the client sees that it is not all
        serving.outcomes.add("cut")
        raise
    finally:
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await pieces.aclose()  # type: ignore[attr-defined]


async def _left(call: StreamCall) -> None:
    while (await call.receive())["type"] != "http.disconnect":
        pass


def _headers(opened: OpenedFile) -> Headers:
    kept = b"public, max-age=86400, immutable" if opened.is_public else b"private, max-age=31536000, immutable"
    return [
        (b"etag", opened.etag.encode()),
        (b"accept-ranges", b"bytes"),
        (b"cache-control", kept),
        (b"content-disposition", _disposition(opened)),
        (b"content-security-policy", _SANDBOX),
    ]


def _disposition(opened: OpenedFile) -> bytes:
    how = "inline" if _SHOWN.fullmatch(opened.mime) else "attachment"
    name = opened.file.name or opened.file.file_id
    plain = re.sub(r'[^\x20-\x7e]|["\\%]', "_", name)
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}".encode()


def _content_type(opened: OpenedFile) -> bytes:
    return b"text/plain; charset=utf-8" if opened.mime == "text/plain" else opened.mime.encode()


def _matches(asked: str, etag: str) -> bool:
    return bool(asked) and (
        asked.strip() == "*" or etag in (one.strip().removeprefix("W/") for one in asked.split(","))
    )


def _range(text: str, size: int) -> tuple[int, int] | tuple[()] | None:
    """Returns the first byte and the one behind the last; None for a header that is ignored, as one with several
    ranges; empty for a range that does not exist."""
    found = _RANGE.fullmatch(text.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        count = min(int(found[2]), size)
        return (size - count, size) if count else ()
    start = int(found[1])
    end = min(int(found[2]) + 1, size) if found[2] else size
    if found[2] and int(found[2]) < start:
        return None
    return (start, end) if start < size else ()
