"""Everything of test_groups_live.py once more, with its people spread over three instances."""

from __future__ import annotations

import asyncio

import pytest

from e2e import test_groups_live
from harness.chat import Client, meet
from harness.cluster import Cluster, suite

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three")]
globals().update(suite(test_groups_live))


async def test_who_is_let_in_while_messages_flow_gets_the_sync_entry_first_and_then_all(server: Cluster) -> None:
    """As in the suite, except that what crossed the removal on its way is asked for, not pushed: between two
    instances either may be heard first."""
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        going = True

        async def flood(client: Client) -> None:
            while going:
                await client.say(group, "tick")

        floods = [asyncio.create_task(flood(client)) for client in (ann, ben, cid)]
        for _ in range(10):
            seen = len(test_groups_live.of_group(dan, group))
            await ann.me.post("/group/invite", group_id=group, user_ids=[dan.user_id])
            joined = await dan.expect("GROUP_EVENT", msgType=102)
            await dan.expect("GROUP_CHAT", where=lambda f, seq=joined["msgSeq"]: f["msgSeq"] > seq + 3)
            await ann.me.post("/group/remove_member", group_id=group, user_id=dan.user_id)
            removed = await dan.expect("GROUP_EVENT", msgType=104)
            stay = test_groups_live.of_group(dan, group)[seen:]
            assert stay[0]["type"] == "SYNC", stay[:3]
            assert stay[0]["minSeq"] == joined["msgSeq"]
            seqs = {frame["msgSeq"] for frame in stay[1:]}
            assert seqs <= set(range(joined["msgSeq"], removed["msgSeq"] + 1))
            if len(seqs) <= removed["msgSeq"] - joined["msgSeq"]:  # a client that sees a gap asks
                await dan.pull_all(f"sg_{group}", joined["msgSeq"])
        going = False
        await asyncio.gather(*floods)
        await dan.settle()
        assert (
            max(frame["msgSeq"] for frame in test_groups_live.of_group(dan, group)[1:] if "msgSeq" in frame)
            == removed["msgSeq"]
        )
