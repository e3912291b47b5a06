"""The session under a clock of the test's own."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo.client import ClientError, events
from nexo.client.core import Core
from nexo.client.options import Options
from nexo.errors import ERRORS

CHAT = "si_alice:bob"


def signed_in(**options: Any) -> Core:
    core = Core(Options(**options), "alice", random.Random(1))
    core.start(0.0)
    core.opened(0.0, "token", "device")
    core.received({"type": "AUTH_OK", "userId": "alice", "connId": "c", "heartbeatMs": 30_000}, 0.0)
    core.received({"type": "SYNC", "conversations": [], "hasMore": False}, 0.0)
    assert core.link.state == "online"
    core.frames.clear()
    core.events.clear()
    core.wishes.clear()
    return core


def pushed(seq: int, **fields: Any) -> dict[str, Any]:
    message = {"type": "SINGLE_CHAT", "serverMsgId": f"id{seq}", "clientMsgId": None, "conversationId": CHAT}
    message |= {"msgSeq": seq, "from": "bob", "to": "alice", "msgType": 1, "body": f"text {seq}", "mentions": []}
    return message | {"replyToServerMsgId": None, "extra": None, "status": 0, "ts": seq} | fields


def entry(head_seq: int, **fields: Any) -> dict[str, Any]:
    known = {"conversationId": CHAT, "headSeq": head_seq, "minSeq": 1, "readSeq": 0, "deliveredSeq": 0, "unread": 0}
    return {"type": "SYNC", "conversations": [known | fields], "hasMore": False}


def taken(core: Core, kind: str) -> list[dict[str, Any]]:
    found = [frame for frame in core.frames if frame["type"] == kind]
    core.frames.clear()
    return found


def run_until(core: Core, now: float, end: float) -> None:
    while "drop" not in core.wishes and (due := core.deadline(now)) is not None and due <= end:
        now = max(now, due)
        core.tick(now)


def test_a_hole_is_pulled_after_150_ms_with_jitter() -> None:
    core = signed_in()
    core.received(pushed(1), 1.0)
    core.received(pushed(3), 1.0)
    run_until(core, 1.0, 1.149)
    assert taken(core, "PULL") == []
    run_until(core, 1.149, 1.226)
    (pull,) = taken(core, "PULL")
    assert (pull["conversationId"], pull["beginSeq"]) == (CHAT, 2)


def test_a_hole_that_fills_by_itself_is_not_pulled() -> None:
    core = signed_in()
    for seq in (1, 3, 2):
        core.received(pushed(seq), 1.0)
    run_until(core, 1.0, 20.0)
    assert taken(core, "PULL") == []


def test_acknowledgements_are_collected_and_cover_the_contiguous_part() -> None:
    core = signed_in(ack_delay_ms=50)
    for seq in (1, 2, 3, 5):
        core.received(pushed(seq), 1.0)
    run_until(core, 1.0, 1.06)
    assert taken(core, "ACK") == [{"type": "ACK", "ackType": "delivered", "conversationId": CHAT, "msgSeq": 3}]


def test_reading_says_read_and_no_delivered_besides() -> None:
    core = signed_in()
    core.received(pushed(1), 1.0)
    core.mark_read(CHAT, None, 1.0)
    run_until(core, 1.0, 1.1)
    assert taken(core, "ACK") == [{"type": "ACK", "ackType": "read", "conversationId": CHAT, "msgSeq": 1}]


def test_a_conversation_that_begins_in_the_middle_is_asked_for() -> None:
    core = signed_in()
    core.received(pushed(41), 1.0)
    assert taken(core, "SYNC") == [{"type": "SYNC", "conversations": [CHAT]}]
    core.received(entry(41, deliveredSeq=40, unread=41), 1.1)
    assert core.view(CHAT).synced_seq == 41
    assert core.view(CHAT).unread == 41


def test_few_conversations_are_pulled_at_once() -> None:
    core = signed_in()
    names = [f"si_alice:user{i:03}" for i in range(100)]
    heads = [entry(5, conversationId=name)["conversations"][0] for name in names]
    core.received({"type": "SYNC", "conversations": heads, "hasMore": False}, 1.0)
    run_until(core, 1.0, 2.0)
    asked = taken(core, "PULL")
    assert len(asked) == 8
    answer = {"type": "PULL_OK", "messages": [], "headSeq": 5, "nextSeq": 6, "hasMore": False}
    core.received(answer | {"conversationId": asked[0]["conversationId"]}, 2.0)
    assert len(taken(core, "PULL")) == 1


def test_a_provisional_copy_is_gone_after_a_minute() -> None:
    core = signed_in()
    core.received(pushed(1), 1.0)
    copy = pushed(0, provisional=True)
    del copy["msgSeq"]
    core.received(copy, 2.0)
    assert len(core.view(CHAT).messages) == 2
    core.tick(61.9)
    core.received({"type": "PONG"}, 61.9)
    assert len(core.view(CHAT).messages) == 2
    core.tick(62.0)
    assert len(core.view(CHAT).messages) == 1


def test_who_has_sent_does_not_type_any_more_also_before_it_is_saved() -> None:
    core = signed_in()
    core.received({"type": "TYPING", "conversationId": CHAT, "from": "bob", "on": True}, 1.0)
    assert core.inbox.typists.of(CHAT) == ["bob"]
    copy = pushed(0, provisional=True)
    del copy["msgSeq"]
    core.received(copy, 2.0)
    assert core.inbox.typists.of(CHAT) == []


def test_silence_is_asked_about_and_then_believed() -> None:
    core = signed_in()
    run_until(core, 0.0, 29.0)
    assert taken(core, "PING") == []
    run_until(core, 29.0, 30.0)
    assert len(taken(core, "PING")) == 1
    core.received({"type": "PONG"}, 30.1)
    run_until(core, 30.1, 60.2)
    assert len(taken(core, "PING")) == 1
    run_until(core, 60.2, 70.2)
    assert core.wishes == ["drop"]


def test_baselines_fit_into_a_frame() -> None:
    core = signed_in()
    name = "si_" + "a" * 64 + ":b{:063}"
    heads = [entry(5, conversationId=name.format(i), deliveredSeq=5)["conversations"][0] for i in range(3000)]
    core.received({"type": "SYNC", "conversations": heads, "hasMore": False}, 1.0)
    core.lost(2.0)
    core.frames.clear()
    core.opened(3.0, "t" * 1000, "device")
    assert len(msgspec.json.encode(core.frames[0])) < 60_000
    assert len(core.frames[0]["baselines"]) > 200


@pytest.mark.parametrize("name", ["kicked", "replaced", "session_invalid", "unauthorized", "reauth_uid_mismatch"])
def test_some_ends_are_final(name: str) -> None:
    core = signed_in()
    core.received({"type": "ERROR", "reason": name}, 1.0)
    core.lost(1.0, ERRORS[name].close_code, name)
    assert (core.link.state, core.link.reason) == ("closed", name)
    assert core.deadline(1.0) is None
    ends_session = any(isinstance(event, events.SessionChanged) for event in core.events)
    assert ends_session == (name not in ("kicked", "replaced"))


def test_attempts_come_at_growing_random_times_and_start_over_after_a_steady_connection() -> None:
    core = Core(Options(), "alice", random.Random(4))
    core.start(0.0)
    now, pauses = 0.0, []
    for _ in range(12):
        core.lost(now)
        assert core.link.retry_at is not None
        pauses.append(core.link.retry_at - now)
        now = core.link.retry_at
        core.tick(now)
        assert core.link.state == "connecting"
    assert pauses[0] <= 0.5
    assert max(pauses) > 8.0
    assert max(pauses) <= 30.0
    core.opened(now, "token", "")
    core.received({"type": "AUTH_OK", "heartbeatMs": 30_000}, now)
    core.received({"type": "SYNC", "conversations": [], "hasMore": False}, now)
    core.lost(now + 11.0)
    assert core.link.retry_at is not None
    assert core.link.retry_at - now - 11.0 <= 0.5


def test_the_servers_hint_comes_on_top() -> None:
    core = signed_in()
    core.received({"type": "ERROR", "reason": "server_shutdown", "retryAfterMs": 4000}, 1.0)
    core.lost(1.0, 4505, "server_shutdown")
    assert core.link.retry_at is not None
    assert 5.0 <= core.link.retry_at <= 5.5


def test_an_expired_token_is_renewed_before_the_next_attempt() -> None:
    core = signed_in()
    core.lost(1.0, ERRORS["token_expired"].close_code, "token_expired")
    assert (core.link.state, core.link.must_refresh) == ("offline", True)


def test_a_message_is_in_exactly_one_of_messages_and_pending_at_any_time() -> None:
    core = signed_in()
    outgoing = core.send(CHAT, {"to": "bob", "body": "mine"}, 1)
    core.stored(outgoing.client_msg_id, 1.0)
    ack = {"type": "ACK", "ackType": "saved", "clientMsgId": outgoing.client_msg_id, "serverMsgId": "id2"}
    core.received(entry(1, deliveredSeq=0), 1.0)
    core.received(ack | {"conversationId": CHAT, "msgSeq": 2, "ts": 5}, 1.0)  # message 1 is still on its way
    assert outgoing.state == "saved"
    assert (core.pending(CHAT), core.view(CHAT).messages) == ([outgoing], [])
    core.received(pushed(1), 1.1)
    assert (core.pending(CHAT), [message.seq for message in core.view(CHAT).messages]) == ([], [1, 2])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = sorted({*pushed(1), *entry(1), "ackType", "reason", "headSeq", "nextSeq", "messages", "users", "on", "afterMs"})
TYPES = [*Core(Options(), "alice")._handlers, "CALL_INVITE", ""]


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=12), max_size=6), st.data())
def test_frames_that_make_no_sense_are_told_as_errors(frames: list[dict[str, Any]], data: st.DataObject) -> None:
    core = signed_in()
    for frame in frames:
        kind = data.draw(st.sampled_from(TYPES))
        core.received(pushed(1) | frame | {"type": kind}, 1.0)
        core.tick(1.0)


def test_an_outbox_that_is_full_says_so() -> None:
    core = signed_in(max_pending=2)
    for number in range(2):
        core.send(CHAT, {"to": "bob", "body": str(number)}, 1)
    with pytest.raises(ClientError, match="outbox_full"):
        core.send(CHAT, {"to": "bob", "body": "2"}, 1)
