"""Node numbers of the id generator: nobody makes ids under a number that somebody else may hold by now."""

from __future__ import annotations

import time

import pytest

from harness.core import look, open_test_core, refused, run, say
from harness.waiting import stand_still, until
from nexo.assembly.core import Core
from nexo.ids import COUNTER_BITS, MAX_NODES
from nexo.store import leases

PEOPLE = ("ann", "ben")
LEASE_S = 1


def node_of(server_msg_id: int) -> int:
    return (server_msg_id >> COUNTER_BITS) % MAX_NODES


async def holders(core: Core) -> dict[int, str]:
    return dict(await look(core, "SELECT node,holder FROM node_leases"))  # type: ignore[arg-type]


@pytest.mark.parametrize("is_taken", [False, True])
async def test_who_stood_still_past_the_lease_makes_no_ids_before_it_has_one_again(
    core_url: str, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_S", LEASE_S)
    async with open_test_core(core_url, PEOPLE) as core:
        ids = core.store.database.ids
        before = node_of((await say(core, "ann", "ben")).server_msg_id)
        if is_taken:  # as it will look to this process when it wakes up
            far_ms = 60_000 + int(time.time() * 1000)
            await run(core, "UPDATE node_leases SET holder='other',expires_at=? WHERE node=?", far_ms, before)
        stand_still(LEASE_S + 0.1)
        with refused("server_busy"):
            ids.take(1)
        monkeypatch.setattr(leases, "LEASE_S", 60)
        after = node_of((await say(core, "ann", "ben")).server_msg_id)
        assert (after != before) is is_taken
        assert (await holders(core))[after] == ids.holder


async def test_leases_are_renewed_again_and_again_while_nothing_stands_still(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_S", 0.02)
    async with open_test_core(core_url, PEOPLE) as core:
        ends = set()

        async def renewed_twice() -> bool:
            ends.add((await look(core, "SELECT max(expires_at) FROM node_leases"))[0][0])
            return len(ends) == 3

        await until(renewed_twice)
        await say(core, "ann", "ben")


async def test_the_next_holder_begins_after_all_that_a_clock_far_ahead_may_have_used(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one ends without a word; its clock was five minutes ahead."""
    async with open_test_core(core_url, PEOPLE) as core:
        ids = core.store.database.ids
        monkeypatch.setattr(ids, "_clock", lambda: int(time.time() * 1000) + 300_000)
        with refused("server_busy"):  # it was put forward after the lease was taken
            ids.take(1)
        last = (await say(core, "ann", "ben")).server_msg_id
        renewal = core.store.database._renewal
        assert renewal is not None
        await renewal.stop()  # or it may take the same node again before the second one does
        await run(core, "UPDATE node_leases SET expires_at=1,holder='dead' WHERE node=?", ids.node)
        async with open_test_core(core_url) as second:
            again = second.store.database.ids
            assert again.node == node_of(last)
            assert again.take(1)[0] > last
            assert again.last_ms > ids.last_ms
