"""Everything of test_typing_and_presence.py once more, with its people spread over three instances."""

from __future__ import annotations

import pytest

from e2e import test_typing_and_presence
from harness.chat import meet
from harness.cluster import Cluster, suite
from harness.waiting import until

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three")]
globals().update(suite(test_typing_and_presence))


async def test_who_is_blocked_types_unseen(server: Cluster) -> None:
    """As in the suite, soon: other instances hear of the block after it was answered."""
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        await ann.say(ben)
        group = await ben.me.found_group(ann, cid)
        await ben.me.post("/user/block", user_id=ann.user_id)

        async def types_unseen() -> bool:
            seen = len(ben.seen("TYPING"))
            await ann.send({"type": "TYPING", "to": ben.user_id, "on": True})
            said = await ann.say(group, "on the same way, behind it")
            await ben.expect("GROUP_CHAT", serverMsgId=said["serverMsgId"])
            return len(ben.seen("TYPING")) == seen

        await until(types_unseen)
        assert await types_unseen()
