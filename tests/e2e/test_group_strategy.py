"""How a group message reaches those who are online: whole, as a notice, or only by changed heads (SPEC §7)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from harness.chat import Client, World, meet, world
from harness.server_process import ServerProcess


@pytest.fixture(scope="module")
def notifying() -> Iterator[ServerProcess]:
    with ServerProcess(group__strategy__mode="notify") as running:
        yield running


@pytest.fixture(scope="module")
def silent() -> Iterator[ServerProcess]:
    with ServerProcess(group__strategy__mode="none", sync__heads_s=1) as running:
        yield running


@pytest.fixture(scope="module")
def by_size() -> Iterator[ServerProcess]:
    with ServerProcess(
        group__min_create_members=2,
        group__strategy__group_size_threshold=5,
        group__strategy__online_user_threshold=4,
        group__strategy__notify_max_online_user=6,
        group__strategy__huge_group_no_notify_size=8,
        sync__heads_s=1,
    ) as running:
        yield running


async def test_by_default_a_small_group_gets_whole_messages(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.say(group, "whole")
        for client in (ben, cid):
            assert (await client.expect("GROUP_CHAT"))["body"] == "whole"
            assert client.seen("GROUP_NOTIFY") == []


async def test_push_gives_whole_messages_whatever_the_size() -> None:
    small = {
        f"group__strategy__{name}": 1
        for name in (
            "group_size_threshold",
            "online_user_threshold",
            "notify_max_online_user",
            "huge_group_no_notify_size",
        )
    }
    with ServerProcess(group__strategy__mode="push", **small) as server:
        async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
            group = await ann.me.found_group(ben, cid)
            await ann.say(group, "whole")
            for client in (ben, cid):
                assert (await client.expect("GROUP_CHAT"))["body"] == "whole"


async def test_notify_tells_the_head_without_a_body(notifying: ServerProcess) -> None:
    async with meet(notifying, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        other = await ann.me.connect()
        await ben.expect("GROUP_EVENT")  # events are always told whole
        await ann.say(group, "not in the notice")
        for client in (ben, cid, other):
            told = await client.expect("GROUP_NOTIFY")
            assert told == {
                "type": "GROUP_NOTIFY",
                "conversationId": f"sg_{group}",
                "groupId": group,
                "headSeq": 2,
            }
            await client.expect_nothing("GROUP_CHAT")
        await ann.expect_nothing("GROUP_NOTIFY")


async def test_a_notice_is_important_to_the_mentioned(notifying: ServerProcess) -> None:
    async with meet(notifying, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.say(group, "ben?", mentions=[ben.user_id])
        assert (await ben.expect("GROUP_NOTIFY"))["important"] is True
        assert "important" not in await cid.expect("GROUP_NOTIFY")


async def test_notices_are_at_most_one_per_second_and_the_last_head_is_told(notifying: ServerProcess) -> None:
    async with meet(notifying, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        other_group = await ann.me.found_group(ben, cid)
        started = time.monotonic()
        for i in range(100):
            await ann.say(group, f"{i}")
            if i == 50:
                await ann.say(other_group, "apart", mentions=[ben.user_id])
        last = await ben.expect("GROUP_NOTIFY", conversationId=f"sg_{group}", headSeq=101)
        took_s = time.monotonic() - started
        notices = ben.seen("GROUP_NOTIFY", conversationId=f"sg_{group}")
        assert notices[0]["headSeq"] == 2
        assert notices[-1] == last
        assert 2 <= len(notices) <= 2 + took_s
        heads = [notice["headSeq"] for notice in notices]
        assert heads == sorted(heads)
        assert len(ben.seen("GROUP_NOTIFY", conversationId=f"sg_{other_group}")) == 1


async def test_a_mention_within_the_pause_is_not_lost(notifying: ServerProcess) -> None:
    async with meet(notifying, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.say(group, "1")
        await ann.say(group, "2", mentions=[ben.user_id])
        await ann.say(group, "3")
        await ben.expect("GROUP_NOTIFY", headSeq=2)
        assert (await ben.expect("GROUP_NOTIFY", headSeq=4))["important"] is True


async def test_single_chats_are_pushed_whole_whatever_the_strategy(notifying: ServerProcess) -> None:
    async with meet(notifying, "ann", "ben") as (ann, ben):
        await ann.say(ben, "whole")
        assert (await ben.expect("SINGLE_CHAT"))["body"] == "whole"


async def test_none_tells_changed_heads_together_after_a_while(silent: ServerProcess) -> None:
    async with meet(silent, "ann", "ben", "cid") as (ann, ben, cid):
        groups = [await ann.me.found_group(ben, cid) for _ in range(3)]
        for group in groups:
            await ann.say(group, "1")
            await ann.say(group, "2")
        heads: dict[str, int] = {}
        while heads != {f"sg_{group}": 3 for group in groups}:
            told = await ben.expect("HEADS")
            heads |= {entry["conversationId"]: entry["headSeq"] for entry in told["conversations"]}
        assert len(ben.seen("HEADS")) <= 2
        assert ben.seen("GROUP_CHAT") == ben.seen("GROUP_NOTIFY") == []


async def test_under_none_the_individually_mentioned_get_a_notice(silent: ServerProcess) -> None:
    async with meet(silent, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.say(group, "ben?", mentions=[ben.user_id])
        assert (await ben.expect("GROUP_NOTIFY"))["important"] is True
        await ann.say(group, "everybody?", mentions=["@all"])
        await cid.expect("HEADS")
        assert cid.seen("GROUP_NOTIFY") == []


class Crowd:
    """A group of so many members, of whom some are connected."""

    def __init__(self, owner: Client, clients: list[Client], group_id: str) -> None:
        self.owner = owner
        self.clients = clients
        self.group_id = group_id

    @classmethod
    async def gather(cls, here: World, members: int, online: int) -> Crowd:
        people = await here.people(*(f"member{i}" for i in range(members)))
        clients = await asyncio.gather(*(person.connect() for person in people[:online]))
        group_id = await people[0].found_group(*people[1:])
        return cls(clients[0], list(clients[1:]), group_id)


@pytest.mark.parametrize(
    ("members", "online", "expected"),
    [
        (3, 3, "GROUP_CHAT"),
        (4, 3, "GROUP_CHAT"),
        (4, 4, "GROUP_NOTIFY"),  # so many online
        (5, 2, "GROUP_NOTIFY"),  # so many members
        (6, 6, "HEADS"),  # too many online for notices
        (8, 2, "HEADS"),  # too many members for notices
    ],
)
async def test_auto_goes_by_members_and_by_those_online(
    by_size: ServerProcess, members: int, online: int, expected: str
) -> None:
    async with world(by_size) as here:
        crowd = await Crowd.gather(here, members, online)
        await crowd.owner.say(crowd.group_id, "hello all")
        for client in crowd.clients:
            await client.expect(expected)
            others = {"GROUP_CHAT", "GROUP_NOTIFY", "HEADS"} - {expected}
            assert [frame["type"] for frame in client.frames if frame["type"] in others] == []


async def test_auto_follows_those_who_come_and_go(by_size: ServerProcess) -> None:
    async with world(by_size) as here:
        crowd = await Crowd.gather(here, 4, 4)
        await crowd.owner.say(crowd.group_id, "many")
        await crowd.clients[0].expect("GROUP_NOTIFY", headSeq=2)
        await crowd.owner.ask({"type": "PRESENCE", "subscribe": [crowd.clients[2].user_id]}, "PRESENCE")
        await crowd.clients[2].close()
        await crowd.owner.expect("PRESENCE")
        await crowd.owner.say(crowd.group_id, "few")
        assert (await crowd.clients[0].expect("GROUP_CHAT"))["body"] == "few"
