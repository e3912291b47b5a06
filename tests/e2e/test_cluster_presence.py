"""Everything of test_typing_and_presence.py once more, with its people spread over three instances."""

from __future__ import annotations

import asyncio

import pytest

from e2e import test_typing_and_presence
from harness.chat import meet
from harness.cluster import Cluster, suite

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three")]
globals().update(suite(test_typing_and_presence))


async def test_who_is_blocked_types_unseen(server: Cluster) -> None:
    """As in the suite, a moment later: other instances hear of the block after it was answered."""
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.say(ben)
        await ben.me.post("/user/block", user_id=ann.user_id)
        await asyncio.sleep(0.2)
        await ann.send({"type": "TYPING", "to": ben.user_id, "on": True})
        await ann.settle()
        await ben.expect_nothing("TYPING")
