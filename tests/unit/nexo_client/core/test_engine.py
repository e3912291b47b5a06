"""The session under a clock of the test's own."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo_client import ClientError, events
from nexo_client.core.engine import Engine
from nexo_client.core.options import Options
from nexo_client.errors import REASONS

CHAT = "si_alice:bob"


def signed_in(**options: Any) -> Engine:
    engine = Engine(Options(**options), "alice", random.Random(1))
    engine.start(0.0)
    engine.opened(0.0, "token", "device")
    engine.receive({"type": "AUTH_OK", "userId": "alice", "connId": "c", "heartbeatMs": 30_000}, 0.0)
    engine.receive({"type": "SYNC", "conversations": [], "hasMore": False}, 0.0)
    assert engine.connection.state == "online"
    engine.frames.clear()
    engine.events.clear()
    engine.actions.clear()
    return engine


def pushed(seq: int, **fields: Any) -> dict[str, Any]:
    message = {"type": "SINGLE_CHAT", "serverMsgId": f"id{seq}", "clientMsgId": None, "conversationId": CHAT}
    message |= {"msgSeq": seq, "from": "bob", "to": "alice", "msgType": 1, "body": f"text {seq}", "mentions": []}
    return message | {"replyToServerMsgId": None, "extra": None, "status": 0, "ts": seq} | fields


def entry(head_seq: int, **fields: Any) -> dict[str, Any]:
    known = {"conversationId": CHAT, "headSeq": head_seq, "minSeq": 1, "readSeq": 0, "deliveredSeq": 0, "unread": 0}
    return {"type": "SYNC", "conversations": [known | fields], "hasMore": False}


def taken(engine: Engine, kind: str) -> list[dict[str, Any]]:
    found = [frame for frame in engine.frames if frame["type"] == kind]
    engine.frames.clear()
    return found


def run_until(engine: Engine, now: float, end: float) -> None:
    while "drop" not in engine.actions and (due := engine.deadline(now)) is not None and due <= end:
        now = max(now, due)
        engine.tick(now)


def test_a_hole_is_pulled_after_150_ms_with_jitter() -> None:
    engine = signed_in()
    engine.receive(pushed(1), 1.0)
    engine.receive(pushed(3), 1.0)
    run_until(engine, 1.0, 1.149)
    assert taken(engine, "PULL") == []
    run_until(engine, 1.149, 1.226)
    (pull,) = taken(engine, "PULL")
    assert (pull["conversationId"], pull["beginSeq"]) == (CHAT, 2)


def test_a_hole_that_fills_by_itself_is_not_pulled() -> None:
    engine = signed_in()
    for seq in (1, 3, 2):
        engine.receive(pushed(seq), 1.0)
    run_until(engine, 1.0, 20.0)
    assert taken(engine, "PULL") == []


def test_acknowledgements_are_collected_and_cover_the_contiguous_part() -> None:
    engine = signed_in(ack_delay_ms=50)
    for seq in (1, 2, 3, 5):
        engine.receive(pushed(seq), 1.0)
    run_until(engine, 1.0, 1.06)
    assert taken(engine, "ACK") == [{"type": "ACK", "ackType": "delivered", "conversationId": CHAT, "msgSeq": 3}]


def test_reading_says_read_and_no_delivered_besides() -> None:
    engine = signed_in()
    engine.receive(pushed(1), 1.0)
    engine.mark_read(CHAT, None, 1.0)
    run_until(engine, 1.0, 1.1)
    assert taken(engine, "ACK") == [{"type": "ACK", "ackType": "read", "conversationId": CHAT, "msgSeq": 1}]


def test_a_conversation_that_begins_in_the_middle_is_asked_for() -> None:
    engine = signed_in()
    engine.receive(pushed(41), 1.0)
    assert taken(engine, "SYNC") == [{"type": "SYNC", "conversations": [CHAT]}]
    engine.receive(entry(41, deliveredSeq=40, unread=41), 1.1)
    assert engine.conversation(CHAT).synced_seq == 41
    assert engine.conversation(CHAT).unread == 41


def test_few_conversations_are_pulled_at_once() -> None:
    engine = signed_in()
    names = [f"si_alice:user{i:03}" for i in range(100)]
    heads = [entry(5, conversationId=name)["conversations"][0] for name in names]
    engine.receive({"type": "SYNC", "conversations": heads, "hasMore": False}, 1.0)
    run_until(engine, 1.0, 2.0)
    asked = taken(engine, "PULL")
    assert len(asked) == 8
    answer = {"type": "PULL_OK", "messages": [], "headSeq": 5, "nextSeq": 6, "hasMore": False}
    engine.receive(answer | {"conversationId": asked[0]["conversationId"]}, 2.0)
    assert len(taken(engine, "PULL")) == 1


def test_a_provisional_copy_is_gone_after_a_minute() -> None:
    engine = signed_in()
    engine.receive(pushed(1), 1.0)
    copy = pushed(0, provisional=True)
    del copy["msgSeq"]
    engine.receive(copy, 2.0)
    assert len(engine.conversation(CHAT).messages) == 2
    engine.tick(61.9)
    engine.receive({"type": "PONG"}, 61.9)
    assert len(engine.conversation(CHAT).messages) == 2
    engine.tick(62.0)
    assert len(engine.conversation(CHAT).messages) == 1


def test_who_has_sent_does_not_type_any_more_also_before_it_is_saved() -> None:
    engine = signed_in()
    engine.receive({"type": "TYPING", "conversationId": CHAT, "from": "bob", "on": True}, 1.0)
    assert engine.inbox.typists.of(CHAT) == ["bob"]
    copy = pushed(0, provisional=True)
    del copy["msgSeq"]
    engine.receive(copy, 2.0)
    assert engine.inbox.typists.of(CHAT) == []


def test_silence_is_asked_about_and_then_believed() -> None:
    engine = signed_in()
    run_until(engine, 0.0, 29.0)
    assert taken(engine, "PING") == []
    run_until(engine, 29.0, 30.0)
    assert len(taken(engine, "PING")) == 1
    engine.receive({"type": "PONG"}, 30.1)
    run_until(engine, 30.1, 60.2)
    assert len(taken(engine, "PING")) == 1
    run_until(engine, 60.2, 70.2)
    assert engine.actions == ["drop"]


def test_baselines_fit_into_a_frame() -> None:
    engine = signed_in()
    name = "si_" + "a" * 64 + ":b{:063}"
    heads = [entry(5, conversationId=name.format(i), deliveredSeq=5)["conversations"][0] for i in range(3000)]
    engine.receive({"type": "SYNC", "conversations": heads, "hasMore": False}, 1.0)
    engine.lost(2.0)
    engine.frames.clear()
    engine.opened(3.0, "t" * 1000, "device")
    assert len(msgspec.json.encode(engine.frames[0])) < 60_000
    assert len(engine.frames[0]["baselines"]) > 200


@pytest.mark.parametrize("name", ["kicked", "replaced", "session_invalid", "unauthorized", "reauth_uid_mismatch"])
def test_some_ends_are_final(name: str) -> None:
    engine = signed_in()
    engine.receive({"type": "ERROR", "reason": name}, 1.0)
    engine.lost(1.0, REASONS[name].close_code, name)
    assert (engine.connection.state, engine.connection.reason) == ("closed", name)
    assert engine.deadline(1.0) is None
    ends_session = any(isinstance(event, events.SessionChanged) for event in engine.events)
    assert ends_session == (name not in ("kicked", "replaced"))


def test_attempts_come_at_growing_random_times_and_start_over_after_a_steady_connection() -> None:
    engine = Engine(Options(), "alice", random.Random(4))
    engine.start(0.0)
    now, pauses = 0.0, []
    for _ in range(12):
        engine.lost(now)
        assert engine.connection.retry_at is not None
        pauses.append(engine.connection.retry_at - now)
        now = engine.connection.retry_at
        engine.tick(now)
        assert engine.connection.state == "connecting"
    assert pauses[0] <= 0.5
    assert max(pauses) > 8.0
    assert max(pauses) <= 30.0
    engine.opened(now, "token", "")
    engine.receive({"type": "AUTH_OK", "heartbeatMs": 30_000}, now)
    engine.receive({"type": "SYNC", "conversations": [], "hasMore": False}, now)
    engine.lost(now + 11.0)
    assert engine.connection.retry_at is not None
    assert engine.connection.retry_at - now - 11.0 <= 0.5


def online_at(engine: Engine, now: float) -> None:
    engine.tick(now)
    engine.opened(now, "token", "")
    engine.receive({"type": "AUTH_OK", "heartbeatMs": 30_000}, now)
    engine.receive({"type": "SYNC", "conversations": [], "hasMore": False}, now)


@pytest.mark.parametrize("reason", ["server_shutdown", "network"])
@pytest.mark.parametrize("seed", range(20))
def test_after_three_restarts_in_half_a_minute_a_client_is_back_within_seconds(reason: str, seed: int) -> None:
    """The server is away for three seconds each time, and up for one or two."""
    engine = Engine(Options(), "alice", random.Random(seed))
    engine.start(0.0)
    online_at(engine, 0.0)
    now = 1.5
    for _ in range(4):
        if reason == "server_shutdown":
            engine.receive({"type": "ERROR", "reason": reason, "retryAfterMs": 100}, now)
            engine.lost(now, 4505, reason)
        else:
            engine.lost(now)
        back_at = now + 3.0
        while (retry_at := engine.connection.retry_at) is not None and retry_at < back_at:
            engine.tick(retry_at)
            engine.lost(retry_at)
        assert retry_at is not None
        assert retry_at - back_at <= 4.1
        online_at(engine, retry_at)
        assert engine.connection.state == "online"
        now = retry_at + 1.5


def test_a_server_that_closes_every_connection_at_once_is_asked_less_and_less() -> None:
    engine = Engine(Options(), "alice", random.Random(4))
    engine.start(0.0)
    now, pauses = 0.0, []
    for _ in range(40):
        engine.tick(now)
        engine.opened(now, "token", "")
        engine.lost(now)
        assert engine.connection.retry_at is not None
        pauses.append(engine.connection.retry_at - now)
        now = engine.connection.retry_at
    assert max(pauses) > 15.0


def test_the_servers_hint_comes_on_top() -> None:
    engine = signed_in()
    engine.receive({"type": "ERROR", "reason": "server_shutdown", "retryAfterMs": 4000}, 1.0)
    engine.lost(1.0, 4505, "server_shutdown")
    assert engine.connection.retry_at is not None
    assert 5.0 <= engine.connection.retry_at <= 5.5


def test_an_expired_token_is_renewed_before_the_next_attempt() -> None:
    engine = signed_in()
    engine.lost(1.0, REASONS["token_expired"].close_code, "token_expired")
    assert (engine.connection.state, engine.connection.must_refresh) == ("offline", True)


def test_a_message_is_in_exactly_one_of_messages_and_pending_at_any_time() -> None:
    engine = signed_in()
    outgoing = engine.send(CHAT, {"to": "bob", "body": "mine"}, 1)
    engine.stored(outgoing.client_msg_id, 1.0)
    ack = {"type": "ACK", "ackType": "saved", "clientMsgId": outgoing.client_msg_id, "serverMsgId": "id2"}
    engine.receive(entry(1, deliveredSeq=0), 1.0)
    engine.receive(ack | {"conversationId": CHAT, "msgSeq": 2, "ts": 5}, 1.0)  # message 1 is still on its way
    assert outgoing.state == "saved"
    assert (engine.pending(CHAT), engine.conversation(CHAT).messages) == ([outgoing], [])
    engine.receive(pushed(1), 1.1)
    assert (engine.pending(CHAT), [message.seq for message in engine.conversation(CHAT).messages]) == ([], [1, 2])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = sorted({*pushed(1), *entry(1), "ackType", "reason", "headSeq", "nextSeq", "messages", "users", "on", "afterMs"})
TYPES = [*Engine(Options(), "alice")._handlers, "CALL_INVITE", ""]


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=12), max_size=6), st.data())
def test_frames_that_make_no_sense_are_told_as_errors(frames: list[dict[str, Any]], data: st.DataObject) -> None:
    engine = signed_in()
    for frame in frames:
        kind = data.draw(st.sampled_from(TYPES))
        engine.receive(pushed(1) | frame | {"type": kind}, 1.0)
        engine.tick(1.0)


def test_an_outbox_that_is_full_says_so() -> None:
    engine = signed_in(max_pending=2)
    for number in range(2):
        engine.send(CHAT, {"to": "bob", "body": str(number)}, 1)
    with pytest.raises(ClientError, match="outbox_full"):
        engine.send(CHAT, {"to": "bob", "body": "2"}, 1)
