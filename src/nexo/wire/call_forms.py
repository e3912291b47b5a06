"""Requests and pushes of calls that the request dialect and the command dialect write alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from nexo.core import commands, events


class WhichCall(Struct):
    call_id: str | int | None = None


class CallAnswer(WhichCall):
    sdp: str | None = None


class CallSignal(WhichCall):
    candidate: str | None = None
    sdp_mid: str | None = None
    sdp_m_line_index: int | None = None
    username_fragment: str | None = None
    description: dict[str, Any] | None = None


class CallHangUp(WhichCall):
    reason: str | None = None


CALL_ERROR_FIELDS = {
    "sdp_mid": "candidate",
    "sdp_m_line_index": "candidate",
    "username_fragment": "candidate",
    "description": "sdp",
}

Build = Callable[[Any, Any], commands.Command]


def signal(data: CallSignal, user_id: Any) -> commands.Command:
    fields = {name: getattr(data, name) for name in CallSignal.__struct_fields__ if name != "call_id"}
    return commands.SignalCall(data.call_id, fields)


def accept(data: CallAnswer, user_id: Any) -> commands.Command:
    return commands.AcceptCall(data.call_id, data.sdp)


def reject(data: WhichCall, user_id: Any) -> commands.Command:
    return commands.RejectCall(data.call_id)


def cancel(data: WhichCall, user_id: Any) -> commands.Command:
    return commands.CancelCall(data.call_id)


def hang_up(data: CallHangUp, user_id: Any) -> commands.Command:
    return commands.EndCall(data.call_id, data.reason)


def _invited(event: events.CallInvited) -> Any:
    return {"call_id": str(event.call_id), "client_msg_id": event.client_msg_id}


CALL_ANSWERS: dict[type, Callable[[Any], Any]] = {events.CallInvited: _invited}


def shape_ringing(event: events.CallRinging) -> Any:
    return {"call_id": str(event.call_id), "user_id": event.user_id, "call_kind": event.kind, "sdp": event.sdp}


def shape_accepted(event: events.CallAccepted) -> Any:
    return {"call_id": str(event.call_id), "user_id": event.user_id, "sdp": event.sdp}


def shape_signaled(event: events.CallSignaled) -> Any:
    return {"call_id": str(event.call_id), "user_id": event.user_id, **event.fields}


def shape_ended(event: events.CallEnded) -> Any:
    data: dict[str, Any] = {"call_id": str(event.call_id), "reason": event.reason}
    if event.duration_ms is not None:
        data["duration_ms"] = event.duration_ms
    return data


def shape_timed_out(event: events.CallTimedOut) -> Any:
    return {"call_id": str(event.call_id)}
