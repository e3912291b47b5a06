"""Calls in the envelope dialect. Their frames are read a second time, for their own fields: other frames stay fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from nexo.core import commands, events
from nexo.core.json_reader import wrong_field
from nexo.errors import ERRORS, NexoError
from nexo.wire.envelope.refs import EnvelopeRef
from nexo.wire.reading import ECHO_MAX_CHARS, read_object


class CallFields(Struct, rename="camel"):
    """The fields of frames of calls."""

    client_msg_id: str | None = None
    to: str | None = None
    call_id: str | int | None = None
    call_kind: str | None = None
    sdp: str | None = None
    candidate: str | dict[str, Any] | None = None
    sdp_mid: str | None = None
    sdp_m_line_index: int | None = msgspec.field(default=None, name="sdpMLineIndex")
    username_fragment: str | None = None
    description: dict[str, Any] | None = None
    reason: str | None = None


SIGNALS = ("candidate", "sdp_mid", "sdp_m_line_index", "username_fragment", "description")
_SHOWN = {info.name: info.encode_name for info in msgspec.structs.fields(CallFields) if info.name in SIGNALS}

CALL_COMMANDS: dict[str, Callable[[CallFields], commands.Command]] = {
    "CALL_INVITE": lambda one: commands.InviteCall(one.to, one.call_kind, one.sdp, one.client_msg_id),
    "CALL_ACCEPT": lambda one: commands.AcceptCall(one.call_id, one.sdp),
    "CALL_REJECT": lambda one: commands.RejectCall(one.call_id),
    "CALL_CANCEL": lambda one: commands.CancelCall(one.call_id),
    "CALL_ICE": lambda one: commands.SignalCall(one.call_id, {name: getattr(one, name) for name in SIGNALS}),
    "CALL_END": lambda one: commands.EndCall(one.call_id, one.reason),
}

_decode = msgspec.json.Decoder(CallFields).decode
_encode = msgspec.json.Encoder().encode
_FIELD_ERRORS = {
    "to": "bad_receiver",
    "clientMsgId": "bad_client_msg_id",
    "callId": "bad_call_id",
    "callKind": "bad_call_kind",
    "sdp": "bad_sdp",
    "description": "bad_sdp",
    "reason": "bad_reason",
}


def decode_call(kind: str, frame: bytes) -> commands.Command:
    try:
        return CALL_COMMANDS[kind](_decode(frame))
    except msgspec.ValidationError as error:
        field = wrong_field(error)
        name = _FIELD_ERRORS.get(field, "bad_candidate")
        assert name in ERRORS
        raise NexoError(name, f"The field {field} has the wrong type") from None


def call_ref(client_msg_id: str | None, frame: bytes) -> EnvelopeRef:
    """Returns what the answer to a frame of a call echoes."""
    call_id = (read_object(frame) or {}).get("callId")
    shown = str(call_id)[:ECHO_MAX_CHARS] if type(call_id) in (str, int) else None
    return EnvelopeRef(client_msg_id, None, True, shown)


class _CallFrame(Struct, rename="camel"):
    type: str
    call_id: str
    client_msg_id: str | UnsetType = UNSET
    sender: str | UnsetType = msgspec.field(default=UNSET, name="from")
    call_kind: str | UnsetType = UNSET
    sdp: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET


def _invited(event: events.CallInvited) -> Any:
    return _CallFrame("CALL_INVITE_OK", str(event.call_id), client_msg_id=event.client_msg_id)


def _ringing(event: events.CallRinging) -> Any:
    return _CallFrame("CALL_INVITE", str(event.call_id), sender=event.user_id, call_kind=event.kind, sdp=event.sdp)


def _accepted(event: events.CallAccepted) -> Any:
    return _CallFrame("CALL_ACCEPT", str(event.call_id), sender=event.user_id, sdp=event.sdp)


def _signaled(event: events.CallSignaled) -> Any:
    shown = {_SHOWN[name]: value for name, value in event.fields.items()}
    return {"type": "CALL_ICE", "callId": str(event.call_id), "from": event.user_id, **shown}


def _ended(event: events.CallEnded) -> Any:
    duration = UNSET if event.duration_ms is None else event.duration_ms
    return _CallFrame("CALL_END", str(event.call_id), reason=event.reason, duration_ms=duration)


def _timed_out(event: events.CallTimedOut) -> Any:
    return _CallFrame("CALL_TIMEOUT", str(event.call_id))


def _encoder(shape: Callable[[Any], Any]) -> Callable[[Any, EnvelopeRef | None], bytes]:
    return lambda event, ref: _encode(shape(event))


CALL_ENCODERS: dict[type, Callable[[Any, EnvelopeRef | None], bytes]] = {
    events.CallInvited: _encoder(_invited),
    events.CallRinging: _encoder(_ringing),
    events.CallAccepted: _encoder(_accepted),
    events.CallSignaled: _encoder(_signaled),
    events.CallEnded: _encoder(_ended),
    events.CallTimedOut: _encoder(_timed_out),
}
