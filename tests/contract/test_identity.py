"""Identity comes from the session: in every dialect, a field that names the sender has to name the signed-in user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexo.wire.command.codec import DIALECT as COMMAND
from nexo.wire.dialect import BadFrame
from nexo.wire.envelope.codec import DIALECT as ENVELOPE
from nexo.wire.request.codec import DIALECT as REQUEST

FRAMES: dict[str, tuple[Any, dict[str, Any]]] = {
    "envelope": (ENVELOPE, {"type": "SINGLE_CHAT", "to": "ben", "clientMsgId": "c1", "body": "x"}),
    "request": (
        REQUEST,
        {"req_identifier": 1003, "data": {"client_msg_id": "c1", "recv_id": "ben", "content": "x"}},
    ),
    "command": (
        COMMAND,
        {"cmd": "chat.send_message", "data": {"client_msg_id": "c1", "chat_type": 1, "to_id": "ben", "content": "x"}},
    ),
}
OUTER = ("from", "sender_id", "send_id")
PLACES = [
    *(("envelope", "", field) for field in (*OUTER, "senderId", "sendId")),
    *((dialect, place, field) for dialect in ("request", "command") for place in ("", "data") for field in OUTER),
    ("command", "data", "from_user_id"),
]


@pytest.mark.parametrize(("dialect", "place", "field"), PLACES)
def test_a_sender_that_is_another_user_is_refused(dialect: str, place: str, field: str) -> None:
    codec, plain = FRAMES[dialect]

    def decode(name: Any) -> None:
        frame = json.loads(json.dumps(plain))
        (frame[place] if place else frame)[field] = name
        codec.for_connection(None).decode(json.dumps(frame).encode(), "ann")

    decode("ann")
    with pytest.raises(BadFrame) as refused:
        decode("ben")
    assert refused.value.error.name == "identity_mismatch"
    with pytest.raises(BadFrame) as refused:
        decode(5)
    assert refused.value.error.name in ("bad_user_id", "identity_mismatch")
