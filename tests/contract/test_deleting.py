"""Deleting for oneself: single messages and whole conversations, hidden from one member in every read path."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from harness.api import Api, make_group, open_api, send
from harness.core import expire_now, found_group, look, open_test_core, refused, run, say
from nexo.config import parse_store_url
from nexo.core.model import Message
from nexo.store import deletions
from nexo.store.check import check

CHAT = "si_ann:bob"


def seqs(messages: list[Message]) -> list[int]:
    return [message.seq for message in messages]


def shown(answer: Any) -> list[str]:
    return [message["content"] for message in answer.data["messages"]]


async def delete(api: Api, user: str, *messages: Any) -> None:
    ids = [message["server_msg_id"] for message in messages]
    assert (await api.post(user, "/msg/delete", server_msg_ids=ids)).data == {}


async def test_a_deleted_message_is_in_no_answer_to_its_member_and_in_all_to_the_others(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        one, two, three = [await send(api, "ann", "bob", text) for text in ("one", "two", "three")]
        reply = await send(api, "ann", "bob", "re two", reply_to=two["server_msg_id"])
        await delete(api, "bob", two)
        pulled = await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=1)
        assert shown(pulled) == ["one", "three", "re two"]
        assert (pulled.data["head_seq"], pulled.data["next_seq"], pulled.data["has_more"]) == (4, 5, False)
        assert "quote" not in pulled.data["messages"][-1]
        part = (await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=1, end_seq=2)).data
        assert ([m["seq"] for m in part["messages"]], part["next_seq"], part["has_more"]) == ([1], 3, False)
        first = (await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=1, limit=1)).data
        assert (first["next_seq"], first["has_more"]) == (2, True)
        assert shown(await api.get("bob", "/msg/pull", conversation_id=CHAT, seqs="1,2")) == ["one"]
        assert shown(await api.get("bob", "/msg/history", conversation_id=CHAT)) == ["re two", "three", "one"]
        assert shown(await api.get("bob", "/msg/offline")) == ["one", "three", "re two"]
        assert (await api.get("bob", "/msg/receipts", server_msg_id=two["server_msg_id"])).error == "message_not_found"
        assert (await api.get("bob", "/msg/receipts", server_msg_id=one["server_msg_id"])).status == 200
        older = (await api.get("bob", "/single-chat/message/cursor", peerUserId="ann")).data
        assert [m["body"] for m in older["messages"]] == ["re two", "three", "one"]
        theirs = await api.get("ann", "/msg/pull", conversation_id=CHAT, begin_seq=1)
        assert shown(theirs) == ["one", "two", "three", "re two"]
        assert theirs.data["messages"][-1]["quote"]["text"] == "two"
        await delete(api, "bob", reply, three)
        (entry,) = (await api.get("bob", "/conversation/list")).data["conversations"]
        assert entry["last_message"]["content"] == "one"
        assert (entry["head_seq"], entry["unread"], entry["deleted_rev"]) == (4, 1, 3)
        (last,), _ = await api.core.conversations.last_messages("bob", [CHAT])
        assert last.seq == 1
        await delete(api, "bob", one)
        (entry,) = (await api.get("bob", "/conversation/list")).data["conversations"]
        assert (entry["last_message"], entry["unread"], entry["read_seq"]) == (None, 0, 0)
        assert await api.core.conversations.last_messages("bob", [CHAT]) == ([], False)
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_heads_cursors_and_acknowledgements_pass_over_what_is_deleted(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob"]) as core:
        sent = [await say(core, "ann", "bob", f"{n}") for n in range(1, 7)]
        await core.conversations.delete_messages("bob", [sent[n].server_msg_id for n in (1, 2, 5)])
        again, has_more = await core.conversations.resend("bob", 2)
        assert (seqs(again), has_more) == ([1, 4], True)
        again, has_more = await core.conversations.resend("bob", 2, {CHAT: 1})
        assert (seqs(again), has_more) == ([4, 5], False)
        page = await core.conversations.offline("bob", None, 1)
        found, cursors = seqs(page.messages), 1
        while page.has_more:
            page = await core.conversations.offline("bob", page.next_cursor, 1)
            found += seqs(page.messages)
            cursors += 1
        assert (found, cursors) == ([1, 4, 5], 3)
        # a deleted message can be acknowledged, and a history can begin at it
        await core.acknowledging.ack_message("bob", "delivered", sent[5].server_msg_id)
        assert await core.acknowledging.mark_read("bob", CHAT, last_msg_id=sent[2].server_msg_id) == (3, 2)
        below = await core.conversations.history_before("bob", CHAT, sent[2].server_msg_id)
        assert seqs(below.messages) == [1]
        await core.store.cursors.flush()
        (head,) = await core.conversations.heads("bob", [CHAT])
        assert (head.head_seq, head.read_seq, head.delivered_seq, head.unread) == (6, 3, 6, 2)
        assert await core.acknowledging.mark_read("bob", CHAT, seq=6) == (6, 0)
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_unread_and_mentions_are_without_what_is_deleted_and_reading_counts_none_twice(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob", "cy"]) as core:
        group_id, name = await found_group(core, "ann", "bob", "cy")
        named = await say(core, "ann", group_id, "hey", mentions=["bob"])
        to_all = await say(core, "ann", group_id, "all", mentions=["@all"])
        other = await say(core, "cy", group_id, "plain")
        again = await say(core, "cy", group_id, "hey", mentions=["bob"])

        async def counts() -> tuple[int, int]:
            entries, _, _ = await core.conversations.entries("bob")
            return entries[0].unread, entries[0].unread_mentions

        assert await counts() == (4, 3)
        (deletion,) = await core.conversations.delete_messages("bob", [named.server_msg_id, to_all.server_msg_id])
        assert (deletion.unread, await counts()) == (2, (2, 1))
        assert await core.conversations.delete_messages("bob", [named.server_msg_id]) == []
        assert await counts() == (2, 1)
        assert await core.acknowledging.mark_read("bob", name, seq=other.seq) == (other.seq, 1)
        assert await counts() == (1, 1)
        await core.conversations.delete_messages("bob", [other.server_msg_id, again.server_msg_id])
        assert await counts() == (0, 0)
        await core.acknowledging.mark_read("bob", name, seq=again.seq)
        assert await counts() == (0, 0)
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_clearing_hides_everything_and_moves_no_cursor(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        for n in range(4):
            await send(api, "ann", "bob", f"old {n}")
        await api.post("bob", "/conversation/read", conversation_id=CHAT, seq=1)
        kept = await send(api, "ann", "bob", "the last")
        cleared = (await api.post("bob", "/conversation/clear", conversation_id=CHAT)).data
        assert cleared == {"conversation_id": CHAT, "up_to_seq": 5, "deleted_rev": 1, "unread": 0}
        again = (await api.post("bob", "/conversation/clear", conversation_id=CHAT)).data
        assert (again["deleted_rev"], again["unread"]) == (1, 0)
        assert shown(await api.get("bob", "/msg/history", conversation_id=CHAT)) == []
        pulled = (await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=1)).data
        assert (pulled["messages"], pulled["head_seq"], pulled["next_seq"], pulled["has_more"]) == ([], 5, 6, False)
        assert (await api.get("bob", "/msg/offline")).data["messages"] == []
        (entry,) = (await api.get("bob", "/conversation/list")).data["conversations"]
        assert (entry["last_message"], entry["unread"], entry["read_seq"], entry["head_seq"]) == (None, 0, 1, 5)
        reply = await send(api, "ann", "bob", "new", reply_to=kept["server_msg_id"])
        pulled = (await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=1)).data
        assert ["quote" in message for message in pulled["messages"]] == [False]
        (entry,) = (await api.get("bob", "/conversation/list")).data["conversations"]
        assert (entry["unread"], entry["last_message"]["content"]) == (1, "new")
        # reading in the middle of what is cleared, and behind it
        for seq, unread in ((3, 1), (5, 1), (reply["seq"], 0)):
            read = (await api.post("bob", "/conversation/read", conversation_id=CHAT, seq=seq)).data
            assert (read["read_seq"], read["unread"]) == (seq, unread)
        assert len(shown(await api.get("ann", "/msg/history", conversation_id=CHAT))) == 6
        assert (
            await api.post("bob", "/conversation/clear", conversation_id="si_bob:cy")
        ).error == "conversation_not_found"
        assert (
            await api.post("bob", "/conversation/clear", conversation_id="si_ann:cy")
        ).error == "conversation_not_found"
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_a_device_that_was_away_gets_the_changes_since_its_revision(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = [await send(api, "ann", "bob", f"{n}") for n in range(5)]
        ids = [message["server_msg_id"] for message in sent]

        async def since(after: int, **more: Any) -> Any:
            return (await api.get("bob", "/msg/deleted", conversation_id=CHAT, after=after, **more)).data

        nothing = {
            "conversation_id": CHAT,
            "server_msg_ids": [],
            "up_to_seq": None,
            "deleted_rev": 0,
            "has_more": False,
        }
        assert await since(0) == nothing
        await delete(api, "bob", sent[3])
        await delete(api, "bob", sent[0], sent[1])
        (head,) = (await api.get("bob", "/conversation/sync")).data["conversations"]
        assert head["deleted_rev"] == 3
        assert (await since(0))["server_msg_ids"] == [ids[3], ids[0], ids[1]]
        assert (await since(1))["server_msg_ids"] == [ids[0], ids[1]]
        page = await since(0, limit=2)
        assert (page["deleted_rev"], page["has_more"]) == (2, True)
        assert (await since(2))["server_msg_ids"] == [ids[1]]
        assert (await since(3))["server_msg_ids"] == []
        await api.post("bob", "/conversation/clear", conversation_id=CHAT)
        assert await since(3) == {**nothing, "up_to_seq": 5, "deleted_rev": 4}
        later = await send(api, "ann", "bob", "later")
        await delete(api, "bob", later)
        assert (await since(0))["server_msg_ids"] == [later["server_msg_id"]]
        assert await since(4) == {**nothing, "server_msg_ids": [later["server_msg_id"]], "deleted_rev": 5}
        assert (await api.get("ann", "/msg/deleted", conversation_id=CHAT)).data == nothing


async def test_only_messages_that_one_may_see_can_be_deleted_and_all_of_a_list_or_none(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        mine = await send(api, "ann", "bob", "ours")
        group = await make_group(api, "ann", "bob", "cy")
        early = await send(api, "ann", group["group_id"], "early")
        event, *_ = (await api.get("ann", "/msg/pull", conversation_id=group["conversation_id"], begin_seq=1)).data[
            "messages"
        ]

        async def attempt(user: str, *ids: Any) -> str:
            return (await api.post(user, "/msg/delete", server_msg_ids=list(ids))).error

        assert await attempt("cy", mine["server_msg_id"]) == "message_not_found"
        assert await attempt("bob", mine["server_msg_id"], "12345") == "message_not_found"
        assert await attempt("bob", mine["server_msg_id"], event["server_msg_id"]) == "message_not_found"
        assert await attempt("bob") == "missing_server_msg_ids"
        assert await attempt("bob", "x") == "bad_server_msg_ids"
        assert await attempt("bob", *["1"] * 1001) == "bad_server_msg_ids"
        assert (await api.post("bob", "/msg/delete", server_msg_ids="1")).error == "bad_server_msg_ids"
        assert (await api.post("bob", "/msg/delete")).error == "missing_server_msg_ids"
        (entry, *_) = (await api.get("bob", "/conversation/sync")).data["conversations"]
        assert entry["deleted_rev"] == 0
        # who has left may still tidy up what they see, in several conversations at once
        await api.post("bob", "/group/quit", group_id=group["group_id"])
        late = await send(api, "ann", group["group_id"], "late")
        assert await attempt("bob", late["server_msg_id"]) == "message_not_found"
        await delete(api, "bob", mine, early)
        assert [one.conversation_id for one in (await told(api))] == [CHAT, group["conversation_id"]]
        assert "early" not in shown(await api.get("bob", "/msg/history", conversation_id=group["conversation_id"]))
        assert (await check(parse_store_url(core_url))).counts == {}


async def told(api: Api) -> list[Any]:
    return [what for kind, what in api.publisher.take() if kind == "deleted"]


async def test_deletions_are_bounded_and_clearing_makes_room(core_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletions, "MAX_DELETED", 3)
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = [await send(api, "ann", "bob", f"{n}") for n in range(5)]
        await delete(api, "bob", *sent[:2])
        ids = [message["server_msg_id"] for message in sent]
        assert (await api.post("bob", "/msg/delete", server_msg_ids=ids)).error == "too_many_deleted"
        await delete(api, "bob", *sent[:3])  # two of them were deleted before
        assert (await api.post("bob", "/msg/delete", server_msg_ids=ids[3:])).error == "too_many_deleted"
        assert (await api.post("ann", "/msg/delete", server_msg_ids=ids[3:])).status == 200
        await api.post("bob", "/conversation/clear", conversation_id=CHAT)
        await delete(api, "bob", await send(api, "ann", "bob", "more"))
        assert await look(
            api.core, "SELECT user_id,COUNT(*) FROM message_deletions GROUP BY user_id ORDER BY user_id"
        ) == [
            ("ann", 2),
            ("bob", 1),
        ]


async def test_joining_again_keeps_what_was_deleted_and_counts_from_the_new_span(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob", "cy"]) as core:
        group_id, name = await found_group(core, "ann", "bob", "cy")
        old = await say(core, "ann", group_id, "old")
        seen = await say(core, "ann", group_id, "seen")
        await core.conversations.delete_messages("bob", [old.server_msg_id])
        await core.groups.leave("bob", group_id)
        await core.groups.join("bob", group_id)
        new = await say(core, "ann", group_id, "new")
        await say(core, "ann", group_id, "newer")
        await core.conversations.delete_messages("bob", [new.server_msg_id])
        (head,) = await core.conversations.heads("bob", [name])
        assert head.unread == 1
        pulled = seqs((await core.conversations.pull("bob", name)).messages)
        assert old.seq not in pulled
        assert new.seq not in pulled
        assert seen.seq in pulled
        assert (await check(parse_store_url(core_url))).counts == {}


async def test_deleting_against_reading_sending_and_deleting_again_leaves_exact_counts(core_url: str) -> None:
    # a busy machine is no refusal
    async with open_test_core(core_url, ["ann", "bob", "cy"], send__deadline_ms=60_000) as core:
        group_id, name = await found_group(core, "ann", "bob", "cy")
        sent = [await say(core, "ann", group_id, f"{n}", mentions=["bob"] if n % 3 else ["@all"]) for n in range(24)]
        numbers = itertools.count()

        async def remove(part: slice) -> None:
            for message in sent[part]:
                await core.conversations.delete_messages("bob", [message.server_msg_id])

        async def read() -> None:
            for message in sent[::4]:
                await core.acknowledging.mark_read("bob", name, seq=message.seq)

        async def speak(user: str) -> None:
            for _ in range(8):
                await say(core, user, group_id, f"more {next(numbers)}", mentions=["bob"] if user == "cy" else [])

        async def wipe() -> None:
            await core.conversations.delete_messages("bob", [sent[0].server_msg_id])
            await core.conversations.clear("bob", name)

        await asyncio.gather(
            remove(slice(0, 24, 2)),
            remove(slice(0, 12)),
            read(),
            speak("cy"),
            speak("bob"),
            wipe(),
            remove(slice(12, 24)),
        )
        assert (await check(parse_store_url(core_url))).counts == {}
        entries, _, _ = await core.conversations.entries("bob")
        pulled = (await core.conversations.pull("bob", name)).messages
        unread = [m for m in pulled if m.seq > entries[0].read_seq and m.sender_id != "bob" and not m.is_event]
        assert entries[0].unread == len(unread)
        assert entries[0].unread_mentions == sum("bob" in m.mentions or "@all" in m.mentions for m in unread)


async def test_expired_and_recalled_messages_can_be_deleted_too(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob"]) as core:
        gone, taken_back = await say(core, "ann", "bob", "gone"), await say(core, "ann", "bob", "taken back")
        await expire_now(core, gone.server_msg_id)
        await core.conversations.recall("ann", taken_back.server_msg_id)
        (deletion,) = await core.conversations.delete_messages("bob", [gone.server_msg_id, taken_back.server_msg_id])
        assert deletion.unread == 0
        assert seqs((await core.conversations.pull("bob", CHAT)).messages) == [3]
        with refused("message_not_found"):
            await core.conversations.delete_messages("cy", [gone.server_msg_id])


async def test_wrong_counts_of_deleted_messages_are_found(core_url: str) -> None:
    async with open_test_core(core_url, ["ann", "bob"]) as core:
        sent = [await say(core, "ann", "bob", f"{n}") for n in range(3)]
        await core.conversations.delete_messages("bob", [sent[0].server_msg_id])
        await run(core, "UPDATE members SET deleted_above=7,deleted_count=3 WHERE user_id='bob'")
        await run(core, "UPDATE message_deletions SET counts=0,rev=9")
        await run(core, "UPDATE messages SET expires_at=5 WHERE seq=2")
        await run(core, "UPDATE members SET cleared_seq=9 WHERE user_id='ann'")
    url = parse_store_url(core_url)
    wrong = {"deleted_above", "deleted_count", "deletion_counts", "deletion_rev"}
    assert set((await check(url)).counts) == {*wrong, "expiry_unscheduled", "cleared_beyond_head"}
    repaired = await check(url, repair=True)
    assert {"deleted_above", "deleted_count"} <= set(repaired.repaired)
