"""Calls in the command dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from nexo.core import commands, events
from nexo.wire import call_forms as forms


class _Invite(Struct):
    to_id: str | None = None
    call_kind: str | None = None
    sdp: str | None = None
    client_msg_id: str | None = None


def _invite(data: _Invite, user_id: Any) -> commands.Command:
    return commands.InviteCall(data.to_id, data.call_kind, data.sdp, data.client_msg_id)


# A push has the name of the request that causes it.
CALL_REQUESTS: dict[str, tuple[type[Struct], forms.Build]] = {
    "call.invite": (_Invite, _invite),
    "call.accept": (forms.CallAnswer, forms.accept),
    "call.reject": (forms.WhichCall, forms.reject),
    "call.cancel": (forms.WhichCall, forms.cancel),
    "call.ice": (forms.CallSignal, forms.signal),
    "call.end": (forms.CallHangUp, forms.hang_up),
}

CALL_PUSHES: dict[type, Callable[[Any], tuple[str, Any]]] = {
    events.CallRinging: lambda event: ("call.invite", forms.shape_ringing(event)),
    events.CallAccepted: lambda event: ("call.accept", forms.shape_accepted(event)),
    events.CallSignaled: lambda event: ("call.ice", forms.shape_signaled(event)),
    events.CallEnded: lambda event: ("call.end", forms.shape_ended(event)),
    events.CallTimedOut: lambda event: ("call.timeout", forms.shape_timed_out(event)),
}
