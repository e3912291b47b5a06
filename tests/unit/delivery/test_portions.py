"""Large fan-outs: a bounded number of connections per turn of the event loop, in order, with nothing lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from structlog.testing import capture_logs

from harness.fanout import Pushed, make_fanout, sent
from harness.waiting import until
from nexo.delivery import portions
from nexo.delivery.fanout import Fanout

BIG, SMALL = "sg_g_Big000000001", "sg_g_Small0000001"


class Turns:
    """Counts calls by the turn of the event loop in which they are made."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()
        self._turn = 0
        self._is_over = False

    async def __aenter__(self) -> Turns:
        self._next()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True

    def _next(self) -> None:
        self._turn += 1
        if not self._is_over:
            asyncio.get_running_loop().call_soon(self._next)

    def watch(self, connections: list[Pushed]) -> None:
        for connection in connections:
            connection.push = self._counted(connection.push)  # type: ignore[method-assign]

    def _counted(self, push: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
        def counted(frame: bytes) -> bool:
            self.calls[self._turn] += 1
            return push(frame)

        return counted


def bodies(connection: Pushed) -> list[str]:
    """Returns the texts that were pushed, in their order; the frame begins with the bytes of its WebSocket header."""
    return [msgspec.json.decode(frame[frame.index(b"{") :])["body"] for frame in connection.frames]


async def big_group(count: int, each: int = 1) -> tuple[Fanout, list[Pushed]]:
    users = [f"u{number}" for number in range(count)]
    connections = [Pushed(user_id) for user_id in users for _ in range(each)]
    return await make_fanout({BIG: users, SMALL: users[:3]}, connections), connections


async def test_no_turn_pushes_to_more_than_a_portion_and_messages_keep_their_order() -> None:
    fanout, connections = await big_group(3000)
    async with Turns() as turns:
        turns.watch(connections)
        for seq in (1, 2, 3):
            fanout.saved(sent(BIG, seq), connections[0], None)
        await until(lambda: len(connections[-1].frames) == 3)
    assert max(turns.calls.values()) <= portions.PORTION
    assert connections[0].frames == [], "its own connection needs no push"
    assert all(bodies(connection) == ["1", "2", "3"] for connection in connections[1:])


async def test_connections_count_not_users() -> None:
    fanout, connections = await big_group(300, each=50)
    async with Turns() as turns:
        turns.watch(connections)
        fanout.saved(sent(BIG, 1), None, None)
        await until(lambda: all(connection.frames for connection in connections))
    assert max(turns.calls.values()) <= portions.PORTION


async def test_a_small_group_does_not_wait_for_a_large_one() -> None:
    fanout, connections = await big_group(3000)
    fanout.saved(sent(BIG, 1), None, None)
    fanout.saved(sent(SMALL, 1), None, None)
    assert [len(connection.frames) for connection in connections[:4]] == [1, 1, 1, 0]
    await until(lambda: connections[-1].frames)


async def test_a_message_behind_a_large_fan_out_waits_also_when_few_members_are_left_online() -> None:
    fanout, connections = await big_group(3000)
    fanout.saved(sent(BIG, 1), None, None)
    for connection in connections[5:]:
        fanout._hub.connections.pop(connection.user_id)
    fanout.saved(sent(BIG, 2), None, None)
    await until(lambda: len(connections[0].frames) == 2)
    assert [bodies(connection) for connection in connections[:5]] == [["1", "2"]] * 5


async def test_large_groups_take_turns() -> None:
    users = [f"u{number}" for number in range(1000)]
    other = "sg_g_Other0000001"
    connections = [Pushed(user_id) for user_id in [*users, "last"]]
    fanout = await make_fanout({BIG: users, other: [*users[:300], "last"]}, connections)
    for seq in range(1, 21):
        fanout.saved(sent(BIG, seq), None, None)
    before: list[int] = []

    def note(frame: bytes) -> bool:
        before.append(len(connections[900].frames))
        return True

    connections[-1].push = note  # type: ignore[method-assign]
    fanout.saved(sent(other, 1), None, None)
    await until(lambda: before)
    assert before[0] < 3, "it did not wait for twenty messages of the other group"
    await until(lambda: len(connections[900].frames) == 20)


async def members_resync(connections: list[Pushed]) -> bool:
    return all(connection.resyncs == [(BIG,)] for connection in connections)


async def test_after_a_failure_the_rest_of_the_members_resync() -> None:
    fanout, connections = await big_group(1000)
    connections[500].failure = RuntimeError("a defect")
    with capture_logs() as logs:
        fanout.saved(sent(BIG, 1), None, None)
        await until(lambda: BIG not in fanout.portions)
    connections[500].failure = None
    assert [entry["event"] for entry in logs] == ["push_failed"]
    assert [connection.resyncs for connection in connections[500:]] == [[(BIG,)]] * 500
    assert all(connection.frames or connection.resyncs for connection in connections)
    fanout.saved(sent(BIG, 2), None, None)
    await until(lambda: connections[-1].frames)


async def test_without_room_the_members_resync_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "WAITING_MAX", 2500)
    fanout, connections = await big_group(1000)
    for seq in range(1, 11):
        fanout.saved(sent(BIG, seq), None, None)
    look: Callable[[], Awaitable[bool]] = lambda: members_resync(connections)  # noqa: E731
    await until(look)
    assert all(bodies(connection) == ["1", "2"] for connection in connections)
    assert BIG not in fanout.portions
