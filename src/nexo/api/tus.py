"""Uploads in parts: tus 1.0.0, with creation, creation-with-upload, expiration, checksum and termination."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Awaitable, Callable
from email.utils import formatdate

from nexo.api.replies import Headers, Reply, error_reply
from nexo.api.streams import StreamCall, StreamHandler
from nexo.core.files import is_file_id
from nexo.errors import NexoError
from nexo.files.arriving import BodyCut, HandedOver
from nexo.files.uploads import UploadBusy, WrongChecksum, WrongOffset, too_large

VERSION = "1.0.0"
PATH = "/files/tus"
EXTENSIONS = b"creation,creation-with-upload,expiration,checksum,termination"
ALGORITHMS = ("sha1", "sha256", "md5")
PART_TYPE = "application/offset+octet-stream"
METADATA_MAX_CHARS = 4096
WRONG_CHECKSUM = 460  # a status of tus


Handler = Callable[[StreamCall, str], Awaitable[Reply | None]]  # with the user who calls


def _in_version(handler: Handler) -> StreamHandler:
    """Checks the caller and the version of the request. Every answer names the version."""

    @functools.wraps(handler)
    async def answer(call: StreamCall) -> Reply | None:
        call.context.added.append((b"tus-resumable", VERSION.encode()))
        owner_id = (await call.caller()).user_id
        if call.context.path_id and not is_file_id(call.context.path_id):
            raise NexoError("file_not_found", "There is no such upload")
        if call.header("tus-resumable") != VERSION:
            error = NexoError("bad_request", f"The header Tus-Resumable names the version, which is {VERSION}")
            return error_reply(error, headers=((b"tus-version", VERSION.encode()),))._replace(status=412)
        try:
            return await handler(call, owner_id)
        except WrongOffset as error:
            shown = NexoError("bad_request", f"The upload has {error.received} bytes")
            return error_reply(shown, headers=(_offset(error.received),))._replace(status=409)
        except UploadBusy:
            return error_reply(NexoError("too_many_uploads", "Another request works on this upload"))._replace(
                status=423
            )
        except WrongChecksum:
            return error_reply(NexoError("bad_file", "The checksum is another one"))._replace(status=WRONG_CHECKSUM)
        except HandedOver:
            return error_reply(NexoError("bad_request", "Another request continues this upload"))._replace(status=409)
        except BodyCut:
            raise NexoError("bad_request", "The connection was closed before the body had arrived") from None

    return answer


async def options(call: StreamCall) -> Reply | None:
    max_bytes = call.services.files.uploads.rules.max_bytes
    headers: Headers = [
        (b"tus-resumable", VERSION.encode()),
        (b"tus-version", VERSION.encode()),
        (b"tus-extension", EXTENSIONS),
        (b"tus-checksum-algorithm", ",".join(ALGORITHMS).encode()),
        (b"tus-max-size", b"%d" % max_bytes),
    ]
    return Reply(204, headers, b"")


@_in_version
async def create(call: StreamCall, owner_id: str) -> Reply | None:
    uploads = call.services.files.uploads
    length = _number(call, "upload-length")
    upload = await uploads.begin(owner_id, _name(call.header("upload-metadata")), length)
    headers: Headers = [(b"location", f"{PATH}/{upload.file_id}".encode())]
    if call.header("content-type") == PART_TYPE and call.length() != 0:
        upload, _ = await uploads.append(upload.file_id, owner_id, 0, call.whole_body(), _checksum(call))
        headers.append(_offset(upload.received))
    if upload.received < upload.length:
        headers.append(_expires(upload.expires_at))
    return Reply(201, [*headers, (b"content-length", b"0")], b"")


@_in_version
async def state(call: StreamCall, owner_id: str) -> Reply | None:
    received, length, expires_at = await call.services.files.uploads.state(call.context.path_id, owner_id)
    headers: Headers = [_offset(received), (b"upload-length", b"%d" % length), (b"cache-control", b"no-store")]
    return Reply(200, [*headers, _expires(expires_at)] if expires_at else headers, b"")


@_in_version
async def append(call: StreamCall, owner_id: str) -> Reply | None:
    uploads = call.services.files.uploads
    if call.header("content-type") != PART_TYPE:
        error = NexoError("bad_request", f"The body has the type {PART_TYPE}")
        return error_reply(error)._replace(status=415)
    if (call.length() or 0) > uploads.rules.max_bytes:
        raise too_large(uploads.rules.max_bytes)
    offset = _number(call, "upload-offset")
    upload, _ = await uploads.append(call.context.path_id, owner_id, offset, call.whole_body(), _checksum(call))
    headers: Headers = [_offset(upload.received)]
    if upload.received < upload.length:
        headers.append(_expires(upload.expires_at))
    return Reply(204, headers, b"")


@_in_version
async def end(call: StreamCall, owner_id: str) -> Reply | None:
    await call.services.files.uploads.end(call.context.path_id, owner_id)
    return Reply(204, [], b"")


def _offset(received: int) -> tuple[bytes, bytes]:
    return b"upload-offset", b"%d" % received


def _expires(at_ms: int) -> tuple[bytes, bytes]:
    return b"upload-expires", formatdate(at_ms / 1000, usegmt=True).encode()


def _number(call: StreamCall, name: str) -> int:
    text = call.header(name)
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise NexoError("bad_request", f"The header {name.title()} is a number")
    return int(text)


def _name(metadata: str) -> str:
    """Returns the name of the file in `Upload-Metadata`: pairs of a key and its value in base64."""
    if len(metadata) > METADATA_MAX_CHARS:
        raise NexoError("bad_request", "The header Upload-Metadata is too long")
    for pair in metadata.split(","):
        key, _, value = pair.strip().partition(" ")
        if key in ("filename", "name"):
            try:
                return base64.b64decode(value, validate=True).decode("utf-8", "replace")
            except binascii.Error:
                raise NexoError("bad_request", "The values of Upload-Metadata are base64") from None
    return ""


def _checksum(call: StreamCall) -> tuple[str, bytes] | None:
    text = call.header("upload-checksum")
    if not text:
        return None
    algorithm, _, value = text.partition(" ")
    try:
        expected = base64.b64decode(value, validate=True)
    except binascii.Error:
        expected = b""
    if algorithm not in ALGORITHMS or not expected:
        raise NexoError("bad_request", f"Upload-Checksum is one of {', '.join(ALGORITHMS)} and the hash in base64")
    return algorithm, expected
