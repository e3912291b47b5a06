"""The codec of the request dialect: the frame around `data`.

A client that sends its `data` as base64 text of JSON (as Go marshals bytes) gets everything in kind from then
on. That, and the token it showed last, is what the codec of a connection remembers.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
from msgspec import Raw, Struct

from nexo.core import commands, events
from nexo.errors import NexoError
from nexo.wire.dialect import BadFrame
from nexo.wire.reading import Echo, EchoNumber, echo, read_object, text_in, unstorable_error
from nexo.wire.request.answers import ANSWERS, OWN_ANSWERS, PUSHES, error_data
from nexo.wire.request.requests import ERROR_FIELDS, REQUESTS, SEND

NAME = "nexo.request.v1"
NAME_BASE64 = f"{NAME};base64"


class Frame(Struct):
    """Any request of a client."""

    req_identifier: EchoNumber | None = None
    msg_incr: Echo | EchoNumber = ""
    operation_id: Echo | EchoNumber = ""
    token: str | None = None
    send_id: str | None = None
    data: Raw = Raw(b"{}")


class Ref(Struct, frozen=True):
    """What an answer echoes."""

    number: int = 0
    msg_incr: str | int = ""
    operation_id: str | int = ""
    client_msg_id: str | None = None


class Response(Struct):
    """An answer, or a push: those have nothing to echo."""

    req_identifier: int
    msg_incr: str | int
    operation_id: str | int
    err_code: int
    err_msg: str
    data: Any


_decode = msgspec.json.Decoder(Frame).decode
_decode_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode
_FROM_URL_SAFE = str.maketrans("-_", "+/")


class Request:
    """The codec of one connection."""

    __slots__ = ("_token", "name")

    signs_in = False
    confirms = True
    catches_up = False

    def __init__(self, token: str | None = None) -> None:
        self.name = NAME
        self._token = token

    def for_connection(self, token: str | None) -> Request:
        return Request(token)

    # -- in ------------------------------------------------------------------------------------------

    def decode(self, frame: bytes, user_id: str | None) -> tuple[commands.Command, Ref]:
        try:
            found = _decode(frame)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise _bad_frame(frame, error) from None
        number = found.req_identifier
        ref = Ref(number or 0, found.msg_incr, found.operation_id)
        if number is None:
            raise BadFrame(NexoError("missing_type", "req_identifier is missing"), ref, violation=True)
        row = REQUESTS.get(number)
        if row is None:
            raise BadFrame(NexoError("unknown_type", f"There is no request {number}"), ref, violation=True)
        data: bytes | Raw = b""
        try:
            data = self._plain(found.data)
            if found.send_id and user_id is not None and found.send_id != user_id:
                raise NexoError("identity_mismatch")
            fields = row.read(data)
            if number == SEND:
                ref = Ref(number, found.msg_incr, found.operation_id, fields.client_msg_id)
            command = row.command(fields, user_id)
        except NexoError as error:
            ref = Ref(number, found.msg_incr, found.operation_id, _client_msg_id(data))
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

    # -- out -----------------------------------------------------------------------------------------

    def encode(self, event: events.Event, ref: Ref | None = None) -> bytes:
        if ref is None:
            push = PUSHES.get(type(event))
            if push is None:
                return b""  # there is nothing to say: whoever signed in by the upgrade knows that it worked
            number, data = push(event)
            return self._response(number, "", "", 0, "", data)
        if isinstance(event, events.Failed | events.SignInFailed):
            error = event.error
            data = error_data(error, ref.client_msg_id)
            return self._response(ref.number, ref.msg_incr, ref.operation_id, error.number, error.name, data)
        answer = OWN_ANSWERS.get(ref.number) or ANSWERS.get(type(event))
        data = {} if answer is None else answer(event)
        return self._response(ref.number, ref.msg_incr, ref.operation_id, 0, "", data)

    def _response(
        self, number: int, msg_incr: str | int, operation_id: str | int, err_code: int, err_msg: str, data: Any
    ) -> bytes:
        if self.name is NAME_BASE64:
            data = base64.b64encode(_encode(data)).decode()
        return _encode(Response(number, msg_incr, operation_id, err_code, err_msg, data))


def _bad_frame(frame: bytes, error: Exception) -> BadFrame:
    """A frame that is not JSON, or whose outer fields have the wrong types: echo what there is."""
    found = read_object(frame)
    if found is None:
        return BadFrame(NexoError("bad_json", "A frame is a JSON object"), violation=True)
    number = echo(found.get("req_identifier"))
    ref = Ref(number if isinstance(number, int) else 0, echo(found.get("msg_incr")), echo(found.get("operation_id")))
    if not isinstance(number, int):
        return BadFrame(NexoError("missing_type", "req_identifier must be a number"), ref, violation=True)
    if not isinstance(error, msgspec.ValidationError):
        ref = Ref(number, ref.msg_incr, ref.operation_id, text_in(found.get("data"), "client_msg_id"))
        return BadFrame(unstorable_error(frame, ERROR_FIELDS, "data"), ref)
    for field, name in (("token", "bad_token"), ("send_id", "bad_user_id")):
        if not isinstance(found.get(field), str | None):
            return BadFrame(NexoError(name, f"{field} must be a string"), ref)
    return BadFrame(NexoError("bad_request", "msg_incr and operation_id are short strings or numbers"), ref)


def _client_msg_id(data: bytes | Raw) -> str | None:
    return text_in(read_object(data), "client_msg_id")


DIALECT = Request()
