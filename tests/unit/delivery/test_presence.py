"""Subscriptions to presence: bounded, replaced as a whole, and only of users that exist."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from harness.waiting import loop_turns
from nexo.core.model import Session
from nexo.delivery.hub import Hub
from nexo.delivery.presence import PresenceWatch


class Others:
    """Other instances, which note who is watched."""

    def __init__(self) -> None:
        self.presence = self
        self.watched: set[str] = set()

    async def watch(self, user_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
        self.watched |= set(user_ids)
        return {}

    async def on_other_instances(self, user_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
        return {}

    def unwatch(self, user_ids: Collection[str]) -> None:
        self.watched -= set(user_ids)


class Watcher:
    closing = False
    session = Session("sid", "ann", 5, "", 1)


async def nobody_blocks(viewer_id: str, user_ids: Sequence[str]) -> set[str]:
    return set()


def make() -> tuple[PresenceWatch, Hub, Others]:
    others = Others()
    remote: Any = others
    hub = Hub("multi", lambda _: None, lambda user_ids: watch.unwatched(user_ids))
    watch = PresenceWatch(hub, remote, nobody_blocks)
    return watch, hub, others


async def all_exist(user_ids: list[str]) -> Collection[str]:
    return user_ids


async def test_a_replaced_subscription_is_taken_back_from_other_instances() -> None:
    watch, _, others = make()
    ann, ben = Watcher(), Watcher()
    connections: list[Any] = [ann, ben]
    for start in range(0, 1000, 100):
        await watch.subscribe(connections[0], [f"u{number}" for number in range(start, start + 100)], all_exist)
        assert len(others.watched) == 100
    await watch.subscribe(connections[1], ["u999"], all_exist)
    await watch.subscribe(connections[0], [], all_exist)
    assert others.watched == {"u999"}


async def test_users_that_do_not_exist_are_shown_as_offline_and_not_watched() -> None:
    watch, hub, others = make()
    connection: Any = Watcher()

    async def only_ben(user_ids: list[str]) -> Collection[str]:
        return {"ben"}

    shown = await watch.subscribe(connection, ["nope1", "ben", "nope2"], only_ben)
    assert shown == [("nope1", False, []), ("ben", False, []), ("nope2", False, [])]
    assert others.watched == {"ben"}
    assert hub.watched() == ["ben"]


async def test_of_two_subscriptions_the_later_one_counts_also_when_its_answer_is_earlier() -> None:
    watch, hub, others = make()
    connection: Any = Watcher()

    async def slow(user_ids: list[str]) -> Collection[str]:
        await loop_turns(5)
        return user_ids

    first = watch.subscribe(connection, ["old"], slow)
    first.send(None)  # begun, and waiting
    await watch.subscribe(connection, ["new"], all_exist)
    try:
        while True:
            first.send(None)
    except StopIteration:
        pass
    assert hub.watched() == ["new"]
    assert others.watched == {"new"}
