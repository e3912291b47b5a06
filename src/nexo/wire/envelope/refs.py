"""What an answer of the envelope dialect echoes of its request."""

from __future__ import annotations

from msgspec import Struct


class EnvelopeRef(Struct, frozen=True, gc=False):
    client_msg_id: str | None = None
    server_msg_id: str | None = None
    is_call: bool = False  # a refusal is a CALL_ERROR
    call_id: str | None = None
