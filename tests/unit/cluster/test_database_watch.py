"""Asking the database in place of a Redis that is gone: everybody in turn, a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.waiting import loop_turns, until
from nexo.background import Background
from nexo.cluster import database_watch
from nexo.cluster.database_watch import DatabaseWatch
from nexo.core import events
from nexo.ports import ActiveSince


class Store:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.heads: dict[str, int] = {}

    async def active_since(self, user_ids: Sequence[str], since_ms: int | None) -> ActiveSince:
        await loop_turns()
        self.asked.append(list(user_ids))
        return ActiveSince(1, [(name, f"of {name}", self.heads[name]) for name in user_ids if name in self.heads])


class Here:
    """Both the hub and who pushes."""

    def __init__(self, users: Sequence[str]) -> None:
        self.users = users
        self.told: list[tuple[str, events.Event]] = []

    def online_users(self) -> Sequence[str]:
        return self.users

    def to_user_here(self, user_id: str, event: events.Event) -> None:
        self.told.append((user_id, event))


@pytest.mark.parametrize(("users", "at_once"), [(1, 1), (7, 1), (20, 2), (205, 21), (1200, 50)])
async def test_everybody_is_asked_for_once_a_round_and_few_at_once(
    users: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_watch, "PAUSE_S", 0.001)
    monkeypatch.setattr(database_watch, "ROUND_S", 0.01)
    names = [f"user{i}" for i in range(users)]
    store: Any = Store()
    here: Any = Here(names)
    watch = DatabaseWatch(store, here, here, lambda conversation_id: 0, Background())
    watch.need("test", True)
    await until(lambda: sum(map(len, store.asked)) >= 2 * users)
    watch.need("test", False)
    asked = [name for some in store.asked for name in some]
    assert asked[: 2 * users] == names + names
    assert max(map(len, store.asked)) == at_once


async def test_a_head_is_told_once_and_not_when_it_was_pushed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_watch, "PAUSE_S", 0.001)
    monkeypatch.setattr(database_watch, "ROUND_S", 0.01)
    store: Any = Store()
    store.heads = {"ann": 5, "ben": 9}
    here: Any = Here(["ann", "ben"])
    watch = DatabaseWatch(
        store, here, here, lambda conversation_id: 9 if conversation_id == "of ben" else 0, Background()
    )
    watch.need("test", True)
    await until(lambda: len(store.asked) >= 6)
    assert here.told == [("ann", events.HeadsChanged([("of ann", 5)]))]
    store.heads = {"ann": 6, "ben": 10}
    await until(lambda: len(here.told) >= 3)
    watch.need("test", False)
    told = dict(here.told[1:])  # whoever is next in the round is told first
    assert told == {"ann": events.HeadsChanged([("of ann", 6)]), "ben": events.HeadsChanged([("of ben", 10)])}
