"""Shards of accepted messages have one owner at a time, and only that one can store them, on every engine."""

from __future__ import annotations

import asyncio

import pytest

from harness.commits import Submitter
from harness.core import open_test_core, say
from harness.waiting import until
from nexo.assembly.core import Core
from nexo.core.commands import Send
from nexo.core.model import Draft, Sent
from nexo.errors import NexoError

PEOPLE = ["alice", "bob"]


def accepted(core: Core, client_msg_id: str, fence: tuple[int, int]) -> Draft:
    draft = core.sending.draft("alice", Send(client_msg_id=client_msg_id, recv_id="bob", content="hello"))
    (draft.server_msg_id,) = core.store.database.ids.take(1)
    draft.fence = fence
    return draft


async def test_a_shard_goes_from_one_owner_to_the_next_with_a_higher_epoch(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        owners = core.store.owners
        assert await owners.take("a", range(4), 60, 4) == {0: 1, 1: 1, 2: 1, 3: 1}
        assert await owners.take("b", range(4), 60, 4) == {}
        assert await owners.renew("a", {0: 1, 3: 1}, 60) == {0, 3}
        assert await owners.renew("b", {0: 1}, 60) == set()
        await owners.release("a", {1: 1, 2: 7})  # of another epoch: not its own any more
        assert await owners.take("b", range(4), 60, 4) == {1: 2}
        assert await owners.renew("a", {0: 1, 1: 1}, 60) == {0}


async def test_who_does_not_renew_loses_the_shard(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        owners = core.store.owners
        assert await owners.take("a", [0], 0.05, 1) == {0: 1}
        assert await until(lambda: owners.take("b", [0], 60, 1)) == {0: 2}


async def test_each_takes_its_part_and_what_nobody_wanted_for_long(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        owners = core.store.owners
        await owners.take("a", range(4), 60, 4)
        assert await owners.free(5) == [4]
        await owners.release("a", {1: 1, 2: 1, 3: 1})
        assert await owners.free(5) == [1, 2, 3, 4]
        assert await owners.take("b", range(4), 60, 0) == {}
        assert await owners.take("b", [2, 3], 60, 1) == {2: 2}
        assert await until(lambda: owners.take("c", [1, 2, 3], 0.02, 0)) == {1: 2, 3: 2}


async def test_many_who_take_at_once_get_each_shard_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        taken = await asyncio.gather(*(core.store.owners.take(f"o{i}", range(8), 60, 8) for i in range(5)))
        assert sorted(shard for one in taken for shard in one) == list(range(8))


async def test_only_the_present_owner_can_store_what_was_accepted(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        await core.store.owners.take("a", [0], 0.01, 1)
        await until(lambda: core.store.owners.take("b", [0], 60, 1))
        with pytest.raises(NexoError, match="server_busy"):
            await core.store.messages.send(accepted(core, "1", (0, 1)))
        draft = accepted(core, "1", (0, 2))
        sent = await core.store.messages.send(draft)
        assert (sent.message.server_msg_id, sent.message.seq, sent.fresh) == (draft.server_msg_id, 2, True)
        # the owner died before it could tell anybody: whoever comes next finds it stored, and tells
        again = await core.store.messages.send(draft)
        assert (again.message, again.fresh) == (sent.message, True)
        # the same send under another id was stored by somebody else: that row is the message
        other = await core.store.messages.send(accepted(core, "1", (0, 2)))
        assert (other.message, other.fresh) == (sent.message, False)


async def test_the_direct_way_goes_on_beside_a_shard_that_was_lost(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        await core.store.owners.take("a", [0], 60, 1)
        outcomes: list[Sent | NexoError] = []
        done = asyncio.Event()

        def note(outcome: Sent | NexoError) -> None:
            outcomes.append(outcome)
            if len(outcomes) == 2:
                done.set()

        core.store.messages.submit(accepted(core, "stale", (0, 9)), Submitter(note))
        direct = core.sending.draft("alice", Send(client_msg_id="direct", recv_id="bob", content="hello"))
        core.store.messages.submit(direct, Submitter(note))
        await done.wait()
        assert isinstance(outcomes[0], NexoError)
        assert isinstance(outcomes[1], Sent)
        assert outcomes[1].message.seq == 2
