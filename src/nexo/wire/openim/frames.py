"""The frame around a request and its answer: JSON for JavaScript clients, gob (and gzip) for the Go core. Pure."""

from __future__ import annotations

import binascii
import gzip
import zlib
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from nexo.errors import NexoError
from nexo.wire.dialect import BadFrame
from nexo.wire.openim import gob

FRAME_MAX_BYTES = 1024 * 1024  # of a request after it is unpacked
ECHO_MAX_CHARS = 128


class OpenimRequest(Struct, frozen=True):
    """A request without its protobuf decoded."""

    number: int
    msg_incr: str
    operation_id: str
    send_id: str
    token: str
    data: bytes


class Framing(Protocol):
    name: str

    def read(self, payload: bytes) -> OpenimRequest:
        """Returns the request, or raises BadFrame."""

    def prepare(self, data: bytes) -> bytes:
        """Returns data as frames carry it, so that several frames can share the work."""

    def write(self, number: int, msg_incr: str, operation_id: str, code: int, text: str, prepared: bytes) -> bytes:
        """Returns the payload of an answer or push."""


class _JsonRequest(Struct, rename="camel"):
    req_identifier: int
    msg_incr: str = ""
    operation_id: str = msgspec.field(default="", name="operationID")
    send_id: str = msgspec.field(default="", name="sendID")
    token: str = ""
    data: str | None = None


_decode = msgspec.json.Decoder(_JsonRequest).decode
_encode = msgspec.json.Encoder().encode


def _bad(reason: str) -> BadFrame:
    return BadFrame(NexoError("bad_json", reason), violation=True)


class JsonFraming:
    name = "js"

    def read(self, payload: bytes) -> OpenimRequest:
        try:
            found = _decode(payload)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise _bad("A frame is a JSON object with reqIdentifier, msgIncr, operationID, sendID and data") from None
        try:
            data = binascii.a2b_base64(found.data, strict_mode=True) if found.data else b""
        except (binascii.Error, ValueError):
            raise _bad("data is base64 of a protobuf message") from None
        return _request(found.req_identifier, found.msg_incr, found.operation_id, found.send_id, found.token, data)

    def prepare(self, data: bytes) -> bytes:
        return b'"%b"' % binascii.b2a_base64(data, newline=False) if data else b"null"

    def write(self, number: int, msg_incr: str, operation_id: str, code: int, text: str, prepared: bytes) -> bytes:
        return b'{"reqIdentifier":%d,"msgIncr":%b,"operationID":%b,"errCode":%d,"errMsg":%b,"data":%b}' % (
            number,
            _encode(msg_incr),
            _encode(operation_id),
            code,
            _encode(text),
            prepared,
        )


_ANSWER = gob.Encoder(
    "Resp",
    {
        "ReqIdentifier": gob.INT,
        "MsgIncr": gob.TEXT,
        "OperationID": gob.TEXT,
        "ErrCode": gob.INT,
        "ErrMsg": gob.TEXT,
        "Data": gob.BYTES,
    },
)


class GobFraming:
    def __init__(self, is_packed: bool) -> None:
        self.name = "go+gzip" if is_packed else "go"
        self._is_packed = is_packed

    def read(self, payload: bytes) -> OpenimRequest:
        if self._is_packed:
            payload = _unpack(payload)
        try:
            found = gob.decode(payload)
        except NexoError as error:
            raise BadFrame(error, violation=True) from None
        number, data = found.get("ReqIdentifier", 0), found.get("Data", b"")
        texts = [found.get(name, "") for name in ("MsgIncr", "OperationID", "SendID", "Token")]
        if type(number) is not int or not isinstance(data, bytes) or any(type(text) is not str for text in texts):
            raise _bad("A field of the request has the wrong type")
        return _request(number, texts[0], texts[1], texts[2], texts[3], data)

    def prepare(self, data: bytes) -> bytes:
        return data

    def write(self, number: int, msg_incr: str, operation_id: str, code: int, text: str, prepared: bytes) -> bytes:
        values: dict[str, Any] = {
            "ReqIdentifier": number,
            "MsgIncr": msg_incr,
            "OperationID": operation_id,
            "ErrCode": code,
            "ErrMsg": text,
            "Data": prepared,
        }
        made = _ANSWER.encode(values)
        return gzip.compress(made, 1, mtime=0) if self._is_packed else made


def _request(number: int, msg_incr: str, operation_id: str, send_id: str, token: str, data: bytes) -> OpenimRequest:
    return OpenimRequest(number, msg_incr[:ECHO_MAX_CHARS], operation_id[:ECHO_MAX_CHARS], send_id, token, data)


def _unpack(payload: bytes) -> bytes:
    """Returns what is inside gzip. A frame that would become too large is refused while it is unpacked."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        plain = unpacker.decompress(payload, FRAME_MAX_BYTES)
    except zlib.error:
        raise _bad("A frame is gob inside gzip") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise _bad("A frame is gob inside gzip, of at most 1 MiB")
    return plain


JSON_FRAMING = JsonFraming()
GOB_FRAMING = GobFraming(False)
PACKED_FRAMING = GobFraming(True)
