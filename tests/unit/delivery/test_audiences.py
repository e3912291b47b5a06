"""Member lists for pushing: fresh enough, in turn, and never silently missing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from harness.waiting import loop_turns
from nexo.background import Background
from nexo.delivery.audiences import Audiences
from nexo.errors import NexoError
from nexo.ports import Audience, Listener


class Groups:
    """Answers with what was there when it was asked, once it is allowed to."""

    def __init__(self) -> None:
        self.members = ["ann"]
        self.epoch = 1
        self.newcomers: dict[str, int] = {}
        self.asked = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.failure: Exception | None = None
        self.introduced: list[list[str]] = []

    async def audience(self, conversation_id: str) -> Audience:
        self.asked += 1
        found = Audience(self.epoch, {name: Listener(1, 0, False, ()) for name in self.members}, self.newcomers)
        await self.go_on.wait()
        if self.failure is not None:
            raise self.failure
        return found


Loss = tuple[str, Collection[str] | None, bool]


def make(groups: Groups) -> tuple[Audiences, list[Loss]]:
    lost: list[Loss] = []
    store: Any = groups

    async def introduce(conversation_id: str, audience: Audience, asked_at: float) -> None:
        await loop_turns()
        groups.introduced.append(sorted(audience.newcomers))

    return Audiences(store, 300, lambda *loss: lost.append(loss), introduce, Background()), lost


async def settle() -> None:
    await loop_turns(20)


async def test_what_comes_while_members_are_loaded_is_delivered_in_its_order() -> None:
    groups = Groups()
    groups.go_on.clear()
    audiences, _ = make(groups)
    delivered: list[int] = []
    for i in range(5):
        audiences.with_audience("c", 1, lambda _, i=i: delivered.append(i))  # type: ignore[misc]
    await settle()
    assert delivered == []
    groups.go_on.set()
    await settle()
    assert (delivered, groups.asked) == ([0, 1, 2, 3, 4], 1)
    audiences.with_audience("c", 1, lambda _: delivered.append(5))
    assert delivered[-1] == 5, "now at once"


async def test_a_list_of_an_older_epoch_is_loaded_anew() -> None:
    groups = Groups()
    audiences, _ = make(groups)
    seen: list[set[str]] = []
    audiences.with_audience("c", 1, lambda audience: seen.append(set(audience.listeners)))
    await settle()
    groups.members, groups.epoch = ["ann", "ben"], 2
    audiences.with_audience("c", 1, lambda audience: seen.append(set(audience.listeners)))
    audiences.with_audience("c", 2, lambda audience: seen.append(set(audience.listeners)))
    await settle()
    assert seen == [{"ann"}, {"ann"}, {"ann", "ben"}]


async def test_a_list_read_before_a_change_is_not_kept_after_it() -> None:
    """A setting changes without an epoch: what was on its way from the database then is out of date."""
    groups = Groups()
    groups.go_on.clear()
    audiences, _ = make(groups)
    loading = asyncio.create_task(audiences.load("c"))
    await settle()
    groups.members = ["ben"]
    audiences.forget("c")
    groups.go_on.set()
    assert set((await loading).listeners) == {"ann"}
    assert set((await audiences.load("c")).listeners) == {"ben"}


async def test_members_who_cannot_be_found_out_are_told_as_lost() -> None:
    groups = Groups()
    groups.failure = NexoError("server_busy")
    audiences, lost = make(groups)
    audiences.with_audience("c", 1, lambda _: None)
    await settle()
    assert lost == [("c", None, False)]
    groups.failure = None
    delivered: list[int] = []
    audiences.with_audience("c", 1, lambda _: delivered.append(1))
    await settle()
    assert delivered == [1], "and it goes on"


async def test_a_delivery_that_fails_is_told_as_lost_and_stops_nothing_later() -> None:
    groups = Groups()
    audiences, lost = make(groups)

    def fail(_: Audience) -> None:
        raise RuntimeError("a bug")

    delivered: list[int] = []
    audiences.with_audience("c", 1, fail)
    await settle()
    assert lost == [("c", {"ann"}, False)]
    audiences.with_audience("c", 1, lambda _: delivered.append(1))
    await settle()
    assert delivered == [1]


async def test_newcomers_are_introduced_before_anything_is_delivered_to_them() -> None:
    groups = Groups()
    groups.newcomers = {"ann": 20}
    audiences, _ = make(groups)
    await audiences.load("c")
    assert groups.introduced == [], "who only looks introduces nobody, and keeps nothing that others would rely on"
    seen: list[list[list[str]]] = []
    audiences.with_audience("c", 1, lambda _: seen.append(list(groups.introduced)))
    audiences.with_audience("c", 1, lambda _: seen.append(list(groups.introduced)))
    await settle()
    assert seen == [[["ann"]], [["ann"]]]
    assert groups.asked == 2


async def test_who_is_known_to_be_concerned_by_a_loss_is_named() -> None:
    groups = Groups()
    groups.failure = NexoError("server_busy")
    audiences, lost = make(groups)
    audiences.with_audience("si_ann:ben", 1, lambda _: None, heard=True)
    await settle()
    assert lost == [("si_ann:ben", {"ann", "ben"}, True)], "a chat of two names its members, and its sender told others"
    groups.failure = None
    audiences.with_audience("c", 1, lambda _: None)
    await settle()
    groups.failure = NexoError("server_busy")
    audiences._cached["c"] = (0.0, audiences._cached["c"][1])  # too old to be used without asking
    audiences.with_audience("c", 1, lambda _: None, also=["dan"])
    await settle()
    assert lost[-1] == ("c", {"ann", "dan"}, False), "its members are still the same"
    audiences.with_audience("c", 2, lambda _: None, heard=True)
    await settle()
    assert lost[-1] == ("c", None, True), "they have changed: it may concern any user here"


async def test_a_loss_is_told_to_other_instances_when_one_of_the_pushes_was_for_them() -> None:
    groups = Groups()
    groups.go_on.clear()
    groups.failure = NexoError("server_busy")
    audiences, lost = make(groups)
    audiences.with_audience("c", 1, lambda _: None, heard=True)
    audiences.with_audience("c", 1, lambda _: None)
    groups.go_on.set()
    await settle()
    assert lost == [("c", None, False)]


async def test_a_fleeting_push_that_fails_is_no_loss_and_takes_nothing_with_it() -> None:
    groups = Groups()
    groups.failure = NexoError("server_busy")
    groups.go_on.clear()
    audiences, lost = make(groups)
    delivered: list[str] = []
    audiences.with_audience("c", 0, lambda _: delivered.append("typing"), fleeting=True)
    audiences.with_audience("c", 0, lambda _: delivered.append("message"))
    groups.go_on.set()
    await settle()
    assert lost == [("c", None, False)]  # of the message, which was asked for by itself
    assert groups.asked == 2
    audiences.with_audience("c", 0, lambda _: delivered.append("typing"), fleeting=True)
    await settle()
    assert len(lost) == 1
    groups.failure = ValueError("cannot be encoded")
    audiences.with_audience("c", 0, lambda _: delivered.append("typing"), fleeting=True)
    await settle()
    assert len(lost) == 1
    assert delivered == []


async def test_chats_that_do_not_exist_are_not_remembered() -> None:
    groups = Groups()
    groups.members = []
    audiences, _ = make(groups)
    for number in range(50):
        audiences.with_audience(f"c{number}", 0, lambda _: None, fleeting=True)
    await settle()
    assert next(sample.value for sample in audiences.samples()) == 0
