"""Catching up: SYNC, resend with and without baselines, paging, and that nothing falls between."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Self

import pytest

from harness.chat import Client, Person, fetch_messages, fresh_id, meet, world
from harness.replica import Frame
from harness.server_process import ServerProcess


def resent(client: Client) -> list[Frame]:
    return [frame for frame in client.frames if frame.get("resend")]


async def send_many(person: Person, to: Person | str, count: int) -> None:
    for _ in range(count):
        await person.send(to, "x")


async def test_what_was_not_delivered_is_resent_ascending_per_conversation(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        group = await ben.found_group(ann, cid)
        for i in range(5):
            await ben.send(ann, f"b{i}")
            await cid.send(ann, f"c{i}")
            await cid.send(group, f"g{i}")
        client = await ann.connect()
        by_conversation: dict[str, list[int]] = {}
        for frame in resent(client):
            by_conversation.setdefault(frame["conversationId"], []).append(frame["msgSeq"])
        assert sorted(by_conversation.values()) == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]]
        assert client.seen("RESEND_DONE") == [{"type": "RESEND_DONE", "hasMore": False}]


async def test_what_was_delivered_is_not_resent_and_resending_moves_no_cursor(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        sent = [await ben.send(ann, f"{i}") for i in range(3)]
        first = await ann.connect()
        assert [frame["body"] for frame in resent(first)] == ["0", "1", "2"]
        await first.close()
        second = await ann.connect()
        assert [frame["body"] for frame in resent(second)] == ["0", "1", "2"]
        watcher = await ben.connect()
        await second.send({"type": "ACK", "ackType": "delivered", "serverMsgId": sent[1]["server_msg_id"]})
        await watcher.expect("ACK", ackType="delivered")
        third = await ann.connect()
        assert [frame["body"] for frame in resent(third)] == ["2"]


async def test_one_round_gives_two_hundred_from_single_chats_and_two_hundred_from_groups(
    server: ServerProcess,
) -> None:
    async with world(server) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        group = await ben.found_group(ann, cid)
        await asyncio.gather(send_many(ben, ann, 230), send_many(cid, group, 230), send_many(cid, ann, 3))
        client = await ann.connect()
        kinds = Counter(frame["type"] for frame in resent(client))
        assert (kinds["SINGLE_CHAT"], kinds["GROUP_CHAT"] + kinds["GROUP_EVENT"]) == (200, 200)
        # a busy chat does not starve a quiet one
        assert sum(1 for frame in resent(client) if frame["from"] == cid.user_id and "to" in frame) == 3
        assert client.seen("RESEND_DONE") == [{"type": "RESEND_DONE", "hasMore": True}]
        # the client says what it has, and gets the rest
        baselines: dict[str, int] = {}
        for frame in resent(client):
            baselines[frame["conversationId"]] = frame["msgSeq"]
        await client.send({"type": "RESEND", "baselines": baselines})
        assert await client.expect("RESEND_DONE") == {"type": "RESEND_DONE", "hasMore": False}
        places = [(frame["conversationId"], frame["msgSeq"]) for frame in resent(client)]
        assert len(places) == len(set(places)) == 230 + 231 + 3


async def test_baselines_replace_the_delivered_cursor_for_this_device(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        sent = [await ben.send(ann, f"{i}") for i in range(5)]
        name = sent[0]["conversation_id"]
        phone = await ann.connect()
        watcher = await ben.connect()
        await phone.send({"type": "ACK", "ackType": "delivered", "conversationId": name, "msgSeq": 4})
        await watcher.expect("ACK", ackType="delivered")
        behind = await ann.connect(baselines={name: 1})  # another device delivered what this one lacks
        assert [frame["msgSeq"] for frame in resent(behind)] == [2, 3, 4, 5]
        ahead = await ann.connect(baselines={name: "5", "si_not:mine": 7, "nonsense": 1})
        assert resent(ahead) == []
        everything = await ann.connect(baselines={name: 0})
        assert [frame["msgSeq"] for frame in resent(everything)] == [1, 2, 3, 4, 5]


async def test_resend_can_be_switched_off() -> None:
    with ServerProcess(resend__after_auth="false") as server:
        async with world(server) as here:
            ann, ben = await here.people("ann", "ben")
            await ben.send(ann, "hello")
            client = await ann.open()
            await client.send({"type": "AUTH", "token": ann.tokens.access})
            await client.expect("SYNC")
            await client.settle()
            assert (resent(client), client.seen("RESEND_DONE")) == ([], [])
            await client.send({"type": "RESEND"})
            await client.expect("RESEND_DONE")
            assert len(resent(client)) == 1


async def test_sync_is_paged_newest_activity_first(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        others = await here.people(*(f"other{i}" for i in range(7)))
        for other in others:
            await other.send(ann, "hello")
        client = await ann.connect()
        pages: list[Frame] = [await client.ask({"type": "SYNC", "limit": 3}, "SYNC")]
        while pages[-1]["hasMore"]:
            pages.append(await client.ask({"type": "SYNC", "limit": 3, "cursor": pages[-1]["cursor"]}, "SYNC"))
        assert [len(page["conversations"]) for page in pages] == [3, 3, 1]
        assert "cursor" not in pages[-1]
        names = [entry["conversationId"] for page in pages for entry in page["conversations"]]
        expected = [f"si_{min(o.user_id, ann.user_id)}:{max(o.user_id, ann.user_id)}" for o in reversed(others)]
        assert names == expected


async def test_the_first_sync_has_two_hundred_conversations_and_says_that_there_are_more(
    server: ServerProcess,
) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        others = await here.strangers(*(f"other{i}" for i in range(205)))
        for start in range(0, len(others), 20):
            await asyncio.gather(*(ann.send(other, "hello") for other in others[start : start + 20]))
        client = await ann.connect()
        first, second = client.seen("SYNC")
        assert (len(first["conversations"]), first["hasMore"]) == (200, True)
        assert (len(second["conversations"]), second["hasMore"]) == (5, False)


async def test_sync_counts_what_is_unread(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        for _ in range(4):
            await ben.send(ann, "x")
        name = (await ann.send(ben, "own messages do not count"))["conversation_id"]
        await ann.post("/conversation/read", conversation_id=name, seq=2)
        client = await ann.connect()
        (entry,) = client.seen("SYNC")[0]["conversations"]
        assert entry == {
            "conversationId": name,
            "headSeq": 5,
            "minSeq": 1,
            "readSeq": 2,
            "deliveredSeq": 2,
            "unread": 2,
            "deletedRev": 0,
        }


async def test_a_reply_to_pull_is_cut_at_its_size_and_can_be_gone_on_with(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for i in range(40):
            await ann.say(ben, {"i": i, "fill": "x" * 15_000}, msgType=6)
        name = ann.frames[-1]["conversationId"]
        page = await ben.pull(name)
        assert page["hasMore"] is True
        assert 2 <= len(page["messages"]) < 40
        assert page["nextSeq"] == page["messages"][-1]["msgSeq"] + 1
        assert [message["body"]["i"] for message in await ben.pull_all(name)] == list(range(40))


async def test_pulls_over_both_ways_agree(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        first = await ann.say(group, "one", mentions=[ben.user_id])
        await ben.say(group, "two", replyToServerMsgId=first["serverMsgId"])
        over_http = await fetch_messages(ben.me, f"sg_{group}")
        over_socket = await ben.pull_all(f"sg_{group}")
        assert [m["server_msg_id"] for m in over_http] == [m["serverMsgId"] for m in over_socket]
        history = await ben.me.get("/msg/history", conversation_id=f"sg_{group}", limit=2)
        assert [m["seq"] for m in history["messages"]] == [3, 2]
        offline = await cid.me.get("/msg/offline")
        assert [m["seq"] for m in offline["messages"]] == [1, 2, 3]


class Flood:
    """A sender who never stops; every committed message is noted once it is acknowledged."""

    def __init__(self, sender: Client, to: Person | str) -> None:
        self._sender = sender
        self._to = to
        self.saved: list[int] = []
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            ack = await self._sender.say(self._to, "tick")
            self.saved.append(ack["msgSeq"])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.mark.parametrize("where", ["single", "group"])
async def test_no_message_falls_between_connecting_and_syncing(server: ServerProcess, where: str) -> None:
    """Whatever is committed while a client connects is in its SYNC or is pushed after it; and in order."""
    async with world(server) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        sender = await ben.connect()
        target = ann if where == "single" else await ben.found_group(ann, cid)
        name = (await sender.say(target, "first"))["conversationId"]
        async with Flood(sender, target) as flood:
            for _ in range(25):
                client = await ann.open()
                await client.send({"type": "AUTH", "token": ann.tokens.access, "baselines": {name: 1 << 40}})
                await client.signed_in()
                (entry,) = [e for e in client.seen("SYNC")[0]["conversations"] if e["conversationId"] == name]
                enough = max([entry["headSeq"], *flood.saved]) + 3  # surely not committed when SYNC was made
                await client.expect(where=lambda frame, seq=enough: frame.get("msgSeq") == seq and "body" in frame)
                pushed = [frame["msgSeq"] for frame in client.frames if frame["type"] in ("SINGLE_CHAT", "GROUP_CHAT")]
                after = [seq for seq in pushed if seq > entry["headSeq"]]
                assert after == list(range(entry["headSeq"] + 1, after[-1] + 1)), (entry, pushed)
                await client.close()
        stored = [message["seq"] for message in await fetch_messages(ann, name)]
        assert stored == list(range(1, stored[-1] + 1))
        assert set(flood.saved) <= set(stored)


async def test_what_is_pushed_while_signing_in_comes_after_sync(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        sender = await ben.connect()
        await sender.say(ann, "first")
        async with Flood(sender, ann):
            for _ in range(25):
                client = await ann.connect()
                kinds = [frame["type"] for frame in client.frames]
                assert kinds[:2] == ["AUTH_OK", "SYNC"], kinds
                await client.close()


async def test_a_storm_of_reconnects_of_one_device_gets_sync_each_time(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        await send_many(ben, ann, 150)
        clients = await asyncio.gather(*(ann.connect(device_id="phone") for _ in range(10)))
        for client in clients:
            assert len(client.seen("SYNC")) == 1
            assert len(client.seen("RESEND_DONE")) == 1
            # either all of it, or the word that there is more
            assert len(resent(client)) == 150 or client.seen("RESEND_DONE")[0]["hasMore"] is True


async def test_a_retry_is_not_a_second_message_wherever_it_comes_from(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        frame = ann.message(ben, "once")
        first = await ann.ask(frame, "ACK")
        other = await ann.me.connect()
        await other.send(frame)
        assert await other.expect("ACK", ackType="saved") == first
        over_http = await ann.me.send(ben, "once", client_msg_id=frame["clientMsgId"])
        assert (over_http["server_msg_id"], over_http["seq"]) == (first["serverMsgId"], 1)
        at_once = ann.message(ben, "twice at once", clientMsgId=fresh_id())
        await asyncio.gather(ann.send(at_once), other.send(at_once))
        acks = [await client.expect("ACK", clientMsgId=at_once["clientMsgId"]) for client in (ann, other)]
        assert acks[0] == acks[1]
        assert [m["seq"] for m in await fetch_messages(ben.me, first["conversationId"])] == [1, 2]
