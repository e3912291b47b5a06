"""Groups as those who are connected see them: who is told what when somebody comes, goes or manages."""

from __future__ import annotations

import asyncio

import pytest

from harness.chat import Client, Refused, fetch_messages, meet, world
from harness.server_process import ServerProcess


def of_group(client: Client, group: str) -> list[dict[str, object]]:
    """The frames of a group's conversation, in the order they came."""
    name = f"sg_{group}"
    found = []
    for frame in client.frames:
        if frame["type"] == "SYNC":
            found += [{"type": "SYNC"} | entry for entry in frame["conversations"] if entry["conversationId"] == name]
        elif frame.get("conversationId") == name:
            found.append(frame)
    return found


async def test_founders_get_the_sync_entry_before_the_first_event(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        for client in (ann, ben, cid):
            await client.expect("GROUP_EVENT", msgType=101)
            entry, event = of_group(client, group)
            assert (entry["type"], entry["headSeq"], entry["minSeq"], entry["readSeq"]) == ("SYNC", 1, 1, 0)
            assert event["msgSeq"] == 1


@pytest.mark.parametrize("way", ["invite", "join", "approval"])
async def test_who_comes_in_gets_the_sync_entry_first_and_sees_nothing_older(server: ServerProcess, way: str) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid, join_policy="approval" if way == "approval" else "open")
        for i in range(3):
            await ann.say(group, f"old {i}")
        if way == "invite":
            await ben.me.post("/group/invite", group_id=group, user_ids=[dan.user_id])
        else:
            joined = await dan.me.post("/group/join", group_id=group, message="please")
            assert joined == {"status": "pending" if way == "approval" else "joined"}
        if way == "approval":
            await dan.expect_nothing("GROUP_EVENT")
            await ann.me.post("/group/join_decide", group_id=group, user_id=dan.user_id, accept=True)
        for client in (ann, ben, cid, dan):
            event = await client.expect("GROUP_EVENT", msgType=102)
            assert event["body"]["user_ids"] == [dan.user_id]
        await ann.say(group, "new")
        await dan.expect("GROUP_CHAT")
        entry, event, message = of_group(dan, group)
        assert (entry["type"], entry["headSeq"], entry["minSeq"], entry["deliveredSeq"]) == ("SYNC", 5, 5, 4)
        assert (event["msgSeq"], message["msgSeq"], message["body"]) == (5, 6, "new")
        assert [m["seq"] for m in await fetch_messages(dan.me, f"sg_{group}")] == [5, 6]


