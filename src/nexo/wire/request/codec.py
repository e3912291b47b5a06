"""The codec of the request dialect: the frame around `data`.

A client that sends its `data` as base64 text of JSON (as Go marshals bytes) gets all answers and pushes in the same
form from then on. The codec of a connection remembers this, and the last token of the client.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from nexo.core import commands, events
from nexo.errors import NexoError
from nexo.wire.dialect import BadFrame
from nexo.wire.framing import text_frame
from nexo.wire.handshakes import answer_nothing, echo_nothing, encode_outcome
from nexo.wire.reading import Echo, EchoNumber, echo, read_object, text_in, unstorable_error
from nexo.wire.request.answers import ANSWERS, OWN_ANSWERS, PUSHES, error_data
from nexo.wire.request.requests import ERROR_FIELDS, REQUESTS, SEND

NAME = "nexo.request.v1"
NAME_BASE64 = f"{NAME};base64"


class RequestFrame(Struct):
    """Any request of a client."""

    req_identifier: EchoNumber | None = None
    msg_incr: Echo | EchoNumber = ""
    operation_id: Echo | EchoNumber = ""
    token: str | None = None
    send_id: str | None = None
    sender_id: str | None = None
    sender: str | None = msgspec.field(default=None, name="from")
    data: Raw = Raw(b"{}")


class RequestRef(Struct, frozen=True):
    """What an answer echoes."""

    number: int = 0
    msg_incr: str | int = ""
    operation_id: str | int = ""
    client_msg_id: str | None = None


class RequestResponse(Struct):
    """An answer, or a push: those have nothing to echo."""

    req_identifier: int
    msg_incr: str | int
    operation_id: str | int
    err_code: int
    err_msg: str
    data: Any


_decode = msgspec.json.Decoder(RequestFrame).decode
_find, _find_push, _find_answer, _find_own = REQUESTS.get, PUSHES.get, ANSWERS.get, OWN_ANSWERS.get
_decode_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode
_OUTER_FIELDS = (
    ("token", "bad_token"),
    ("send_id", "bad_user_id"),
    ("sender_id", "bad_user_id"),
    ("from", "bad_user_id"),
)
_FROM_URL_SAFE = str.maketrans("-_", "+/")


class RequestCodec:
    """The codec of one connection."""

    __slots__ = ("_token", "name")

    signs_in = False
    confirms = True
    is_binary = False
    catches_up = False
    resyncs = True
    echo_s = 0.0
    encode_outcome = staticmethod(encode_outcome)
    answer_text = staticmethod(answer_nothing)
    echo = staticmethod(echo_nothing)

    frame = staticmethod(text_frame)

    def __init__(self, token: str | None = None) -> None:
        self.name = NAME
        self._token = token

    def for_connection(self, token: str | None) -> RequestCodec:
        return RequestCodec(token)

    # -- in ------------------------------------------------------------------------------------------

    def decode(self, frame: bytes, user_id: str | None) -> tuple[commands.Command, RequestRef]:
        try:
            found = _decode(frame)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise _bad_frame(frame, error) from None
        number = found.req_identifier
        ref = RequestRef(number or 0, found.msg_incr, found.operation_id)
        if number is None:
            raise BadFrame(NexoError("missing_type", "req_identifier is missing"), ref, violation=True)
        row = _find(number)
        if row is None:
            raise BadFrame(NexoError("unknown_type", f"There is no request {number}"), ref, violation=True)
        data: bytes | Raw = b""
        try:
            data = self._plain(found.data)
            if user_id is not None and _claims_another(found, user_id):
                raise NexoError("identity_mismatch")
            fields = row.read(data)
            if number == SEND:
                ref = RequestRef(number, found.msg_incr, found.operation_id, fields.client_msg_id)
            command = row.command(fields, user_id)
        except NexoError as error:
            ref = RequestRef(number, found.msg_incr, found.operation_id, _client_msg_id(data))
            raise BadFrame(error, ref) from None
        if found.token and found.token != self._token:
            self._token = found.token  # should it turn out to be no good, the connection ends
            command = commands.WithToken(found.token, command)
        return command, ref

    def _plain(self, data: Raw) -> bytes | Raw:
        """The JSON of `data`, which may be base64 text; nothing is an empty object."""
        text = bytes(data)
        if text == b"null":
            return b"{}"
        if not text.startswith(b'"'):
            return text
        try:
            packed = _decode_text(text).translate(_FROM_URL_SAFE)
            plain = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
        except (msgspec.DecodeError, ValueError, binascii.Error):
            raise NexoError("bad_request", "data is an object, or base64 of one") from None
        self.name = NAME_BASE64
        return plain or b"{}"

    def log_fields(self, ref: RequestRef | None) -> Mapping[str, str | int]:
        return {} if ref is None else {"operation_id": ref.operation_id, "req_identifier": ref.number}

    # -- out -----------------------------------------------------------------------------------------

    def encode(self, event: events.Event, ref: RequestRef | None = None) -> bytes:
        if ref is None:
            push = _find_push(type(event))
            if push is None:
                return b""  # no frame: a client that signed in by the upgrade knows that it worked
            number, data = push(event)
            return self._response(number, "", "", 0, "", data)
        if isinstance(event, events.Failed | events.SignInFailed):
            error = event.error
            data = error_data(error, ref.client_msg_id)
            return self._response(ref.number, ref.msg_incr, ref.operation_id, error.number, error.name, data)
        answer = _find_own(ref.number) or _find_answer(type(event))
        data = {} if answer is None else answer(event)
        return self._response(ref.number, ref.msg_incr, ref.operation_id, 0, "", data)

    def _response(
        self, number: int, msg_incr: str | int, operation_id: str | int, err_code: int, err_msg: str, data: Any
    ) -> bytes:
        if self.name is NAME_BASE64:
            data = base64.b64encode(_encode(data)).decode()
        return _encode(RequestResponse(number, msg_incr, operation_id, err_code, err_msg, data))


def _bad_frame(frame: bytes, error: Exception) -> BadFrame:
    """A frame that is not JSON, or whose outer fields have the wrong types: echo what there is."""
    found = read_object(frame)
    if found is None:
        return BadFrame(NexoError("bad_json", "A frame is a JSON object"), violation=True)
    number = echo(found.get("req_identifier"))
    ref = RequestRef(
        number if isinstance(number, int) else 0, echo(found.get("msg_incr")), echo(found.get("operation_id"))
    )
    if not isinstance(number, int):
        return BadFrame(NexoError("missing_type", "req_identifier must be a number"), ref, violation=True)
    if not isinstance(error, msgspec.ValidationError):
        ref = RequestRef(number, ref.msg_incr, ref.operation_id, text_in(found.get("data"), "client_msg_id"))
        return BadFrame(unstorable_error(frame, ERROR_FIELDS, "data"), ref)
    for field, name in _OUTER_FIELDS:
        if not isinstance(found.get(field), str | None):
            return BadFrame(NexoError(name, f"{field} must be a string"), ref)
    return BadFrame(NexoError("bad_request", "msg_incr and operation_id are short strings or numbers"), ref)


def _claims_another(frame: RequestFrame, user_id: str) -> bool:
    """Each field that names the sender is optional (older clients send an empty one), and has to name the signed-in
    user."""
    return not (
        (not frame.send_id or frame.send_id == user_id)
        and (not frame.sender_id or frame.sender_id == user_id)
        and (not frame.sender or frame.sender == user_id)
    )


def _client_msg_id(data: bytes | Raw) -> str | None:
    return text_in(read_object(data), "client_msg_id")


DIALECT = RequestCodec()
