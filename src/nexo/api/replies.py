"""Replies: `{err_code, err_msg, data}` with the status of the error, and plain pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from nexo.api.asgi import Send
from nexo.errors import NexoError

Headers = list[tuple[bytes, bytes]]

_JSON = (b"content-type", b"application/json")
_NOT_KEPT = (b"cache-control", b"no-store")
_HEAD = b'{"err_code":0,"err_msg":"","data":'
_encode = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    status: int
    headers: Headers
    body: bytes
    parts: AsyncIterator[bytes] | None = None  # instead of a body


class FileReply(Struct):
    """A file: the whole body, not inside `data`."""

    name: str
    media_type: str
    size: int
    parts: Any  # AsyncIterator[bytes]


class ErrorBody(Struct):
    """`err_msg` is the error's name, `detail` a sentence. `data` may hold details, for example the unknown users."""

    err_code: int
    err_msg: str
    data: dict[str, Any] | None
    detail: str
    client_msg_id: str | UnsetType = UNSET
    retry_after_ms: int | UnsetType = UNSET
    request_id: str | UnsetType = UNSET


def data_reply(data: Struct) -> Reply:
    if isinstance(data, FileReply):
        return _file_reply(data)
    body = _HEAD + _encode(data) + b"}"
    status = getattr(data, "HTTP_STATUS", 200)
    return Reply(status, [_JSON, _NOT_KEPT, (b"content-length", b"%d" % len(body))], body)


def _file_reply(file: FileReply) -> Reply:
    headers: Headers = [
        (b"content-type", file.media_type.encode()),
        (b"content-disposition", f'attachment; filename="{file.name}"'.encode()),
        (b"content-length", b"%d" % file.size),
        _NOT_KEPT,
    ]
    return Reply(200, headers, b"", file.parts)


def error_reply(
    error: NexoError,
    *,
    client_msg_id: str | None = None,
    request_id: str | None = None,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Reply:
    row = error.row
    answer = ErrorBody(row.number, row.name, error.data or None, error.detail)
    if client_msg_id is not None:
        answer.client_msg_id = client_msg_id
    if request_id is not None:
        answer.request_id = request_id
    all_headers: Headers = [_JSON, _NOT_KEPT, *headers]
    if error.retry_after_ms is not None:
        answer.retry_after_ms = error.retry_after_ms
        all_headers.append((b"retry-after", b"%d" % max(1, -(-error.retry_after_ms // 1000))))
    if row.http_status == 401:
        all_headers.append((b"www-authenticate", b"Bearer"))
    body = _encode(answer)
    all_headers.append((b"content-length", b"%d" % len(body)))
    return Reply(row.http_status, all_headers, body)


def page_reply(body: bytes, content_type: str, *headers: tuple[bytes, bytes]) -> Reply:
    return Reply(
        200, [(b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body)), *headers], body
    )


async def send_reply(send: Send, reply: Reply) -> None:
    await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
    if reply.parts is not None:
        async for part in reply.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": reply.body})