async def test_who_is_let_in_while_messages_flow_gets_the_sync_entry_first_and_then_all(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        going = True

        async def flood(client: Client) -> None:
            while going:
                await client.say(group, "tick")

        floods = [asyncio.create_task(flood(client)) for client in (ann, ben, cid)]
        for _ in range(10):
            seen = len(of_group(dan, group))
            await ann.me.post("/group/invite", group_id=group, user_ids=[dan.user_id])
            joined = await dan.expect("GROUP_EVENT", msgType=102)
            await dan.expect("GROUP_CHAT", where=lambda f, seq=joined["msgSeq"]: f["msgSeq"] > seq + 3)
            await ann.me.post("/group/remove_member", group_id=group, user_id=dan.user_id)
            removed = await dan.expect("GROUP_EVENT", msgType=104)
            stay = of_group(dan, group)[seen:]
            assert stay[0]["type"] == "SYNC", stay[:3]
            assert stay[0]["minSeq"] == joined["msgSeq"]
            seqs = [frame["msgSeq"] for frame in stay[1:]]
            assert sorted(seqs) == list(range(joined["msgSeq"], removed["msgSeq"] + 1))
        going = False
        await asyncio.gather(*floods)
        last = max(frame["msgSeq"] for frame in of_group(dan, group)[1:] if "msgSeq" in frame)
        await dan.settle()
        assert (
            max(frame["msgSeq"] for frame in of_group(dan, group)[1:] if "msgSeq" in frame) == last == removed["msgSeq"]
        )


async def test_who_leaves_learns_of_it_and_of_nothing_later(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.say(group, "before")
        await cid.me.post("/group/quit", group_id=group)
        for client in (ann, ben, cid):
            event = await client.expect("GROUP_EVENT", msgType=103)
            assert event["body"] == {"user_id": cid.user_id}
        await ann.say(group, "after")
        await ben.expect("GROUP_CHAT", body="after")
        await cid.settle()
        assert [frame.get("body") for frame in cid.seen("GROUP_CHAT")] == ["before"]
        assert [m["seq"] for m in await fetch_messages(cid.me, f"sg_{group}")] == [1, 2, 3]


async def test_who_is_removed_learns_of_it_and_of_nothing_later(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.me.post("/group/remove_member", group_id=group, user_id=cid.user_id)
        for client in (ann, ben, cid):
            event = await client.expect("GROUP_EVENT", msgType=104)
            assert event["body"] == {"user_ids": [cid.user_id], "by": ann.user_id}
        await ann.say(group, "after")
        await ben.expect("GROUP_CHAT")
        await cid.expect_nothing("GROUP_CHAT")


async def test_who_comes_back_has_two_spans_and_misses_what_lies_between(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.say(group, "first span")
        await cid.me.post("/group/quit", group_id=group)
        await ann.say(group, "between")
        await cid.me.post("/group/join", group_id=group)
        await cid.expect("GROUP_EVENT", msgType=102)
        entry = [frame for frame in of_group(cid, group) if frame["type"] == "SYNC"][-1]
        assert (entry["minSeq"], entry["readSeq"], entry["deliveredSeq"], entry["unread"]) == (5, 4, 4, 0)
        await ann.say(group, "second span")
        await cid.expect("GROUP_CHAT", body="second span")
        assert [m["seq"] for m in await fetch_messages(cid.me, f"sg_{group}")] == [1, 2, 3, 5, 6]


async def test_every_change_is_told_as_an_event(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await cid.expect("GROUP_EVENT", msgType=101)

        async def told(msg_type: int) -> object:
            return (await cid.expect("GROUP_EVENT", msgType=msg_type))["body"]

        await ann.me.post("/group/set_member_role", group_id=group, user_id=ben.user_id, role="admin")
        assert await told(106) == {"user_id": ben.user_id, "role": "admin", "by": ann.user_id}
        await ben.me.put("/group/update", group_id=group, name="new name", announcement="hear")
        assert await told(107) == {"changes": {"name": "new name", "announcement": "hear"}, "by": ben.user_id}
        await ben.me.post("/group/mute", group_id=group, user_id=cid.user_id, duration_s=-1)
        assert await told(109) == {"user_id": cid.user_id, "until": -1}
        await ben.me.post("/group/mute", group_id=group, duration_s=0)
        assert await told(109) == {"user_id": None, "until": 0}
        await ann.me.post("/group/transfer_owner", group_id=group, user_id=ben.user_id)
        assert await told(105) == {"from": ann.user_id, "to": ben.user_id}
        await ben.me.post("/group/dismiss", group_id=group)
        assert await told(108) == {"by": ben.user_id}


async def test_a_deleted_group_is_told_as_dismissed_and_leaves_every_list(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.me.call("DELETE", "/conversation", params={"conversation_id": f"sg_{group}"})
        for client in (ann, ben, cid):
            await client.expect("GROUP_EVENT", msgType=108)
            assert (await client.me.get("/conversation/list"))["conversations"] == []


async def test_joining_twice_is_joining_once_and_tells_nobody_again(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        for _ in range(2):
            assert await dan.me.post("/group/join", group_id=group) == {"status": "joined"}
        await ann.expect("GROUP_EVENT", msgType=102)
        await ann.expect_nothing("GROUP_EVENT", msgType=102)
        done = await ann.me.post("/group/invite", group_id=group, user_ids=[dan.user_id, "nobody-there"])
        assert done == {
            "added": [],
            "skipped": [
                {"user_id": dan.user_id, "reason": "already_member"},
                {"user_id": "nobody-there", "reason": "user_not_found"},
            ],
        }


async def test_all_connections_of_a_member_are_told(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        clients = [await person.connect() for person in (ann, ann, ben, ben, cid)]
        group = await ann.found_group(ben, cid)
        for client in clients:
            await client.expect("GROUP_EVENT", msgType=101)
            assert of_group(client, group)[0]["type"] == "SYNC"


async def test_the_owner_cannot_leave(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        with pytest.raises(Refused, match="owner_cannot_leave"):
            await ann.me.post("/group/quit", group_id=group)
        await cid.expect_nothing("GROUP_EVENT", msgType=103)
