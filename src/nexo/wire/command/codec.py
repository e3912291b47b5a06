"""The codec of the command dialect: the frame around `data`. It remembers nothing."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from nexo.core import commands, events
from nexo.errors import NexoError
from nexo.wire.command.answers import ANSWERS, OWN_ANSWERS, PUSHES, error_data
from nexo.wire.command.requests import ERROR_FIELDS, REQUESTS, SEND, SIGN_IN
from nexo.wire.dialect import BadFrame
from nexo.wire.reading import Echo, EchoNumber, echo, read_object, text_in, unstorable_error


class Frame(Struct):
    """Any request of a client."""

    cmd: Echo | None = None
    request_id: Echo | EchoNumber = ""
    data: Raw = Raw(b"{}")


class Ref(Struct, frozen=True):
    """What an answer echoes."""

    cmd: str = ""
    request_id: str | int = ""
    client_msg_id: str | None = None


class Response(Struct):
    """An answer, or a push: those have nothing to echo."""

    cmd: str
    request_id: str | int
    code: int
    message: str
    data: Any


_decode = msgspec.json.Decoder(Frame).decode
_encode = msgspec.json.Encoder().encode


class Command:
    name = "nexo.command.v1"
    signs_in = True
    confirms = True
    catches_up = False

    def for_connection(self, token: str | None) -> Command:
        return self

    def decode(self, frame: bytes, user_id: str | None) -> tuple[commands.Command, Ref]:
        try:
            found = _decode(frame)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise _bad_frame(frame, error) from None
        cmd = found.cmd
        ref = Ref(cmd or "", found.request_id)
        if not cmd:
            raise BadFrame(NexoError("missing_type", "cmd is missing"), ref, violation=True)
        row = REQUESTS.get(cmd)
        if row is None:
            raise BadFrame(NexoError("unknown_type", f"There is no command {cmd[:40]!r}"), ref, violation=True)
        if user_id is None and not row.for_all:
            raise BadFrame(NexoError("unauthorized"), ref)
        data = b"{}" if bytes(found.data) == b"null" else found.data
        try:
            fields = row.read(data)
            if cmd == SEND:
                ref = Ref(cmd, found.request_id, fields.client_msg_id)
            return row.command(fields, user_id or ""), ref
        except NexoError as error:
            ref = Ref(cmd, found.request_id, _client_msg_id(data) if cmd == SEND else None)
            raise BadFrame(error, ref, for_all=row.for_all, signs_in=cmd == SIGN_IN and user_id is None) from None

    def encode(self, event: events.Event, ref: Ref | None = None) -> bytes:
        if ref is None:
            push = PUSHES.get(type(event))
            if push is None:
                return b""  # there is nothing to say: whoever signed in by the upgrade knows that it worked
            cmd, data = push(event)
            return _encode(Response(cmd, "", 0, "", data))
        if isinstance(event, events.Failed | events.SignInFailed):
            error = event.error
            data = error_data(error, ref.client_msg_id)
            return _encode(Response(ref.cmd, ref.request_id, error.number, error.name, data))
        answer = OWN_ANSWERS.get(ref.cmd) or ANSWERS.get(type(event))
        return _encode(Response(ref.cmd, ref.request_id, 0, "", {} if answer is None else answer(event)))


def _bad_frame(frame: bytes, error: Exception) -> BadFrame:
    """A frame that is not JSON, or whose outer fields have the wrong types: echo what there is."""
    found = read_object(frame)
    if found is None:
        return BadFrame(NexoError("bad_json", "A frame is a JSON object"), violation=True)
    cmd = echo(found.get("cmd"))
    ref = Ref(cmd if isinstance(cmd, str) else "", echo(found.get("request_id")))
    if not ref.cmd:
        return BadFrame(NexoError("missing_type", "cmd must be a string"), ref, violation=True)
    if ref.cmd not in REQUESTS:
        return BadFrame(NexoError("unknown_type", f"There is no command {ref.cmd[:40]!r}"), ref, violation=True)
    if not isinstance(error, msgspec.ValidationError):
        ref = Ref(ref.cmd, ref.request_id, text_in(found.get("data"), "client_msg_id"))
        return BadFrame(unstorable_error(frame, ERROR_FIELDS, "data"), ref, for_all=REQUESTS[ref.cmd].for_all)
    return BadFrame(NexoError("bad_request", "request_id is a short string or a number"), ref)


def _client_msg_id(data: bytes | Raw) -> str | None:
    return text_in(read_object(data), "client_msg_id")


DIALECT = Command()
