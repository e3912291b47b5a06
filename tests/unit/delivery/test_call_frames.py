"""Which connections get a frame of a call, and that one which cannot take it is closed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from nexo.core import events
from nexo.delivery.call_frames import push_call
from nexo.wire.envelope.codec import DIALECT


class Line:
    """A connection that takes frames, or not."""

    def __init__(self, conn_id: str, sid: str, opened_at: float = 0.0, *, takes: bool = True) -> None:
        self.conn_id = conn_id
        self.session = SimpleNamespace(sid=sid)
        self.user_id = "ben"
        self.opened_at = opened_at
        self.dialect = DIALECT
        self.closing = False
        self.got = 0
        self.dropped = ""
        self._takes = takes

    def push(self, frame: bytes) -> bool:
        self.got += self._takes
        return self._takes

    def drop(self, reason: str) -> None:
        self.dropped = reason


def given(lines: list[Line], **route: Any) -> list[str]:
    push_call(lines, events.CallEnded(call_id=1, reason="ended", **route), "i1")  # type: ignore[arg-type]
    return [line.conn_id for line in lines if line.got]


def test_a_connection_that_cannot_take_it_is_closed_and_others_get_it() -> None:
    stuck, fine = Line("c1", "s1", takes=False), Line("c2", "s2")
    assert given([stuck, fine]) == ["c2"]
    assert (stuck.dropped, fine.dropped) == ("slow_consumer", "")


def test_it_goes_to_all_but_one() -> None:
    assert given([Line("c1", "s1"), Line("c2", "s1"), Line("c3", "s2")], besides="i1/c2") == ["c1", "c3"]


def test_it_goes_to_the_device_that_takes_part_and_its_later_connections() -> None:
    def lines() -> list[Line]:
        return [Line("c1", "s1", 1.0), Line("c2", "s1", 2.0), Line("c3", "s1", 3.0), Line("c4", "s2", 4.0)]

    assert given(lines(), only=("i1/c2", "s1")) == ["c2", "c3"]
    assert given(lines(), only=("i9/c2", "s1")) == ["c1", "c2", "c3"]  # it was on another instance
