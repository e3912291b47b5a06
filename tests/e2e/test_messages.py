"""What can be done with messages, as those who are connected see it: recall, mentions, replies, settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness import processes
from harness.chat import Client, fetch_messages, fresh_id, meet, world
from harness.server_process import ServerProcess


async def recall(client: Client, server_msg_id: str) -> dict[str, Any]:
    return await client.ask(
        {"type": "MESSAGE_REVOKE", "serverMsgId": server_msg_id}, "ACK", ackType="revoked", serverMsgId=server_msg_id
    )


async def test_a_recalled_message_is_blank_in_every_way_of_reading(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        ack = await ann.say(group, "a secret", extra={"also": "secret"}, mentions=[ben.user_id])
        await ben.say(group, "really?", replyToServerMsgId=ack["serverMsgId"])
        assert (await cid.expect("GROUP_CHAT", body="really?"))["quote"]["text"] == "a secret"
        await recall(ann, ack["serverMsgId"])
        for client in (ann, ben, cid):
            await client.expect("MESSAGE_REVOKED", serverMsgId=ack["serverMsgId"])
            blank = (await client.pull(f"sg_{group}", 2, endSeq=2))["messages"][0]
            assert (blank["status"], blank["body"], blank["extra"], blank["mentions"]) == (1, "", None, [])
            reply = (await client.pull(f"sg_{group}", 3, endSeq=3))["messages"][0]
            assert "quote" not in reply
        everything = await fetch_messages(ben.me, f"sg_{group}")
        assert "secret" not in str(everything)
        again = await ben.me.connect(baselines={f"sg_{group}": 0})
        assert "secret" not in str(again.frames)


async def test_a_repeated_recall_answers_the_same_and_tells_nobody_again(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        ack = await ann.say(ben)
        first = await recall(ann, ack["serverMsgId"])
        await ben.expect("MESSAGE_REVOKED")
        assert await recall(ann, ack["serverMsgId"]) | {"ts": first["ts"]} == first
        over_http = await ann.me.post("/msg/recall", server_msg_id=ack["serverMsgId"])
        assert over_http == {"server_msg_id": ack["serverMsgId"], "seq": first["msgSeq"]}
        await ben.expect_nothing("MESSAGE_REVOKED")


async def test_owner_and_admins_recall_what_others_wrote(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        ack = await cid.say(group, "rude")
        await ann.me.post("/group/set_member_role", group_id=group, user_id=ben.user_id, role="admin")
        await recall(ben, ack["serverMsgId"])
        assert (await cid.expect("MESSAGE_REVOKED"))["from"] == ben.user_id


async def test_a_recall_does_not_change_what_is_unread(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        ack = await ann.say(ben)
        await ann.say(ben)
        await recall(ann, ack["serverMsgId"])
        await ben.expect("MESSAGE_REVOKED")
        (entry,) = (await ben.me.get("/conversation/list"))["conversations"]
        assert (entry["unread"], entry["head_seq"], entry["last_message"]["msg_type"]) == (2, 3, 100)


async def test_who_was_away_learns_of_a_recall_by_sync_and_resend(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        client = await ben.connect()
        sent = await ann.send(ben, "regrettable")
        await client.expect("SINGLE_CHAT")
        name = sent["conversation_id"]
        await client.send({"type": "ACK", "ackType": "read", "serverMsgId": sent["server_msg_id"]})
        await client.settle()
        await client.close()
        await ann.post("/msg/recall", server_msg_id=sent["server_msg_id"])
        back = await ben.connect(baselines={name: 1})
        (told,) = back.seen("MESSAGE_REVOKED")
        assert (told["serverMsgId"], told["msgSeq"], told["resend"]) == (sent["server_msg_id"], 2, True)


async def test_only_members_are_mentioned_and_nobody_mentions_themselves(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        mentions = [ann.user_id, ben.user_id, dan.user_id, ben.user_id]
        await ann.say(group, "you", mentions=mentions)
        told = await ben.expect("GROUP_CHAT")
        assert (told["important"], told["mentions"]) == (True, [ann.user_id, ben.user_id])
        assert "important" not in await cid.expect("GROUP_CHAT")
        other = await ann.me.connect()
        await ann.say(group, "me", mentions=[ann.user_id])
        assert "important" not in await other.expect("GROUP_CHAT", body="me")
        await dan.expect_nothing("GROUP_CHAT")
        (entry,) = (await ben.me.get("/conversation/list"))["conversations"]
        assert (entry["unread"], entry["unread_mentions"]) == (2, 1)


async def test_a_mention_of_all_is_important_to_everybody_but_its_sender(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        other = await ann.me.connect()
        await ann.say(group, "meeting", mentions=["@all", ben.user_id])
        for client in (ben, cid):
            told = await client.expect("GROUP_CHAT")
            assert (told["important"], told["mentions"]) == (True, ["@all"])
        assert "important" not in await other.expect("GROUP_CHAT", body="meeting")
        late = await cid.me.connect()
        (resent,) = late.seen("GROUP_CHAT")
        assert (resent["important"], resent["resend"]) == (True, True)
        for client, important in ((late, True), (other, None)):
            (pulled,) = (await client.pull(f"sg_{group}", 2))["messages"]
            assert pulled.get("important") is important


async def test_a_quote_is_left_out_where_its_target_cannot_be_seen(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        old = await ann.say(group, "before dan came")
        await ann.me.post("/group/invite", group_id=group, user_ids=[dan.user_id])
        await ben.say(group, "answering", replyToServerMsgId=old["serverMsgId"])
        assert (await cid.expect("GROUP_CHAT", body="answering"))["quote"]["text"] == "before dan came"
        seen = await dan.expect("GROUP_CHAT", body="answering")
        assert "quote" not in seen
        assert seen["replyToServerMsgId"] == old["serverMsgId"]


async def test_who_comes_back_sees_quotes_from_the_time_before_they_left(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        early = await ann.say(group, "while cid was in")
        await cid.me.post("/group/quit", group_id=group)
        between = await ann.say(group, "while cid was out")
        await ann.me.post("/group/invite", group_id=group, user_ids=[cid.user_id])
        await ben.say(group, "to the first", replyToServerMsgId=early["serverMsgId"])
        await ben.say(group, "to the second", replyToServerMsgId=between["serverMsgId"])
        assert (await cid.expect("GROUP_CHAT", body="to the first"))["quote"]["text"] == "while cid was in"
        assert "quote" not in await cid.expect("GROUP_CHAT", body="to the second")


async def test_a_long_quote_is_cut_and_media_are_quoted_by_name(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        long = await ann.say(ben, "x" * 300)
        image = await ann.say(ben, {"url": "https://x.example/1", "name": "holiday.jpg"}, msgType=2)
        await ben.say(ann, "1", replyToServerMsgId=long["serverMsgId"])
        await ben.say(ann, "2", replyToServerMsgId=image["serverMsgId"])
        assert (await ann.expect("SINGLE_CHAT", body="1"))["quote"]["text"] == "x" * 200
        quote = (await ann.expect("SINGLE_CHAT", body="2"))["quote"]
        assert (quote["text"], quote["msgType"]) == ("holiday.jpg", 2)


async def test_a_silenced_conversation_is_pushed_silently(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        name = (await ann.say(ben, "loud"))["conversationId"]
        assert "silent" not in await ben.expect("SINGLE_CHAT")
        await ben.me.put("/conversation/update", conversation_id=name, recv_msg_opt=2)
        await ann.say(ben, "quiet")
        assert (await ben.expect("SINGLE_CHAT"))["silent"] is True
        late = await ben.me.connect()
        assert [frame["silent"] for frame in late.seen("SINGLE_CHAT")] == [True, True]
        await ben.me.put("/conversation/update", conversation_id=name, recv_msg_opt=0)
        await ann.say(ben, "loud again")
        assert "silent" not in await ben.expect("SINGLE_CHAT")


@pytest.fixture(scope="module")
def quick_heads() -> Iterator[ServerProcess]:
    """Changed heads are told after a second; and a word is masked."""
    words = processes.new_dir("words") / "words.txt"
    words.write_text("rhubarb\n")
    with ServerProcess(sync__heads_s=1, filter__file=words) as running:
        yield running


async def test_without_frames_changed_heads_are_told_together(quick_heads: ServerProcess) -> None:
    async with meet(quick_heads, "ann", "ben", "cid") as (ann, ben, cid):
        names = []
        for sender in (ben, cid):
            names.append((await sender.say(ann, "first"))["conversationId"])
            await ann.me.put("/conversation/update", conversation_id=names[-1], recv_msg_opt=1)
            await ann.expect("SINGLE_CHAT")
        for i in range(5):
            await ben.say(ann, f"{i}")
            await cid.say(ann, f"{i}")
        told = await ann.expect("HEADS")
        assert told.keys() == {"type", "conversations"}
        heads = {entry["conversationId"]: entry["headSeq"] for entry in told["conversations"]}
        if len(heads) < 2 or set(heads.values()) != {6}:  # a second went by between the sends
            told = await ann.expect("HEADS")
            heads |= {entry["conversationId"]: entry["headSeq"] for entry in told["conversations"]}
        assert heads == dict.fromkeys(names, 6)
        await ann.expect_nothing("SINGLE_CHAT")
        (a, b) = (await ann.me.get("/conversation/list"))["conversations"]
        assert a["unread"] == b["unread"] == 6


async def test_events_and_recalls_are_told_also_without_frames(quick_heads: ServerProcess) -> None:
    async with meet(quick_heads, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ben.expect("GROUP_EVENT")
        await ben.me.put("/conversation/update", conversation_id=f"sg_{group}", recv_msg_opt=1)
        ack = await ann.say(group, "unseen")
        await recall(ann, ack["serverMsgId"])
        await ben.expect("MESSAGE_REVOKED")
        await ann.me.put("/group/update", group_id=group, name="renamed")
        await ben.expect("GROUP_EVENT", msgType=107)
        await ben.expect("HEADS")
        await ben.expect_nothing("GROUP_CHAT")


async def test_who_wants_no_frames_is_still_told_when_mentioned(quick_heads: ServerProcess) -> None:
    async with meet(quick_heads, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ben.expect("GROUP_EVENT")
        await ben.me.put("/conversation/update", conversation_id=f"sg_{group}", recv_msg_opt=1)
        await ann.say(group, "ben?", mentions=[ben.user_id])
        told = await ben.expect("GROUP_NOTIFY")
        assert (told["headSeq"], told["important"]) == (2, True)


async def test_a_mention_in_a_single_chat_without_frames_is_no_group_notice(quick_heads: ServerProcess) -> None:
    async with meet(quick_heads, "ann", "ben") as (ann, ben):
        name = (await ann.say(ben, "first"))["conversationId"]
        await ben.me.put("/conversation/update", conversation_id=name, recv_msg_opt=1)
        await ann.say(ben, "ben?", mentions=[ben.user_id])
        assert (await ben.expect("HEADS"))["conversations"] == [{"conversationId": name, "headSeq": 2}]
        assert ben.seen("GROUP_NOTIFY") == []


async def test_masked_words_are_returned_to_the_sender(quick_heads: ServerProcess) -> None:
    async with meet(quick_heads, "ann", "ben") as (ann, ben):
        frame = ann.message(ben, "Some Rhubarb?")
        ack = await ann.ask(frame, "ACK")
        assert ack["body"] == "Some ***?"
        assert (await ben.expect("SINGLE_CHAT"))["body"] == "Some ***?"
        assert await ann.ask(frame, "ACK") == ack
        assert "body" not in await ann.say(ben, "Some tea?")
        over_http = await ann.me.send(ben, "rhubarb", client_msg_id=fresh_id())
        assert over_http["content"] == "***"


async def test_hidden_conversations_come_back_with_the_next_message(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        name = (await ann.say(ben, "first"))["conversationId"]
        await ben.me.put("/conversation/update", conversation_id=name, hidden=True)
        assert (await ben.me.get("/conversation/list"))["conversations"] == []
        await ann.say(ben, "second")
        assert len((await ben.me.get("/conversation/list"))["conversations"]) == 1
