"""Delivered and read: who is told, when, and what others of one's devices learn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.chat import meet, world
from harness.server_process import ServerProcess


async def test_the_peer_of_a_single_chat_learns_of_delivered_and_read(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for i in range(3):
            await ann.say(ben, f"{i}")
        messages = [await ben.expect("SINGLE_CHAT") for _ in range(3)]
        await ben.acknowledge(messages[2], "delivered")
        await ann.expect("ACK", ackType="delivered", msgSeq=3, serverMsgId=messages[2]["serverMsgId"])
        await ben.acknowledge(messages[1], "read")
        await ann.expect("ACK", ackType="read", msgSeq=2, serverMsgId=messages[1]["serverMsgId"])
        listed = await ann.me.get("/msg/receipts", server_msg_id=messages[1]["serverMsgId"])
        assert (listed["read"], listed["read_count"]) == ([ben.user_id], 1)
        listed = await ann.me.get("/msg/receipts", server_msg_id=messages[2]["serverMsgId"])
        assert (listed["read"], listed["delivered"], listed["delivered_count"]) == ([], [ben.user_id], 1)


async def test_a_read_tells_delivered_too(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.say(ben)
        await ben.acknowledge(await ben.expect("SINGLE_CHAT"), "read")
        await ann.expect("ACK", ackType="delivered")
        await ann.expect("ACK", ackType="read")


@pytest.mark.parametrize("kind", ["read", "READ", "ack_read", "Ack_Read"])
async def test_the_kind_of_an_ack_has_aliases_and_no_case(server: ServerProcess, kind: str) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.say(ben)
        await ben.acknowledge(await ben.expect("SINGLE_CHAT"), kind)
        await ann.expect("ACK", ackType="read")


async def test_an_ack_by_place_is_as_good_and_beyond_the_head_means_the_head(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for _ in range(2):
            name = (await ann.say(ben))["conversationId"]
            await ben.expect("SINGLE_CHAT")
        await ben.send({"type": "ACK", "ackType": "delivered", "conversationId": name, "msgSeq": "1"})
        await ann.expect("ACK", ackType="delivered", msgSeq=1)
        await ben.send({"type": "ACK", "ackType": "read", "conversationId": name, "msgSeq": 10**12})
        await ann.expect("ACK", ackType="read", msgSeq=2)


async def test_repeated_and_late_acks_are_harmless(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for _ in range(3):
            await ann.say(ben)
        messages = [await ben.expect("SINGLE_CHAT") for _ in range(3)]
        for message in (messages[2], messages[0], messages[2], messages[1]):
            await ben.acknowledge(message, "read")
            await ben.acknowledge(message, "delivered")
        await ann.expect("ACK", ackType="read", msgSeq=3)
        await ben.acknowledge(messages[0], "read")
        await ben.settle()
        entry = (await ben.me.get("/conversation/list"))["conversations"][0]
        assert (entry["read_seq"], entry["delivered_seq"], entry["unread"]) == (3, 3, 0)
        assert [frame["msgSeq"] for frame in ann.seen("ACK", ackType="read")] == [3]


async def test_ones_other_devices_learn_what_was_read_and_the_reading_one_is_not_told(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        pad = await ben.me.connect()
        await ann.say(ben)
        await ben.acknowledge(await ben.expect("SINGLE_CHAT"), "read")
        await pad.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=1)
        await ben.expect_nothing("ACK", ackType="read")


async def test_a_device_whose_read_was_overtaken_by_another_learns_of_it(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        pad = await ben.me.connect()
        for _ in range(2):
            await ann.say(ben)
        messages = [await ben.expect("SINGLE_CHAT") for _ in range(2)]
        await ben.acknowledge(messages[1], "read")
        await pad.acknowledge(messages[0], "read")
        await pad.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=2)


async def test_marking_read_over_http_tells_the_sender_and_all_of_ones_devices(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for _ in range(3):
            ack = await ann.say(ben)
        done = await ben.me.post("/conversation/read", conversation_id=ack["conversationId"], seq=2)
        assert done == {"conversation_id": ack["conversationId"], "read_seq": 2, "unread": 1}
        await ben.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=2)
        await ann.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=2)
        done = await ben.me.post(
            "/conversation/read", conversation_id=ack["conversationId"], last_msg_id=ack["serverMsgId"]
        )
        assert (done["read_seq"], done["unread"]) == (3, 0)
        await ben.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=3)


async def test_reading_up_to_an_event_is_told_to_ones_devices_to_the_last_seq(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        pad = await ben.me.connect()
        group = await ann.me.found_group(ben, cid)
        await ann.say(group)
        await ann.me.put("/group/update", group_id=group, name="renamed")
        event = await ben.expect("GROUP_EVENT", msgType=107)
        await ben.acknowledge(event, "read")
        await pad.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=event["msgSeq"])
        await ann.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=2)


async def test_own_messages_are_stepped_over_but_never_one_that_crossed_them(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        name = (await ann.say(ben, "crossing"))["conversationId"]
        await ben.say(ann, "I did not see yours yet")
        entry = (await ben.me.get("/conversation/list"))["conversations"][0]
        assert (entry["read_seq"], entry["unread"]) == (0, 1)
        await ben.send({"type": "ACK", "ackType": "read", "conversationId": name, "msgSeq": 1})
        await ann.expect("ACK", ackType="read")
        entry = (await ben.me.get("/conversation/list"))["conversations"][0]
        assert (entry["read_seq"], entry["delivered_seq"], entry["unread"]) == (2, 2, 0)


async def test_in_a_small_group_the_authors_concerned_are_told(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid, dan)
        await ann.say(group, "of ann")
        await ben.say(group, "of ben")
        last = await cid.expect("GROUP_CHAT", body="of ben")
        await cid.acknowledge(last, "read")
        await ann.expect("ACK", ackType="read", from_=cid.user_id, msgSeq=2)
        await ben.expect("ACK", ackType="read", from_=cid.user_id, msgSeq=3)
        await dan.expect_nothing("ACK")


async def test_authors_who_are_no_longer_members_get_no_receipts(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid, dan)
        await ben.say(group, "of ben")
        await dan.say(group, "of dan")
        last = await cid.expect("GROUP_CHAT", body="of dan")
        await ann.me.post("/group/remove_member", group_id=group, user_id=ben.user_id)
        await ben.expect("GROUP_EVENT", msgType=104)
        await cid.expect("GROUP_EVENT", msgType=104)
        await cid.acknowledge(last, "read")
        await dan.expect("ACK", ackType="read", from_=cid.user_id)
        await ben.expect_nothing("ACK")


async def test_receipts_reach_the_authors_of_a_group_also_after_a_restart() -> None:
    """Nothing about the group or its messages is in the server's memory then."""
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            ann, ben, cid = await here.people("ann", "ben", "cid")
            group = await ann.found_group(ben, cid)
            await ann.send(group, "before")
            server.restart()
            author, reader = await ann.connect(), await ben.connect()
            await reader.send({"type": "ACK", "ackType": "read", "conversationId": f"sg_{group}", "msgSeq": 2})
            await author.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=2)


