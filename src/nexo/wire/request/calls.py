"""Calls in the request dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from nexo.core import commands, events
from nexo.wire import call_forms as forms


class _Invite(Struct):
    recv_id: str | None = None
    call_kind: str | None = None
    sdp: str | None = None
    client_msg_id: str | None = None


def _invite(data: _Invite, user_id: Any) -> commands.Command:
    return commands.InviteCall(data.recv_id, data.call_kind, data.sdp, data.client_msg_id)


# In the order of the frames; a push has the number of the request that causes it, a thousand higher.
CALL_REQUESTS: dict[int, tuple[type[Struct], forms.Build]] = {
    1020: (_Invite, _invite),
    1021: (forms.CallAnswer, forms.accept),
    1022: (forms.WhichCall, forms.reject),
    1023: (forms.WhichCall, forms.cancel),
    1024: (forms.CallSignal, forms.signal),
    1025: (forms.CallHangUp, forms.hang_up),
}

CALL_PUSHES: dict[type, Callable[[Any], tuple[int, Any]]] = {
    events.CallRinging: lambda event: (2020, forms.shape_ringing(event)),
    events.CallAccepted: lambda event: (2021, forms.shape_accepted(event)),
    events.CallSignaled: lambda event: (2024, forms.shape_signaled(event)),
    events.CallEnded: lambda event: (2025, forms.shape_ended(event)),
    events.CallTimedOut: lambda event: (2026, forms.shape_timed_out(event)),
}
