"""Ended and renewed sessions: whose connections are closed, and when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from harness.waiting import until
from nexo.background import Background
from nexo.core.model import Session
from nexo.delivery.hub import Hub
from nexo.errors import NexoError
from nexo.gateway.session_ends import SessionEnds
from nexo.ids import now_ms

FAR = now_ms() + 86_400_000


class Socket:
    """A connection with a session, as delivery sees it."""

    device_id = ""
    closing = False

    def __init__(self, sid: str, version: int = 1, user_id: str = "ann") -> None:
        self.session = structs.replace(Session(sid, user_id, 5, "", version), expires_at=FAR)
        self.dropped = ""

    def drop(self, error_name: str) -> None:
        self.dropped, self.closing = error_name, True

    @property
    def seconds_left(self) -> float:
        return (self.session.expires_at - now_ms()) / 1000


class SomeAccounts:
    """Sessions in a database that other instances change."""

    def __init__(self) -> None:
        self.live: dict[str, int] = {}
        self.changes: dict[str, int] = {}
        self.forgotten: list[str] = []
        self.asked = 0

    async def check_session(self, session: Session) -> Session:
        if session.sid not in self.live:
            raise NexoError("session_invalid")
        return Session(session.sid, session.user_id, 5, "", self.live[session.sid])

    async def changed_since(self, since_ms: int) -> tuple[int, list[tuple[str, int]]]:
        self.asked += 1
        if self.asked == 2:
            raise NexoError("server_busy")
        return now_ms(), list(self.changes.items())

    def forget_user(self, user_id: str) -> None:
        self.forgotten.append(user_id)


def make_ends(accounts: SomeAccounts, *sockets: Socket) -> SessionEnds:
    hub = Hub("multi", lambda user_id: None)
    for socket in sockets:
        hub.add(cast(Any, socket))
    return SessionEnds(cast(Any, accounts), cast(Any, SimpleNamespace(hub=hub)), None)


def test_a_renewed_session_leaves_older_sockets_ten_seconds_and_newer_ones_alone() -> None:
    old, new, of_another = Socket("s1"), Socket("s1", version=2), Socket("s2")
    ends = make_ends(SomeAccounts(), old, new, of_another)
    for _ in range(2):
        ends.renewed(Session("s1", "ann", 5, "", 2))
    assert 9 < old.seconds_left <= 10
    assert new.seconds_left > 3000
    assert of_another.seconds_left > 3000
    assert not old.closing, "it may show a newer token"


async def test_what_the_database_says_counts_for_sockets_that_were_not_notified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nexo.gateway.session_ends.WATCH_S", 0.01)
    monkeypatch.setattr("nexo.gateway.session_ends.WATCH_FAILED_S", 0.01)
    accounts, background = SomeAccounts(), Background()
    ended, renewed, valid = Socket("s1"), Socket("s2"), Socket("s3")
    others = Socket("s4", user_id="ben")
    accounts.live = {"s1": 1, "s2": 1, "s3": 1}
    ends = make_ends(accounts, ended, renewed, valid, others)
    ends.start(background)
    try:
        await until(lambda: accounts.asked > 3)
        assert accounts.forgotten == []
        accounts.live = {"s2": 2, "s3": 1}
        accounts.changes["ann"] = 1
        await until(lambda: ended.dropped == "session_invalid")
        await until(lambda: renewed.seconds_left <= 10)
        assert valid.seconds_left > 3000
        asked = accounts.asked
        await until(lambda: accounts.asked > asked + 3)
        assert accounts.forgotten == ["ann"], "once per change"
        accounts.live = {}
        accounts.changes["ann"] = 2
        await until(lambda: valid.dropped == "session_invalid")
        assert (others.dropped, others.seconds_left > 3000) == ("", True)
    finally:
        await background.stop()
