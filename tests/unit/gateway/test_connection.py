"""One connection by itself, under a clock that tests set: violations, RESYNC, drainage."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from nexo.core.commands import Send
from nexo.core.limits import SendLimits
from nexo.core.model import Draft, Kind, Session
from nexo.errors import NexoError
from nexo.gateway import connection as module
from nexo.gateway import rate_limits, sends
from nexo.gateway.connection import Connection
from nexo.gateway.rate_limits import ConnectionRules
from nexo.ids import single_conversation_id
from nexo.metrics.traffic import Traffic
from nexo.ports import Origin
from nexo.wire.envelope.codec import DIALECT
from nexo.wire.framing import text_frame


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class FakeSocket:
    """Notes what is written; `unsent` of it is still to be taken."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.frames_in = self.bytes_in = self.extra_frames = 0
        self.unsent = 0
        self.closed_with: tuple[int, str] | None = None
        self.aborted = False
        self.reading = True

    def write(self, frames: bytes) -> None:
        position = 0
        while position < len(frames):
            size, start = frames[position + 1], position + 2
            if size == 126:
                size, start = int.from_bytes(frames[position + 2 : position + 4], "big"), position + 4
            self.frames.append(json.loads(frames[start : start + size]))
            position = start + size

    def ping(self) -> None: ...

    def close(self, code: int, reason: str = "") -> None:
        self.closed_with = code, reason

    def abort(self) -> None:
        self.aborted = True

    def buffered(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Sending:
    """Takes every draft; the test decides it."""

    gate = acceptor = None

    def __init__(self) -> None:
        self.submitted: list[tuple[str, Callable[[Any], None]]] = []

    def draft(self, user_id: str, command: Send) -> Draft:
        conversation_id = single_conversation_id(user_id, command.recv_id or "")
        return Draft(user_id, command.client_msg_id, conversation_id, Kind.SINGLE, 1, '"hello"', b"")

    def store(self, draft: Draft, origin: Origin) -> None:
        self.submitted.append((draft.client_msg_id, origin.decided))


class Host:
    def __init__(self) -> None:
        self.rules = ConnectionRules(0, 0, 0, 0, 65_536, 30_000)
        self.traffic = Traffic()
        self.sending = Sending()
        self.send_limits = SendLimits(0, 0)
        self.touched: list[Connection] = []

    @property
    def submitted(self) -> list[tuple[str, Callable[[Any], None]]]:
        return self.sending.submitted

    def schedule_flush(self) -> None: ...

    def arrived(self, connection: Connection) -> None: ...

    def gone(self, connection: Connection) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for each in (module, sends, rate_limits):
        monkeypatch.setattr(each, "time", found)
    return found


@pytest.fixture
def opened(clock: Clock) -> tuple[Connection, FakeSocket]:
    """A connection of ann's that is signed in."""
    host: Any = Host()
    connection, link = Connection(host, DIALECT, "c1", "127.0.0.1"), FakeSocket()
    connection.opened(link)
    connection.become(Session("sid", "ann", 5, "", 1))
    return connection, link


def reasons(link: FakeSocket) -> list[str]:
    return [frame["reason"] for frame in link.frames if frame["type"] == "ERROR"]


def test_three_violations_in_ten_seconds_are_endured_for_ever(
    opened: tuple[Connection, FakeSocket], clock: Clock
) -> None:
    connection, link = opened
    for _ in range(20):
        for _ in range(3):
            connection.text(b"nonsense")
        clock.now += 10.1
    connection.flush()
    assert reasons(link) == ["bad_json"] * 60
    assert link.closed_with is None


def test_the_fourth_within_ten_seconds_closes(opened: tuple[Connection, FakeSocket], clock: Clock) -> None:
    connection, link = opened
    for _ in range(3):
        connection.text(b"{}")
        clock.now += 3.3
    connection.binary(b"{}")
    assert reasons(link) == ["missing_type"] * 3 + ["bad_json"]
    assert link.closed_with is not None
    assert link.closed_with[0] in range(4000, 4500)


def test_pushes_that_do_not_fit_are_told_by_one_resync(opened: tuple[Connection, FakeSocket], clock: Clock) -> None:
    connection, link = opened
    connection.pause_writing()
    assert not link.reading
    for _ in range(5):
        connection.push(b"\x81\x02{}")
    connection.flush()
    assert link.frames == []
    connection.resume_writing()
    connection.flush()
    assert [frame["type"] for frame in link.frames] == ["RESYNC"]
    assert link.reading


def test_there_is_at_most_one_resync_in_five_seconds_and_none_is_swallowed(
    opened: tuple[Connection, FakeSocket], clock: Clock
) -> None:
    connection, link = opened
    connection.resync("first")
    connection.resync("second")
    clock.now += 4.9
    connection.resync_if_due()
    connection.flush()
    assert [frame["reason"] for frame in link.frames] == ["first"]
    clock.now += 0.2
    connection.resync_if_due()
    connection.flush()
    assert [frame["reason"] for frame in link.frames] == ["first", "second"]
    clock.now += 6
    connection.resync_if_due()
    connection.flush()
    assert len(link.frames) == 2


def test_a_resync_names_the_conversations_that_are_known_to_be_concerned(
    opened: tuple[Connection, FakeSocket], clock: Clock
) -> None:
    connection, link = opened

    def after(*resyncs: list[str]) -> list[str] | None:
        """What the next RESYNC names; each of these comes too soon after another one."""
        clock.now += 6
        connection.resync("first")
        for names in resyncs:
            connection.resync("push_lost", conversation_ids=names)
        clock.now += 6
        connection.resync_if_due()
        connection.flush()
        return link.frames[-1].get("conversations")

    assert after(["b"], ["a", "b"]) == ["a", "b"]
    assert after(["a"], [], ["b"]) is None, "anything may be missing"
    assert after([f"c{i}" for i in range(module.RESYNC_NAMES_MAX + 1)]) is None, "too many to name"
    assert after(["a"]) == ["a"], "what was sent before is not sent again"


def test_what_waits_for_sync_is_bounded_and_the_rest_is_told_by_resync(
    opened: tuple[Connection, FakeSocket], clock: Clock
) -> None:
    connection, link = opened
    connection.hold_pushes()
    for _ in range(module.HELD_MAX + 1):
        connection.push(b'\x81\x0d{"type":"X"} ')
    connection.flush()
    assert link.frames == []
    connection.release_pushes()
    connection.flush()
    connection.flush()
    kinds = [frame["type"] for frame in link.frames]
    assert kinds == ["X"] * module.HELD_MAX + ["RESYNC"]


def test_what_was_taken_grows_although_more_is_added(opened: tuple[Connection, FakeSocket], clock: Clock) -> None:
    """Whether a slow client drains is not to be seen from what is buffered."""
    connection, link = opened
    connection.resync("x")
    connection.flush()
    link.unsent = 10
    connection.pause_writing()
    before = connection.blocked_taken
    clock.now += 6
    connection.blocked_since = 0
    connection.resync("y" * 100)
    connection.flush()
    link.unsent = 50  # more than before, yet some was taken
    assert connection.taken > before


def test_pushes_to_a_blocked_client_are_dropped_or_queued_as_configured(
    opened: tuple[Connection, FakeSocket], clock: Clock
) -> None:
    connection, link = opened
    frame = text_frame(b'{"type":"X"}')
    connection.pause_writing()
    assert not connection.push(frame), "backpressure.drop_when_unwritable, the default"
    connection.host.rules = structs.replace(connection.host.rules, queued_bytes=100)
    taken = 0
    while connection.push(frame):
        taken += len(frame)
        connection.flush()
        link.unsent = taken
    assert 100 <= taken < 100 + len(frame), "and that is bounded too"


def test_a_goodbye_that_does_not_fit_is_a_reset(opened: tuple[Connection, FakeSocket], clock: Clock) -> None:
    connection, link = opened
    connection.pause_writing()
    connection.drop("kicked")
    assert link.aborted
    assert link.closed_with is None


def test_a_client_that_was_not_read_was_not_silent(opened: tuple[Connection, FakeSocket], clock: Clock) -> None:
    connection, _ = opened
    connection.pause_writing()
    clock.now += 1000
    connection.resume_writing()
    assert connection.last_seen == clock.now


def test_what_was_refused_at_the_door_stays_behind_what_was_taken_before_it_and_is_refused_only_now(
    clock: Clock,
) -> None:
    host: Any = Host()
    host.rules = ConnectionRules(1, 1, 0, 0, 65_536, 30_000)
    connection, link = Connection(host, DIALECT, "c1", "127.0.0.1"), FakeSocket()
    connection.opened(link)
    connection.become(Session("sid", "ann", 5, "", 1))

    def send(client_msg_id: str) -> None:
        frame = {"type": "SINGLE_CHAT", "clientMsgId": client_msg_id, "to": "ben", "body": "x"}
        connection.text(json.dumps(frame).encode())
        connection.flush()

    send("first")
    send("second")
    assert link.frames == []  # the refusal of the second waits for the answer to the first
    [(taken, answer)] = host.submitted
    assert taken == "first"
    answer(NexoError("server_busy"))
    connection.flush()
    assert [(frame["clientMsgId"], frame["reason"]) for frame in link.frames] == [
        ("first", "server_busy"),
        ("second", "too_many_requests"),
    ]
    for client_msg_id in ("second", "first"):
        clock.now += 1
        send(client_msg_id)
    assert [client_msg_id for client_msg_id, _ in host.submitted] == ["first", "first"]


def test_pings_and_fragments_are_bounded_like_acknowledgements(clock: Clock) -> None:
    host: Any = Host()
    host.rules = ConnectionRules(60, 120, 2000, 256, 65_536, 30_000)
    connection, link = Connection(host, DIALECT, "c1", "127.0.0.1"), FakeSocket()
    connection.opened(link)
    for _ in range(10):  # as many as may be, for ever
        link.extra_frames = 2000
        connection.read_done()
        clock.now += 1
    assert link.closed_with is None
    link.extra_frames = 2001
    connection.read_done()
    assert reasons(link) == ["too_many_requests"]
    assert link.frames[-1]["retryAfterMs"] > 0
    assert link.closed_with is not None
    assert link.closed_with[0] in range(4500, 5000)