@pytest.fixture(scope="module")
def big_groups() -> Iterator[ServerProcess]:
    """Three members are many here."""
    with ServerProcess(receipts__group_push_max_members=2) as running:
        yield running


async def test_in_a_big_group_receipts_are_not_pushed_and_can_be_asked_for(big_groups: ServerProcess) -> None:
    async with meet(big_groups, "ann", "ben", "cid", check_pushes=False) as (ann, ben, cid):
        pad = await ben.me.connect()
        group = await ann.me.found_group(ben, cid)
        ack = await ann.say(group)
        await ben.acknowledge(await ben.expect("GROUP_CHAT"), "read")
        await cid.acknowledge(await cid.expect("GROUP_CHAT"), "delivered")
        # one's own devices are told, whatever the size
        await pad.expect("ACK", ackType="read", from_=ben.user_id, msgSeq=2)
        await ann.expect_nothing("ACK", ackType="read")
        await ann.expect_nothing("ACK", ackType="delivered")
        listed = await ann.me.get("/msg/receipts", server_msg_id=ack["serverMsgId"])
        assert listed == {
            "read": [ben.user_id],
            "delivered": [cid.user_id],
            "pending": [],
            "read_count": 1,
            "delivered_count": 2,
        }


async def test_the_limit_is_about_members_and_counts_them_exactly(big_groups: ServerProcess) -> None:
    async with meet(big_groups, "ann", "ben", "cid", check_pushes=False) as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await cid.me.post("/group/quit", group_id=group)
        await ann.say(group)
        await ben.acknowledge(await ben.expect("GROUP_CHAT"), "read")
        await ann.expect("ACK", ackType="read", from_=ben.user_id)


async def test_receipts_of_a_hundred_members_are_pushed_and_of_one_more_are_not(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, *others = await here.people("ann", "ben", *(f"other{i}" for i in range(99)))
        author, reader = await ann.connect(), await ben.connect()
        group = await ann.found_group(ben, *others[:98])
        await author.say(group, "a hundred of us")
        await reader.acknowledge(await reader.expect("GROUP_CHAT"), "read")
        await author.expect("ACK", ackType="read", from_=ben.user_id)
        await ann.post("/group/invite", group_id=group, user_ids=[others[98].user_id])
        ack = await author.say(group, "one too many")
        pad = await ben.connect()
        await reader.acknowledge(await reader.expect("GROUP_CHAT"), "read")
        await pad.expect("ACK", ackType="read", from_=ben.user_id, serverMsgId=ack["serverMsgId"])
        await author.expect_nothing("ACK", ackType="read")
