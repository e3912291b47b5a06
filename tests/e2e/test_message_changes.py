"""Edits, reactions and pins between connected clients: what is pushed, to whom, and how often."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from harness.chat import Client, world
from harness.server_process import ServerProcess

THUMB = "👍"


async def edit(client: Client, server_msg_id: str, body: str, **fields: Any) -> Any:
    frame = {"type": "MESSAGE_EDIT", "clientMsgId": f"edit-{body}", "serverMsgId": server_msg_id, "body": body}
    return await client.ask({**frame, **fields}, "ACK", ackType="edited")


async def react(client: Client, server_msg_id: str, emoji: str = THUMB, on: bool = True) -> Any:
    frame = {"type": "REACT", "serverMsgId": server_msg_id, "emoji": emoji, "on": on}
    return await client.ask(frame, "ACK", ackType="reacted", serverMsgId=server_msg_id)


async def test_an_edit_reaches_all_devices_and_only_who_may_see_the_message_sees_its_text(
    server: ServerProcess,
) -> None:
    async with world(server, check_pushes=False) as here:
        people = await here.people("ann", "ben", "cid", "dan")
        ann, ben, cid, dan = [await person.connect() for person in people]
        group = await ann.me.found_group(ben, cid)
        said = await ann.say(group, "helo")
        for client in (ben, cid):
            await client.expect("GROUP_CHAT", body="helo")
        await ann.me.post("/group/invite", group_id=group, user_ids=[dan.user_id])
        await dan.expect("GROUP_EVENT", msgType=102)
        done = await edit(ann, said["serverMsgId"], "hello", mentions=[ben.user_id, dan.user_id])
        assert done["msgSeq"] == said["msgSeq"] + 2
        for client in (ann, ben, cid, dan):
            got = await client.expect("MESSAGE_EDITED", serverMsgId=said["serverMsgId"])
            assert (got["msgSeq"], got["from"], got["editedAt"]) == (done["msgSeq"], ann.user_id, done["editedAt"])
            if client is dan:
                assert not {"body", "mentions", "important"} & got.keys()
            else:
                assert (got["body"], got["mentions"]) == ("hello", [ben.user_id])
                assert got.get("important", False) is (client is ben)
        reply = await cid.say(group, "yes", replyToServerMsgId=said["serverMsgId"])
        for client in (ben, dan):
            got = await client.expect("GROUP_CHAT", serverMsgId=reply["serverMsgId"])
            assert got.get("quote", {}).get("text") == ("hello" if client is ben else None)
        again = await ben.me.connect()
        resent = await again.expect("MESSAGE_EDITED", resend=True)
        assert (resent["body"], resent["important"]) == ("hello", True)


async def test_reactions_are_announced_once_a_second(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        people = await here.people("ann", "ben", "cid")
        clients = [await person.connect() for person in people]
        ann, ben, cid = clients
        group = await ann.me.found_group(ben, cid)
        said = await ann.say(group, "vote")
        emojis = [chr(0x1F600 + number) for number in range(3)]
        for _ in range(6):
            for on in (True, False):
                await asyncio.gather(*(react(client, said["serverMsgId"], emojis[0], on) for client in clients))
        for number, client in enumerate(clients):
            await react(client, said["serverMsgId"], emojis[number])
        wanted = [{"emoji": emoji, "count": 1} for emoji in emojis]
        for client in clients:
            seen: list[Any] = []
            while not seen or sorted(seen[-1]["reactions"], key=str) != sorted(wanted, key=str):
                seen.append(await client.expect("REACTIONS", serverMsgId=said["serverMsgId"]))
            assert all(later["ts"] - earlier["ts"] >= 1000 for earlier, later in pairwise(seen))
            assert all(later["msgSeq"] > earlier["msgSeq"] for earlier, later in pairwise(seen))
        pulled = await ann.me.get("/msg/pull", conversation_id=f"sg_{group}", seqs=said["msgSeq"])
        mine = {one["emoji"]: one["mine"] for one in pulled["messages"][0]["reactions"]}
        assert mine == {emoji: emoji == emojis[0] for emoji in emojis}


async def test_changes_of_one_connection_are_made_in_their_order(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        people = await here.people("ann", "ben")
        ann, ben = [await person.connect() for person in people]
        said = await ann.say(ben, "first")
        name, server_msg_id = said["conversationId"], said["serverMsgId"]
        changes: list[Any] = []
        for number in range(12):
            frame = {"serverMsgId": server_msg_id, "clientMsgId": f"{name}-{number}"}
            changes.append({"type": "MESSAGE_EDIT", **frame, "body": f"version {number}"})
            changes.append({"type": "REACT", **frame, "emoji": THUMB, "on": number % 2 == 0})
            changes.append({"type": "PIN", **frame, "on": number % 2 == 0})
        await ann.send_at_once(*changes)
        acks = [await ann.expect("ACK", where=lambda frame: frame["ackType"] != "saved") for _ in changes]
        assert [ack["ackType"] for ack in acks] == ["edited", "reacted", "pinned"] * 12
        assert [ack["clientMsgId"] for ack in acks] == [frame["clientMsgId"] for frame in changes]
        (message,) = (await ben.me.get("/msg/pull", conversation_id=name, seqs=said["msgSeq"]))["messages"]
        assert (message["content"], message.get("reactions", [])) == ("version 11", [])
        assert (await ben.me.get("/msg/pins", conversation_id=name))["messages"] == []


async def test_a_pin_is_pushed_and_a_refusal_says_what_it_is_about(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        people = await here.people("ann", "ben")
        ann, ben = [await person.connect() for person in people]
        said = await ann.say(ben, "keep this")
        await ben.expect("SINGLE_CHAT")
        pin = {"type": "PIN", "serverMsgId": said["serverMsgId"], "on": True, "clientMsgId": "p1"}
        done = await ben.ask(pin, "ACK", ackType="pinned")
        assert (done["msgSeq"], done["clientMsgId"]) == (2, "p1")
        for client in (ann, ben):
            got = await client.expect("PINNED", serverMsgId=said["serverMsgId"])
            assert (got["on"], got["from"], got["msgSeq"]) == (True, ben.user_id, 2)
        refused = await ben.ask(
            {"type": "MESSAGE_EDIT", "serverMsgId": said["serverMsgId"], "body": "x", "clientMsgId": "e1"}, "ERROR"
        )
        assert (refused["reason"], refused["serverMsgId"], refused["clientMsgId"]) == (
            "not_message_sender",
            said["serverMsgId"],
            "e1",
        )
