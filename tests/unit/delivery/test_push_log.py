"""What an instance remembers of its pushes."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from nexo.core.model import Session
from nexo.core.tracing import InstanceTrace, TracedReceiver, TracesFound, state_of
from nexo.delivery import push_log
from nexo.delivery.push_log import PushLog


def connection(user_id: str, conn_id: str, synced_s_ago: float = 60.0) -> Any:
    return SimpleNamespace(
        session=Session("s", user_id, 5, "d", 1),
        user_id=user_id,
        conn_id=conn_id,
        device_id="d",
        dialect=SimpleNamespace(name="envelope"),
        synced_at=time.monotonic() - synced_s_ago,
        closing=False,
    )


def message(server_msg_id: int) -> Any:
    return SimpleNamespace(server_msg_id=server_msg_id, conversation_id="si_a:b", seq=1, sender_id="a")


def results(trace: InstanceTrace) -> dict[str, str]:
    return {one.conn_id: one.result for one in trace.connections}


def test_connections_are_those_of_the_moment_of_the_push() -> None:
    log = PushLog("here")
    gone, there, late, full = (connection("b", name) for name in ("gone", "there", "late", "full"))
    with pytest.MonkeyPatch.context() as patch:
        earlier = time.monotonic() - 10
        patch.setattr(time, "monotonic", lambda: earlier)
        log.ended(gone)
    log.note((7, time.time() - 5, "push"))
    log.not_taken(full, message(7))
    late.synced_at = time.monotonic() - 1
    found = log.trace(7, ["b"], [there, late, full])
    assert results(found) == {"there": "pushed", "late": "later", "full": "not_taken"}
    log.ended(there)
    assert results(log.trace(7, ["b"], [late]))["there"] == "pushed"
    assert results(log.trace(8, ["b"], [late]))["late"] == "unknown"
    assert log.trace(7, ["c"], []).connections == []


def test_the_mode_of_a_large_group_is_the_reason() -> None:
    log = PushLog("here")
    for server_msg_id, mode, result in ((1, "notify", "notified"), (2, "none", "head")):
        log.note((server_msg_id, time.time(), mode))
        assert results(log.trace(server_msg_id, ["b"], [connection("b", "c")])) == {"c": result}


def test_the_ring_forgets_the_oldest_and_says_from_when_on_it_remembers() -> None:
    log = PushLog("here")
    for number in range(push_log.PUSHES_MAX + 10):
        log.note((number, 1000.0 + number, "push"))
    assert log.trace(5, ["b"], []).pushed_at == 0
    found = log.trace(10, ["b"], [])
    assert (found.pushed_at, found.remembers_since) == (1_010_000, 1_010_000)


def test_the_state_of_a_receiver_is_the_furthest_step_or_the_reason() -> None:
    log = PushLog("here")
    log.note((1, time.time(), "push"))
    pushed = TracesFound([log.trace(1, ["b"], [connection("b", "c")])], [])
    nothing = TracesFound([log.trace(1, ["b"], [])], [])
    silent = TracesFound(nothing.traces, ["other"])
    waiting = TracedReceiver("b", True, False, False, 0)
    assert state_of(waiting, pushed) == "pushed"
    assert state_of(waiting, nothing) == "offline"
    assert state_of(waiting, silent) == "unknown"
    assert state_of(waiting, TracesFound([], [])) == "unknown"
    assert state_of(waiting._replace(is_delivered=True), nothing) == "delivered"
    assert state_of(waiting._replace(is_read=True), nothing) == "read"
    assert state_of(waiting._replace(recv_msg_opt=1), nothing) == "muted"
    assert state_of(waiting._replace(is_member=False), nothing) == "not_member"
    assert state_of(waiting._replace(is_sender=True), nothing) == "sender"
