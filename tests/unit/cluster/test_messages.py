"""What instances tell each other survives the way, and arbitrary bytes are refused in one manner."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo.cluster.messages import (
    DeviceSignedIn,
    EventSaved,
    MessageSaved,
    PresenceUpdate,
    SessionsEnded,
    decode_event,
    decode_message,
    encode_event,
    encode_message,
)
from nexo.core import events
from nexo.core.model import Message, Quote
from nexo.errors import NexoError

MESSAGE = Message(
    1 << 62, "id", "sg_g_1", 7, "ann", 7, '"hi"', 5, ("ben",), 3, Quote(3, "ben", 1, "q"), '{"a":1}', 1, 9
)


@pytest.mark.parametrize(
    "message_",
    [
        MessageSaved(MESSAGE, 4, 3, True),
        EventSaved(MESSAGE, 4, ["dan"], ["cid"]),
        SessionsEnded(["s1"]),
        DeviceSignedIn("i_1", "ann", 1 << 50, 5, "device"),
        PresenceUpdate("ann", (1, 5), 1 << 50),
    ],
)
def test_a_telegram_is_read_as_it_was_written(message_: object) -> None:
    assert decode_message(encode_message(message_)) == message_  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "event",
    [
        events.Receipt("read", "si_a:b", 1 << 62, 9, "ann"),
        events.Saved(MESSAGE, True),
        events.Accepted("c", 5, "si_a:b"),
        events.Pushed(MESSAGE, provisional=True),
        events.Withdrawn(5, "si_a:b", "blocked"),
        events.HeadsChanged([("sg_g_1", 4)]),
    ],
)
def test_an_event_for_a_connection_elsewhere_is_the_same_there(event: events.Event) -> None:
    again = decode_event(*encode_event(event))
    assert type(again) is type(event)
    assert msgspec.to_builtins(again) == msgspec.to_builtins(event)


def test_an_error_for_a_connection_elsewhere_is_the_same_there() -> None:
    again = decode_event(*encode_event(events.Failed(NexoError("blocked", "no", retry_after_ms=5), "c1")))
    assert isinstance(again, events.Failed)
    assert (again.error.name, again.error.detail, again.error.retry_after_ms) == ("blocked", "no", 5)
    assert again.client_msg_id == "c1"


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_refused_or_a_telegram(data: bytes) -> None:
    with contextlib.suppress(msgspec.MsgspecError):
        decode_message(data)
    with contextlib.suppress(msgspec.MsgspecError):
        decode_event("Receipt", data)


def test_an_event_of_another_version_is_refused() -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_event("Unheard", b"\x80")
