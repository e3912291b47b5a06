"""Reading: pull, history, offline, resend, lists and receipts (SPEC §5, §6, §9, §10), all behind one gate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from harness.core import found_group, open_test_core, refused, run, say
from nexo.assembly.core import Core
from nexo.core.model import ConversationEntry, Head, Message, Page
from nexo.store.paging import encode_cursor

PEOPLE = ("alice", "bob", "carol", "dave")
CHAT = "si_alice:bob"


def seqs(page: Page) -> list[int]:
    return [message.seq for message in page.messages]


def places(messages: list[Message]) -> list[tuple[str, int]]:
    return [(message.conversation_id, message.seq) for message in messages]


async def fill(core: Core, sender: str, target: str, count: int, content: Any = "hello", **fields: Any) -> None:
    """Send many at once; they are stored in the order given."""
    await asyncio.gather(*(say(core, sender, target, content, **fields) for _ in range(count)))


async def all_offline(core: Core, user: str, limit: int, **fields: Any) -> list[Message]:
    found: list[Message] = []
    page = await core.conversations.offline(user, limit=limit, **fields)
    found += page.messages
    while page.has_more:
        page = await core.conversations.offline(user, page.next_cursor, limit, **fields)
        assert len(page.messages) <= limit
        found += page.messages
    return found


async def group_with_two_spans(core: Core) -> tuple[str, str]:
    """bob sees 1-3 and 6-8 of a group whose head is 8."""
    group_id, name = await found_group(core, "alice", "bob", "carol")  # 1
    await say(core, "alice", group_id)  # 2
    await core.groups.leave("bob", group_id)  # 3
    await fill(core, "alice", group_id, 2)  # 4, 5
    await core.groups.join("bob", group_id)  # 6
    await fill(core, "alice", group_id, 2)  # 7, 8
    return group_id, name


# -- the gate ------------------------------------------------------------------------------------------


async def test_every_way_of_reading_asks_the_same_gate(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        _, name = await found_group(core, "alice", "bob", "carol")
        message = await say(core, "alice", "bob")
        conversations = core.conversations
        ways: list[Callable[[str, str], Awaitable[Any]]] = [
            conversations.pull,
            conversations.history,
            lambda user, where: conversations.pull_since(user, where, 0),
            lambda user, where: conversations.pull_seqs(user, where, [1]),
            lambda user, where: conversations.change_settings(user, where, pinned=True),
            core.store.conversations.visible_ranges,
        ]
        for read in ways:
            for user, where, error in (
                ("dave", name, "not_group_member"),
                ("alice", "sg_g_000000000000", "group_not_found"),
                ("carol", CHAT, "conversation_not_found"),
                ("alice", "si_bob:carol", "conversation_not_found"),
                ("alice", "si_bob:alice", "bad_conversation_id"),
                ("alice", "si_alice:alice", "bad_conversation_id"),
                ("alice", "si_alice", "bad_conversation_id"),
                ("alice", "sg_nonsense", "bad_conversation_id"),
                ("alice", "", "bad_conversation_id"),
                ("alice", "si_alice:b\x00b", "bad_conversation_id"),
            ):
                with refused(error):
                    await read(user, where)
        for user in ("carol", "nobody"):
            with refused("message_not_found"):
                await core.store.messages.find(user, message.server_msg_id)
            with refused("message_not_found"):
                await core.acknowledging.receipts(user, message.server_msg_id)


async def test_an_own_single_chat_without_messages_is_empty(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        assert await core.conversations.pull("alice", CHAT) == Page([], 0, 1, False)
        assert await core.conversations.history("alice", CHAT) == Page([], 0, 1, False)
        assert await core.conversations.pull_seqs("alice", CHAT, [1]) == Page([], 0, None, False)
        assert await core.conversations.heads("alice") == []
        with refused("conversation_not_found"):
            await core.conversations.change_settings("alice", CHAT, pinned=True)


# -- pull ----------------------------------------------------------------------------------------------


async def test_pull_gives_a_range_in_ascending_order(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await fill(core, "alice", "bob", 10)
        pull = core.conversations.pull
        for arguments, given, next_seq, has_more in (
            ((), range(1, 11), 11, False),
            ((1, None, 10), range(1, 11), 11, False),
            ((1, None, 9), range(1, 10), 10, True),
            ((4, 6), range(4, 7), 7, False),
            ((4, 6, 2), range(4, 6), 6, True),
            ((-5, 3), range(1, 4), 4, False),
            ((9, 99), range(9, 11), 11, False),
            ((11,), (), 11, False),
            ((6, 5), (), 6, False),
            ((1, 0), (), 1, False),
        ):
            page = await pull("bob", CHAT, *arguments)
            assert (seqs(page), page.next_seq, page.has_more, page.head_seq) == (list(given), next_seq, has_more, 10)
        assert seqs(await core.conversations.pull_since("bob", CHAT, 8)) == [9, 10]
        assert seqs(await core.conversations.pull_since("bob", CHAT, -3, 2)) == [1, 2]


async def test_a_limit_is_at_most_200_whatever_is_asked_for(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await fill(core, "alice", "bob", 203)
        for limit in (None, 0, -1, 200, 201, 10**6):
            page = await core.conversations.pull("bob", CHAT, limit=limit)
            assert (seqs(page), page.has_more, page.next_seq) == (list(range(1, 201)), True, 201)
            page = await core.conversations.history("bob", CHAT, limit=limit)
            assert (seqs(page), page.has_more, page.next_seq) == (list(range(203, 3, -1)), True, 4)
            assert len((await core.conversations.offline("bob", limit=limit)).messages) == 200
        messages, has_more = await core.conversations.resend("bob")
        assert (len(messages), has_more) == (200, True)


async def test_pull_steps_over_what_lies_between_spans(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        _, name = await group_with_two_spans(core)
        assert seqs(await core.conversations.pull("bob", name)) == [1, 2, 3, 6, 7, 8]
        page = await core.conversations.pull("bob", name, 4, 5)
        assert (seqs(page), page.next_seq, page.has_more) == ([], 6, False)
        for limit in range(1, 8):
            found: list[int] = []
            begin, has_more = 1, True
            while has_more:
                page = await core.conversations.pull("bob", name, begin, limit=limit)
                assert page.next_seq is not None
                assert all(begin <= seq < page.next_seq for seq in seqs(page))
                found += seqs(page)
                begin, has_more = page.next_seq, page.has_more
            assert (found, begin) == ([1, 2, 3, 6, 7, 8], 9)


async def test_history_goes_back_from_the_newest(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        _, name = await group_with_two_spans(core)
        page = await core.conversations.history("bob", name)
        assert (seqs(page), page.next_seq, page.has_more, page.head_seq) == ([8, 7, 6, 3, 2, 1], 1, False, 8)
        for before, given in ((99, [8, 7, 6, 3, 2, 1]), (7, [6, 3, 2, 1]), (5, [3, 2, 1]), (1, []), (0, []), (-4, [])):
            assert seqs(await core.conversations.history("bob", name, before)) == given
        for limit in range(1, 8):
            found: list[int] = []
            before_seq: int | None = None
            has_more = True
            while has_more:
                page = await core.conversations.history("bob", name, before_seq, limit)
                found += seqs(page)
                before_seq, has_more = page.next_seq, page.has_more
            assert found == [8, 7, 6, 3, 2, 1]


async def test_pulling_by_a_list_of_seqs_gives_those_that_are_visible(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        _, name = await group_with_two_spans(core)
        wanted = [8, 4, 2, 2, 7, 99, 0, -1, 1 << 70, 5]
        page = await core.conversations.pull_seqs("bob", name, wanted)
        assert (seqs(page), page.next_seq, page.has_more, page.head_seq) == ([2, 7, 8], None, False, 8)
        assert seqs(await core.conversations.pull_seqs("bob", name, [])) == []
        with refused("bad_seq"):
            await core.conversations.pull_seqs("bob", name, range(1, 202))


async def test_who_left_reads_up_to_the_event_that_says_so(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await core.groups.remove("alice", group_id, "bob")
        await fill(core, "alice", group_id, 3)
        for page in (
            await core.conversations.pull("bob", name),
            await core.conversations.pull_seqs("bob", name, [1, 2, 3, 4]),
        ):
            assert (seqs(page), page.head_seq) == ([1, 2], 2)
        assert seqs(await core.conversations.history("bob", name, 5)) == [2, 1]


@pytest.mark.parametrize("content", ["x" * 4096, "漢" * 4096, "😀" * 4096])
async def test_a_reply_is_cut_at_its_size_in_bytes(core_url: str, content: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await fill(core, "alice", "bob", 80, content)
        limit = 256 * 1024

        def check(messages: list[Message], has_more: bool) -> None:
            size = sum(len(msgspec.json.encode(message)) for message in messages)
            assert limit / 2 < size <= limit
            assert has_more

        page = await core.conversations.pull("bob", CHAT)
        check(page.messages, page.has_more)
        assert page.next_seq == len(page.messages) + 1
        page = await core.conversations.history("bob", CHAT)
        check(page.messages, page.has_more)
        page = await core.conversations.pull_seqs("bob", CHAT, range(1, 81))
        check(page.messages, page.has_more)
        offline = await core.conversations.offline("bob")
        check(offline.messages, offline.has_more)
        assert places(await all_offline(core, "bob", 200)) == [(CHAT, seq) for seq in range(1, 81)]


async def test_mentions_and_quotes_count_towards_the_size_of_a_reply(core_url: str) -> None:
    users = [f"{n:02}" + "u" * 62 for n in range(100)]
    async with open_test_core(core_url, [*PEOPLE, *users], pull__max_bytes=65_536) as core:
        group_id, name = await found_group(core, "alice", *users)
        target = await say(core, "alice", group_id, "漢" * 300)
        await fill(core, "alice", group_id, 30, mentions=users, reply_to=target.server_msg_id)
        page = await core.conversations.pull("alice", name, 3)
        assert page.has_more
        assert sum(len(msgspec.json.encode(message)) for message in page.messages) <= 65_536


# -- quotes --------------------------------------------------------------------------------------------


async def quotes(core: Core, user: str, name: str, seq: int) -> dict[str, Any]:
    """The quote that each way of reading shows this user of the message at `seq`, which is the head."""
    conversations = core.conversations
    (message,) = (await conversations.pull(user, name, seq)).messages
    found = {
        "pull": message,
        "seqs": (await conversations.pull_seqs(user, name, [seq])).messages[0],
        "history": (await conversations.history(user, name, limit=1)).messages[0],
        "find": await core.store.messages.find(user, message.server_msg_id),
        "offline": (await all_offline(core, user, 200))[-1],
        "resend": (await conversations.resend(user))[0][-1],
    }
    entries, _, _ = await conversations.entries(user)
    last = next(entry.last_message for entry in entries if entry.conversation_id == name)
    assert last is not None
    found["list"] = last
    assert {one.seq for one in found.values()} == {seq}
    return {way: one.quote for way, one in found.items()}


async def test_a_quote_is_made_for_each_reader_in_every_way_of_reading(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        target = await say(core, "alice", group_id, "é" * 300, extra={"text": "no"})  # 2
        await core.groups.leave("bob", group_id)  # 3
        await core.groups.join("bob", group_id)  # 4: the target is in an earlier span of his
        await core.groups.join("dave", group_id)  # 5: it is before his only one
        reply = await say(core, "carol", group_id, "yes", msg_type=7, reply_to=target.server_msg_id)
        for user in ("alice", "bob"):
            for way, quote in (await quotes(core, user, name, reply.seq)).items():
                assert quote is not None, f"{user} by {way}"
                assert (quote.server_msg_id, quote.sender_id, quote.msg_type) == (target.server_msg_id, "alice", 1)
                assert quote.text == "é" * 200
        assert set((await quotes(core, "dave", name, reply.seq)).values()) == {None}
        assert (await core.conversations.pull("dave", name, reply.seq)).messages[0].reply_to == target.server_msg_id


async def test_a_recalled_target_is_quoted_to_nobody(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        target = await say(core, "alice", "bob", "secret")
        await core.conversations.recall("alice", target.server_msg_id)
        reply = await say(core, "bob", "alice", "what?", reply_to=target.server_msg_id)
        assert reply.quote is None
        assert set((await quotes(core, "alice", CHAT, reply.seq)).values()) == {None}


async def test_a_quote_shows_the_line_that_names_its_target(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for msg_type, content, text in (
            (1, "a text", "a text"),
            (2, {"url": "https://example.org/a.png", "name": "a.png"}, "a.png"),
            (5, {"url": "https://example.org/" + "a" * 400}, "https://example.org/" + "a" * 180),
            (6, {"anything": "secret"}, ""),
        ):
            target = await say(core, "alice", "bob", content, msg_type=msg_type)
            reply = await say(core, "bob", "alice", reply_to=target.server_msg_id)
            (read,) = (await core.conversations.pull("alice", CHAT, reply.seq)).messages
            assert read.quote == reply.quote
            assert read.quote is not None
            assert (read.quote.msg_type, read.quote.text) == (msg_type, text)


# -- recall --------------------------------------------------------------------------------------------


async def test_a_recalled_message_is_blank_in_every_way_of_reading(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for content, msg_type, blank in (
            ("secret", 1, '""'),
            ({"url": "https://secret"}, 2, "{}"),
            ({"a": "secret"}, 6, "{}"),
        ):
            message = await say(
                core, "alice", "bob", content, msg_type=msg_type, extra={"a": "secret"}, mentions=["bob"]
            )
            done = await core.conversations.recall("alice", str(message.server_msg_id))
            assert done.event is not None
            assert (done.seq, done.event.seq, done.event.msg_type) == (message.seq + 1, message.seq + 1, 100)
            told = {"server_msg_id": str(message.server_msg_id), "seq": message.seq, "by": "alice"}
            assert msgspec.json.decode(done.event.content) == told
            read = [
                (await core.conversations.pull("bob", CHAT, message.seq)).messages[0],
                (await core.conversations.pull_seqs("bob", CHAT, [message.seq])).messages[0],
                (await core.conversations.history("bob", CHAT)).messages[1],
                (await all_offline(core, "bob", 200))[-2],
                (await core.conversations.resend("bob"))[0][-2],
                await core.store.messages.find("bob", message.server_msg_id),
            ]
            for one in read:
                assert one == read[0]
                assert (one.seq, one.status, one.content, one.extra) == (message.seq, 1, blank, None)
                assert (one.mentions, one.recalled_at, one.client_msg_id) == (
                    (),
                    done.event.send_at,
                    message.client_msg_id,
                )
            ((entry,), _, _) = await core.conversations.entries("bob")
            assert entry.last_message == done.event
        assert "secret" not in str(await core.conversations.pull("bob", CHAT))


async def test_the_head_can_be_a_recalled_message_for_who_left_right_after_it(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        message = await say(core, "alice", group_id, "secret")
        await core.groups.leave("bob", group_id)
        await core.conversations.recall("alice", message.server_msg_id)
        page = await core.conversations.pull("bob", name, 2)
        first = page.messages[0]
        assert (first.seq, first.status, first.content) == (2, 1, '""')
        assert page.head_seq == 3


async def test_a_repeated_recall_answers_the_same(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        message = await say(core, "alice", "bob")
        first = await core.conversations.recall("alice", message.server_msg_id)
        await say(core, "alice", "bob")
        await run(core, "UPDATE messages SET send_at=send_at-1000000")  # the window has closed meanwhile
        again = await core.conversations.recall("alice", message.server_msg_id)
        assert (again.seq, again.event, first.seq) == (first.seq, None, 2)
        assert (await core.conversations.pull("alice", CHAT)).head_seq == 3
        with refused("not_message_sender"):
            await core.conversations.recall("bob", message.server_msg_id)


async def test_recalling_is_for_the_sender_in_time_and_for_those_who_manage_a_group(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol", "dave")
        await core.groups.set_role("alice", group_id, "bob", "admin")
        recall = core.conversations.recall
        first, second, third, fourth = [(await say(core, "carol", group_id)).server_msg_id for _ in range(4)]
        single = (await say(core, "alice", "bob")).server_msg_id
        await run(core, "UPDATE messages SET send_at=send_at-121000")
        with refused("recall_timeout"):
            await recall("carol", first)
        with refused("not_message_sender"):
            await recall("dave", first)
        with refused("not_message_sender"):
            await recall("bob", single)
        with refused("recall_timeout"):
            await recall("alice", single)
        await recall("bob", first)
        await recall("alice", second)
        assert (await recall("bob", second)).event is None
        own = (await say(core, "carol", group_id)).server_msg_id
        await recall("carol", own)
        await core.groups.leave("carol", group_id)
        with refused("member_not_active"):
            await recall("carol", third)
        await core.groups.join("carol", group_id)
        with refused("recall_timeout"):
            await recall("carol", third)
        await core.groups.remove("alice", group_id, "dave")
        await core.groups.join("dave", group_id)
        await core.groups.transfer("alice", group_id, "dave")
        await recall("dave", fourth)  # it is in his first span


async def test_recalling_what_cannot_be_recalled(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, recall__admin=False) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        message = await say(core, "bob", group_id)
        (event,) = (await core.conversations.pull("alice", name, limit=1)).messages
        await core.groups.join("dave", group_id)
        recall = core.conversations.recall
        for user, target in (("alice", 12345), ("alice", event.server_msg_id), ("dave", message.server_msg_id)):
            with refused("message_not_found"):
                await recall(user, target)
        with refused("bad_server_msg_id"):
            await recall("alice", "x")
        with refused("not_message_sender"):  # recall.admin is off
            await recall("alice", message.server_msg_id)
        await recall("bob", message.server_msg_id)


# -- offline -------------------------------------------------------------------------------------------


async def test_offline_gives_what_was_not_delivered_over_all_conversations_oldest_first(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        expected = [(name, 1)]
        for n in range(30):
            sender, target = [("alice", "bob"), ("carol", "bob"), ("alice", group_id), ("carol", group_id)][n % 4]
            message = await say(core, sender, target)
            expected.append((message.conversation_id, message.seq))
        assert sorted(places(await all_offline(core, "bob", 200))) == sorted(expected)
        for limit in (1, 2, 7, 31, 200):
            found = await all_offline(core, "bob", limit)
            assert [message.send_at for message in found] == sorted(message.send_at for message in found)
            assert sorted(places(found)) == sorted(expected)
        await core.acknowledging.ack_seq("bob", "delivered", CHAT, 5)
        await core.store.cursors.flush()
        left = [place for place in expected if place[0] != CHAT or place[1] > 5]
        assert sorted(places(await all_offline(core, "bob", 9))) == sorted(left)
        assert (await core.conversations.offline("dave")).messages == []


async def test_offline_gives_a_long_old_conversation_before_many_short_new_ones(core_url: str) -> None:
    users = [f"u{n:02}" for n in range(30)]
    async with open_test_core(core_url, [*PEOPLE, *users]) as core:
        await fill(core, "alice", "bob", 60)
        await run(core, "UPDATE messages SET send_at=send_at-100000")
        for user in users:
            await say(core, user, "bob")
        found = await all_offline(core, "bob", 200)
        assert [message.send_at for message in found] == sorted(message.send_at for message in found)
        assert places(found)[:60] == [(CHAT, seq) for seq in range(1, 61)]
        assert len(set(places(found))) == len(found) == 90


async def test_offline_never_repeats_or_skips_whatever_happens_between_pages(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await fill(core, "alice", group_id, 20)
        await fill(core, "alice", "bob", 20)
        await fill(core, "carol", "bob", 20)
        first = await core.conversations.offline("bob", limit=15)
        assert await core.acknowledging.mark_read("bob", CHAT, seq=99) == (20, 0)
        late = await say(core, "dave", "bob")
        more = await say(core, "carol", "bob")
        found = list(first.messages)
        page = first
        while page.has_more:
            page = await core.conversations.offline("bob", page.next_cursor, 15)
            found += page.messages
        assert len(set(places(found))) == len(found)
        given = {where: [seq for place, seq in places(found) if place == where] for where, _ in places(found)}
        assert given[name] == list(range(1, 22))
        assert given["si_bob:carol"] == list(range(1, 22))
        assert more.seq == 21
        assert given[late.conversation_id] == [1]


async def test_a_finished_cursor_goes_on_where_it_ended(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await fill(core, "alice", "bob", 3)
        page = await core.conversations.offline("bob")
        assert (len(page.messages), page.has_more) == (3, False)
        assert (await core.conversations.offline("bob", page.next_cursor)).messages == []
        await say(core, "alice", "bob")
        page = await core.conversations.offline("bob", page.next_cursor)
        assert (places(page.messages), page.has_more) == ([(CHAT, 4)], False)


async def test_offline_reaches_conversations_beyond_what_one_pass_looks_at(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexo.store.listing.UNDELIVERED_MAX", 5)
    users = [f"u{n:02}" for n in range(12)]
    async with open_test_core(core_url, ["bob", *users]) as core:
        for user in users:
            await fill(core, user, "bob", 2)
        expected = [(f"si_bob:{user}", seq) for user in users for seq in (1, 2)]
        for limit in (3, 10, 200):
            assert sorted(places(await all_offline(core, "bob", limit))) == expected


async def test_a_baseline_replaces_the_delivered_cursor_and_moves_none(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        _, name = await group_with_two_spans(core)
        await fill(core, "alice", "bob", 5)
        await core.acknowledging.mark_read("bob", name, seq=8)
        await core.acknowledging.mark_read("bob", CHAT, seq=2)
        before = await core.conversations.heads("bob")
        for baselines, group_seqs, chat_seqs in (
            ({}, [], [3, 4, 5]),
            ({name: 0}, [1, 2, 3, 6, 7, 8], [3, 4, 5]),
            ({name: 2, CHAT: 0}, [3, 6, 7, 8], [1, 2, 3, 4, 5]),
            ({name: 4, CHAT: 4}, [6, 7, 8], [5]),
            ({name: 6, CHAT: 99}, [7, 8], []),
            ({name: -1, "si_x:y": 3, "nonsense": 1 << 70}, [1, 2, 3, 6, 7, 8], [3, 4, 5]),
        ):
            expected = {(name, seq) for seq in group_seqs} | {(CHAT, seq) for seq in chat_seqs}
            for limit in (2, 200):
                assert set(places(await all_offline(core, "bob", limit, baselines=baselines))) == expected
            messages, has_more = await core.conversations.resend("bob", baselines=baselines)
            assert (set(places(messages)), has_more) == (expected, False)
        assert await core.conversations.heads("bob") == before


async def test_a_cursor_that_the_server_did_not_give_is_refused(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        for cursor in (
            "x",
            "é",
            "\x00",
            "a" * 100_000,
            encode_cursor("text"),
            encode_cursor({"a": 1}),
            encode_cursor(None),
            encode_cursor([[1], 2]),
            encode_cursor({1: 1 << 63}),
            encode_cursor({1 << 63: 1}),
            encode_cursor({-(1 << 63): -5}),
            encode_cursor([1, 2, 3, 4]),
            encode_cursor([1 << 63, 1]),
            encode_cursor([0, 1, 1 << 63]),
            encode_cursor("a\x00b"),
            encode_cursor("\n"),
        ):
            with refused("bad_cursor"):
                await core.conversations.offline("bob", cursor)
            with refused("bad_cursor"):
                await core.conversations.entries("bob", cursor)
            with refused("bad_cursor"):
                await core.conversations.sync("bob", cursor)
            if cursor != encode_cursor("text"):
                with refused("bad_cursor"):
                    await core.groups.members("bob", group_id, cursor)


# -- resend --------------------------------------------------------------------------------------------


async def test_resend_gives_every_conversation_a_fair_share(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        busy, busy_name = await found_group(core, "alice", "bob", "carol")
        quiet, quiet_name = await found_group(core, "alice", "bob", "carol")
        await fill(core, "alice", busy, 250)
        await fill(core, "alice", quiet, 5)
        await fill(core, "alice", "bob", 250)
        await fill(core, "carol", "bob", 3)
        messages, has_more = await core.conversations.resend("bob")
        assert has_more
        given: dict[str, list[int]] = {}
        for message in messages:
            given.setdefault(message.conversation_id, []).append(message.seq)
        assert given == {
            CHAT: list(range(1, 198)),
            "si_bob:carol": [1, 2, 3],
            busy_name: list(range(1, 195)),
            quiet_name: [1, 2, 3, 4, 5, 6],
        }


async def test_resend_shares_even_when_there_is_less_room_than_conversations(core_url: str) -> None:
    users = [f"u{n:02}" for n in range(12)]
    async with open_test_core(core_url, ["bob", *users]) as core:
        for user in users:
            await fill(core, user, "bob", 3)
        messages, has_more = await core.conversations.resend("bob", limit=10)
        assert has_more
        assert len(messages) == 10
        assert {message.seq for message in messages} == {1}


async def test_acknowledging_each_round_of_resend_brings_everything_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        _, name = await group_with_two_spans(core)
        await fill(core, "alice", "bob", 9)
        await fill(core, "carol", "bob", 1)
        found: list[tuple[str, int]] = []
        has_more = True
        while has_more:
            messages, has_more = await core.conversations.resend("bob", limit=4)
            found += places(messages)
            for message in messages:
                await core.acknowledging.ack_message("bob", "delivered", message.server_msg_id)
            await core.store.cursors.flush()
        expected = [(name, seq) for seq in (6, 7, 8)]
        expected += [(CHAT, seq) for seq in range(1, 10)] + [("si_bob:carol", 1)]
        assert sorted(found) == sorted(expected)
        assert await core.conversations.resend("bob") == ([], False)


# -- the list, SYNC and heads --------------------------------------------------------------------------


async def listed(core: Core, user: str, limit: int = 200) -> list[ConversationEntry]:
    found: list[ConversationEntry] = []
    cursor, has_more = "", True
    while has_more:
        page, cursor, has_more = await core.conversations.entries(user, cursor or None, limit)
        assert len(page) <= limit
        assert has_more == bool(cursor)
        found += page
    return found


async def synced(core: Core, user: str, limit: int = 200) -> list[Head]:
    found: list[Head] = []
    cursor, has_more = "", True
    while has_more:
        page, cursor, has_more = await core.conversations.sync(user, cursor or None, limit)
        assert has_more == bool(cursor)
        found += page
    return found


async def test_an_entry_tells_all_about_a_single_chat(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        last = await say(core, "alice", "bob", mentions=["bob"])
        await core.acknowledging.mark_read("bob", CHAT, seq=1)
        await core.acknowledging.ack_seq("bob", "delivered", CHAT, 2)
        await core.store.cursors.flush()
        (mine,) = await listed(core, "bob")
        assert mine == ConversationEntry(
            conversation_id=CHAT,
            kind=1,
            peer_user_id="alice",
            group_id=None,
            last_message=last,
            head_seq=2,
            min_seq=1,
            read_seq=1,
            delivered_seq=2,
            unread=1,
            unread_mentions=1,
            pinned=False,
            recv_msg_opt=0,
            peer_read_seq=2,
            peer_delivered_seq=2,
            updated_at=last.send_at,
        )
        (hers,) = await listed(core, "alice")
        assert (hers.peer_user_id, hers.peer_read_seq, hers.peer_delivered_seq) == ("bob", 1, 2)


async def test_an_entry_of_a_group_has_no_peer(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        (entry,) = await listed(core, "bob")
        assert (entry.conversation_id, entry.kind, entry.group_id, entry.peer_user_id) == (name, 2, group_id, None)
        assert (entry.peer_read_seq, entry.peer_delivered_seq) == (None, None)
        assert entry.last_message is not None
        assert entry.last_message.msg_type == 101


async def test_the_list_has_the_pinned_first_and_then_the_latest_and_pages_well(core_url: str) -> None:
    users = [f"u{n:02}" for n in range(15)]
    async with open_test_core(core_url, ["bob", *users]) as core:
        for user in users:
            await say(core, user, "bob")
        await run(core, "UPDATE conversations SET last_send_at=1000 WHERE conversation_id>'si_bob:u10'")  # a tie
        for user in ("u03", "u12", "u08"):
            await core.conversations.change_settings("bob", f"si_bob:{user}", pinned=True)
        whole = await listed(core, "bob")
        order = [entry.conversation_id.removeprefix("si_bob:") for entry in whole]
        assert order[:3] == ["u08", "u03", "u12"]
        assert order[3:11] == ["u10", "u09", "u07", "u06", "u05", "u04", "u02", "u01"]
        assert sorted(order) == users
        assert [entry.pinned for entry in whole] == [True] * 3 + [False] * 12
        for limit in (1, 2, 4, 14, 15):
            assert await listed(core, "bob", limit) == whole
        heads = await synced(core, "bob")
        for limit in (1, 2, 4, 14, 15):
            assert await synced(core, "bob", limit) == heads
        assert [head.conversation_id.removeprefix("si_bob:") for head in heads][:3] == ["u10", "u09", "u08"]


async def test_a_page_begun_is_not_disturbed_by_what_moves_to_the_top(core_url: str) -> None:
    users = [f"u{n:02}" for n in range(9)]
    async with open_test_core(core_url, ["bob", *users]) as core:
        for user in users:
            await say(core, user, "bob")
        first, cursor, _ = await core.conversations.entries("bob", None, 3)
        assert [entry.peer_user_id for entry in first] == ["u08", "u07", "u06"]
        await say(core, "u00", "bob")
        await say(core, "u07", "bob")
        found: list[str | None] = []
        has_more = True
        while has_more:
            page, cursor, has_more = await core.conversations.entries("bob", cursor, 3)
            found += [entry.peer_user_id for entry in page]
        assert found == ["u05", "u04", "u03", "u02", "u01"]


async def test_a_hidden_conversation_returns_with_the_next_message(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", "bob")
        for where, target in ((CHAT, "bob"), (name, group_id)):
            entry = await core.conversations.change_settings("bob", where, hidden=True)
            assert entry.conversation_id == where
            assert where not in [entry.conversation_id for entry in await listed(core, "bob")]
            assert where in [head.conversation_id for head in await synced(core, "bob")]
            await say(core, "alice", target)
            assert where in [entry.conversation_id for entry in await listed(core, "bob")]
            await core.conversations.change_settings("bob", where, hidden=True)
            await core.conversations.change_settings("bob", where, hidden=False)
            assert where in [entry.conversation_id for entry in await listed(core, "bob")]
        assert len(await listed(core, "alice")) == 2


async def test_settings_are_ones_own_and_stay(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        change = core.conversations.change_settings
        entry = await change("bob", CHAT, pinned=True, recv_msg_opt=2)
        assert (entry.pinned, entry.recv_msg_opt) == (True, 2)
        entry = await change("bob", CHAT, recv_msg_opt=1)
        assert (entry.pinned, entry.recv_msg_opt) == (True, 1)
        assert await change("bob", CHAT) == entry
        (mine,) = await listed(core, "bob")
        (hers,) = await listed(core, "alice")
        assert (mine.pinned, mine.recv_msg_opt, hers.pinned, hers.recv_msg_opt) == (True, 1, False, 0)
        for bad in (-1, 3):
            with refused("bad_recv_msg_opt"):
                await change("bob", CHAT, recv_msg_opt=bad)
        assert not (await change("bob", CHAT, pinned=False)).pinned


async def test_the_entry_of_one_who_left_stays_as_it_was(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", group_id)
        change = await core.groups.leave("bob", group_id)
        await say(core, "alice", "bob")
        # what happens in one millisecond gets times that run ahead a little, so chats can change places
        await run(core, "UPDATE conversations SET last_send_at=last_send_at+100 WHERE conversation_id=?", CHAT)
        before = await listed(core, "bob")
        await say(core, "alice", group_id, mentions=["@all"])
        assert await listed(core, "bob") == before
        assert [entry.conversation_id for entry in before] == [CHAT, name]
        assert change.event is not None
        assert (before[1].last_message, before[1].head_seq) == (change.event, 3)
        assert (before[1].updated_at, before[1].unread) == (change.event.send_at, 1)
        heads = await synced(core, "bob")
        assert [(head.conversation_id, head.head_seq) for head in heads] == [(CHAT, 1), (name, 3)]
        await run(core, "UPDATE conversations SET last_send_at=last_send_at-1000 WHERE conversation_id=?", CHAT)
        await core.groups.join("bob", group_id)
        assert [entry.conversation_id for entry in await listed(core, "bob")] == [name, CHAT]


async def test_sync_tells_heads_cursors_and_unread(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        _, name = await group_with_two_spans(core)
        await fill(core, "alice", "bob", 3)
        await core.acknowledging.mark_read("bob", CHAT, seq=1)
        heads = {head.conversation_id: head for head in await synced(core, "bob")}
        assert heads == {CHAT: Head(CHAT, 3, 1, 1, 1, 2), name: Head(name, 8, 6, 5, 5, 2)}
        assert await synced(core, "nobody") == []


async def test_heads_of_many_conversations_come_in_one_answer(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        _, name = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", "bob")
        heads = core.conversations.heads
        assert {head.conversation_id for head in await heads("bob")} == {name, CHAT}
        odd = ["si_alice:carol", "sg_g_000000000000", "nonsense", "a\x00", "\ud800", ""]
        assert [head.conversation_id for head in await heads("bob", [CHAT, *odd])] == [CHAT]
        assert await heads("bob", []) == []
        assert await heads("dave", [name, CHAT]) == []
        with refused("bad_conversation_id"):
            await heads("bob", [CHAT] * 1001)


# -- receipts ------------------------------------------------------------------------------------------


async def test_receipts_list_who_has_read_and_who_has_been_delivered(core_url: str) -> None:
    users = [f"u{n}" for n in range(8)]
    async with open_test_core(core_url, users) as core:
        group_id, name = await found_group(core, *users[:6])  # 1
        message = await say(core, "u0", group_id)  # 2
        await core.groups.join("u6", group_id)  # 3: came later
        await core.acknowledging.mark_read("u1", name, seq=2)
        await core.acknowledging.mark_read("u2", name, seq=3)
        for user, seq in (("u3", 3), ("u4", 1)):
            await core.acknowledging.ack_seq(user, "delivered", name, seq)
        await core.acknowledging.mark_read("u6", name, seq=3)
        await core.store.cursors.flush()
        await core.groups.leave("u2", group_id)  # had read it all the same
        for viewer in ("u0", "u5"):
            receipts = await core.acknowledging.receipts(viewer, str(message.server_msg_id))
            assert (receipts.read, receipts.delivered, receipts.pending) == (["u1", "u2"], ["u3"], ["u4", "u5"])
            assert (receipts.read_count, receipts.delivered_count) == (2, 3)
        for viewer in ("u6", "u7"):
            with refused("message_not_found"):
                await core.acknowledging.receipts(viewer, message.server_msg_id)


async def test_receipts_of_a_single_chat_are_the_peers_cursors(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        message = await say(core, "alice", "bob")
        receipts = await core.acknowledging.receipts("alice", message.server_msg_id)
        assert (receipts.pending, receipts.delivered_count) == (["bob"], 0)
        await core.acknowledging.mark_read("bob", CHAT, seq=1)
        receipts = await core.acknowledging.receipts("bob", message.server_msg_id)
        assert (receipts.read, receipts.delivered, receipts.pending) == (["bob"], [], [])
        assert (receipts.read_count, receipts.delivered_count) == (1, 1)


async def test_receipts_have_exact_counts_and_capped_lists(core_url: str) -> None:
    users = [f"u{n:03}" for n in range(450)]
    async with open_test_core(core_url, users) as core:
        group_id, _ = await found_group(core, *users)
        message = await say(core, "u000", group_id)
        await run(core, "UPDATE members SET delivered_seq=2 WHERE user_id>='u010' AND user_id<'u440'")
        await run(core, "UPDATE members SET read_seq=2 WHERE user_id>='u010' AND user_id<'u220'")
        receipts = await core.acknowledging.receipts("u000", message.server_msg_id)
        assert (receipts.read_count, receipts.delivered_count) == (210, 430)
        assert receipts.read == users[10:210]
        assert receipts.delivered == users[220:420]
        assert receipts.pending == users[1:10] + users[440:]
