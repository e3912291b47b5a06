"""The codec of the command dialect: the frame around `data`. It remembers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from nexo.core import commands, events
from nexo.errors import NexoError
from nexo.wire.command.answers import ANSWERS, OWN_ANSWERS, PUSHES, error_data
from nexo.wire.command.requests import ERROR_FIELDS, REQUESTS, SEND, SIGN_IN
from nexo.wire.dialect import BadFrame
from nexo.wire.framing import text_frame
from nexo.wire.handshakes import answer_nothing, echo_nothing, encode_outcome
from nexo.wire.reading import Echo, EchoNumber, echo, read_object, text_in, unstorable_error


class CommandFrame(Struct):
    """Any request of a client."""

    cmd: Echo | None = None
    request_id: Echo | EchoNumber = ""
    data: Raw = Raw(b"{}")
    sender: str | None = msgspec.field(default=None, name="from")
    sender_id: str | None = None
    send_id: str | None = None


class CommandRef(Struct, frozen=True):
    """What an answer echoes."""

    cmd: str = ""
    request_id: str | int = ""
    client_msg_id: str | None = None


class CommandResponse(Struct):
    """An answer, or a push: those have nothing to echo."""

    cmd: str
    request_id: str | int
    code: int
    message: str
    data: Any


_decode = msgspec.json.Decoder(CommandFrame).decode
_find, _find_push, _find_answer, _find_own = REQUESTS.get, PUSHES.get, ANSWERS.get, OWN_ANSWERS.get
_encode = msgspec.json.Encoder().encode


class CommandCodec:
    name = "nexo.command.v1"
    signs_in = True
    confirms = True
    is_binary = False
    catches_up = False
    resyncs = True
    echo_s = 0.0
    encode_outcome = staticmethod(encode_outcome)
    answer_text = staticmethod(answer_nothing)
    echo = staticmethod(echo_nothing)

    frame = staticmethod(text_frame)

    def for_connection(self, token: str | None) -> CommandCodec:
        return self

    def decode(self, frame: bytes, user_id: str | None) -> tuple[commands.Command, CommandRef]:
        try:
            found = _decode(frame)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise _bad_frame(frame, error) from None
        cmd = found.cmd
        ref = CommandRef(cmd or "", found.request_id)
        if not cmd:
            raise BadFrame(NexoError("missing_type", "cmd is missing"), ref, violation=True)
        row = _find(cmd)
        if row is None:
            raise BadFrame(NexoError("unknown_type", f"There is no command {cmd[:40]!r}"), ref, violation=True)
        if user_id is None and not row.for_all:
            raise BadFrame(NexoError("unauthorized"), ref)
        data = b"{}" if bytes(found.data) == b"null" else found.data
        try:
            if user_id is not None and _claims_another(found, user_id):
                raise NexoError("identity_mismatch")
            fields = row.read(data)
            if cmd == SEND:
                ref = CommandRef(cmd, found.request_id, fields.client_msg_id)
            return row.command(fields, user_id or ""), ref
        except NexoError as error:
            ref = CommandRef(cmd, found.request_id, _client_msg_id(data) if cmd == SEND else None)
            raise BadFrame(error, ref, for_all=row.for_all, signs_in=cmd == SIGN_IN and user_id is None) from None

    def log_fields(self, ref: CommandRef | None) -> Mapping[str, str | int]:
        return {} if ref is None else {"request_id": ref.request_id, "cmd": ref.cmd}

    def encode(self, event: events.Event, ref: CommandRef | None = None) -> bytes:
        if ref is None:
            push = _find_push(type(event))
            if push is None:
                return b""  # no frame: a client that signed in by the upgrade knows that it worked
            cmd, data = push(event)
            return _encode(CommandResponse(cmd, "", 0, "", data))
        if isinstance(event, events.Failed | events.SignInFailed):
            error = event.error
            data = error_data(error, ref.client_msg_id)
            return _encode(CommandResponse(ref.cmd, ref.request_id, error.number, error.name, data))
        answer = _find_own(ref.cmd) or _find_answer(type(event))
        return _encode(CommandResponse(ref.cmd, ref.request_id, 0, "", {} if answer is None else answer(event)))


def _bad_frame(frame: bytes, error: Exception) -> BadFrame:
    """A frame that is not JSON, or whose outer fields have the wrong types: echo what there is."""
    found = read_object(frame)
    if found is None:
        return BadFrame(NexoError("bad_json", "A frame is a JSON object"), violation=True)
    cmd = echo(found.get("cmd"))
    ref = CommandRef(cmd if isinstance(cmd, str) else "", echo(found.get("request_id")))
    if not ref.cmd:
        return BadFrame(NexoError("missing_type", "cmd must be a string"), ref, violation=True)
    if ref.cmd not in REQUESTS:
        return BadFrame(NexoError("unknown_type", f"There is no command {ref.cmd[:40]!r}"), ref, violation=True)
    if not isinstance(error, msgspec.ValidationError):
        ref = CommandRef(ref.cmd, ref.request_id, text_in(found.get("data"), "client_msg_id"))
        return BadFrame(unstorable_error(frame, ERROR_FIELDS, "data"), ref, for_all=REQUESTS[ref.cmd].for_all)
    for field in ("from", "sender_id", "send_id"):
        if not isinstance(found.get(field), str | None):
            return BadFrame(NexoError("bad_user_id", f"{field} must be a string"), ref)
    return BadFrame(NexoError("bad_request", "request_id is a short string or a number"), ref)


def _claims_another(frame: CommandFrame, user_id: str) -> bool:
    """Each field that names the sender is optional, and has to name the signed-in user."""
    return not (
        (frame.sender is None or frame.sender == user_id)
        and (frame.sender_id is None or frame.sender_id == user_id)
        and (frame.send_id is None or frame.send_id == user_id)
    )


def _client_msg_id(data: bytes | Raw) -> str | None:
    return text_in(read_object(data), "client_msg_id")


DIALECT = CommandCodec()
