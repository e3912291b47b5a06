"""Receipts and cursors (SPEC §5), the rule of one's own messages (§2), and exact unread counts (law 9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.commits import CommitLog
from harness.core import found_group, open_test_core, refused, say
from harness.statements import recorded
from nexo.assembly.core import Core
from nexo.core.model import CursorChange
from nexo.store import cursors as cursor_writer
from nexo.store.engine import Transient

PEOPLE = ("alice", "bob", "carol", "dave")
CHAT = "si_alice:bob"


async def cursors(core: Core, user: str, name: str = CHAT) -> tuple[int, int]:
    """delivered_seq and read_seq, after everything noted was written."""
    await core.store.cursors.flush()
    (head,) = await core.conversations.heads(user, [name])
    return head.delivered_seq, head.read_seq


async def counts(core: Core, user: str, name: str = CHAT) -> tuple[int, int]:
    """unread and unread_mentions."""
    entries, _, _ = await core.conversations.entries(user)
    (entry,) = [entry for entry in entries if entry.conversation_id == name]
    (head,) = await core.conversations.heads(user, [name])
    assert head.unread == entry.unread
    return entry.unread, entry.unread_mentions


async def ack(core: Core, user: str, kind: str, seq: int, name: str = CHAT) -> None:
    await core.acknowledging.ack_seq(user, kind, name, seq)


# -- moving forward ------------------------------------------------------------------------------------


async def test_delivered_moves_one_cursor_and_read_moves_both(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(5):
            await say(core, "alice", "bob")
        await ack(core, "bob", "delivered", 3)
        assert await cursors(core, "bob") == (3, 0)
        await ack(core, "bob", "read", 2)
        assert await cursors(core, "bob") == (3, 2)
        await ack(core, "bob", "read", 5)
        assert await cursors(core, "bob") == (5, 5)


async def test_an_ack_by_message_id_is_cumulative_and_tells_whose_message_it_is(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        messages = [await say(core, "alice", "bob") for _ in range(3)]
        place = await core.acknowledging.ack_message("bob", "delivered", str(messages[1].server_msg_id))
        assert (place.conversation_id, place.seq, place.sender_id) == (CHAT, 2, "alice")
        assert await cursors(core, "bob") == (2, 0)


async def test_ack_types_are_known_by_several_spellings(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(4):
            await say(core, "alice", "bob")
        for seq, kind in enumerate(("read", "READ", "ack_read", "Ack_Read"), 1):
            await ack(core, "bob", kind, seq)
            assert await cursors(core, "bob") == (seq, seq)
        for kind in ("", "saved", "read ", "readd"):
            with refused("unknown_ack_type"):
                await ack(core, "bob", kind, 1)


async def test_repeated_and_out_of_order_acks_are_harmless(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(6):
            await say(core, "alice", "bob")
        for seq in (4, 2, 4, 1, 3):
            await ack(core, "bob", "read", seq)
        await ack(core, "bob", "delivered", 1)
        assert await cursors(core, "bob") == (4, 4)
        assert await counts(core, "bob") == (2, 0)
        for seq in (1, 4, 2):
            await ack(core, "bob", "read", seq)
            assert await cursors(core, "bob") == (4, 4)
        assert (await core.acknowledging.mark_read("bob", CHAT, seq=1)) == (4, 2)


async def test_a_seq_beyond_the_head_means_the_head(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(3):
            await say(core, "alice", "bob")
        for seq in (4, 10**9, 1 << 70):
            assert await core.acknowledging.ack_seq("bob", "delivered", CHAT, seq) == 3
        assert await cursors(core, "bob") == (3, 0)
        assert await core.acknowledging.mark_read("bob", CHAT, seq=1 << 70) == (3, 0)


async def test_one_acknowledges_only_what_exists_and_one_may_see(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        before = await say(core, "alice", group_id)  # 2
        await core.groups.leave("bob", group_id)  # 3
        missed = await say(core, "alice", group_id)  # 4
        await core.groups.join("dave", group_id)  # 5
        private = await say(core, "alice", "carol")
        acknowledging = core.acknowledging
        with refused("message_not_found"):
            await acknowledging.ack_message("bob", "read", 12345)
        with refused("bad_server_msg_id"):
            await acknowledging.ack_message("bob", "read", "x")
        for user, message in (("dave", before), ("dave", missed), ("bob", missed), ("bob", private), ("eve", before)):
            with refused("ack_not_allowed"):
                await acknowledging.ack_message(user, "read", message.server_msg_id)
        for user, where, seq in (
            ("dave", name, 4),
            ("dave", name, 0),
            ("bob", name, -1),
            ("dave", CHAT, 1),
            ("bob", "si_alice:carol", 1),
            ("alice", CHAT, 1),  # nobody has written there
            ("alice", "sg_g_000000000000", 1),
            ("alice", "nonsense", 1),
        ):
            with refused("ack_not_allowed"):
                await acknowledging.ack_seq(user, "read", where, seq)
        await acknowledging.ack_message("bob", "read", before.server_msg_id)  # what was visible stays so
        assert await cursors(core, "bob", name) == (2, 2)


async def test_cursors_stay_within_what_the_member_may_see(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", group_id)  # 2
        await core.groups.leave("bob", group_id)  # 3
        await say(core, "alice", group_id)  # 4
        assert await core.acknowledging.ack_seq("bob", "read", name, 4) == 3
        # whatever was checked when it was noted, the row decides
        core.store.conversations.advance("bob", name, delivered_seq=99, read_seq=99)
        core.store.conversations.advance("dave", name, delivered_seq=99, read_seq=99)
        core.store.conversations.advance("bob", "si_bob:nobody", delivered_seq=1)
        assert await cursors(core, "bob", name) == (3, 3)
        await core.groups.join("bob", group_id)  # 5
        assert await cursors(core, "bob", name) == (4, 4)
        await ack(core, "bob", "read", 2, name)  # of the first span: nothing to move
        assert await cursors(core, "bob", name) == (4, 4)


# -- one's own messages --------------------------------------------------------------------------------


async def test_cursors_step_over_ones_own_messages_when_all_before_is_covered(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for seq in (1, 2, 3):
            await say(core, "alice", "bob")
            assert await cursors(core, "alice") == (seq, seq)
        assert await cursors(core, "bob") == (0, 0)
        await ack(core, "bob", "read", 3)
        await say(core, "bob", "alice")
        assert await cursors(core, "bob") == (4, 4)
        assert await counts(core, "bob") == (0, 0)
        assert await counts(core, "alice") == (1, 0)


async def test_a_message_that_crossed_ones_own_on_the_wire_stays_unread(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "bob", "alice")  # 1, alice has not seen it
        await say(core, "alice", "bob")  # 2
        assert await cursors(core, "alice") == (0, 0)
        assert await counts(core, "alice") == (1, 0)
        messages, _ = await core.conversations.resend("alice")
        assert [message.seq for message in messages] == [1, 2]


async def test_the_ack_that_covers_the_gap_takes_ones_own_messages_along(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for sender in ("bob", "alice", "alice", "bob", "bob", "alice"):
            await say(core, sender, "bob" if sender == "alice" else "alice")
        assert await cursors(core, "alice") == (0, 0)
        await ack(core, "alice", "delivered", 1)
        assert await cursors(core, "alice") == (3, 0)  # over 2 and 3, which are hers
        await ack(core, "alice", "read", 1)
        assert await cursors(core, "alice") == (3, 3)
        assert await counts(core, "alice") == (2, 0)
        await ack(core, "alice", "read", 4)
        assert await cursors(core, "alice") == (4, 4)
        await ack(core, "alice", "delivered", 5)
        assert await cursors(core, "alice") == (6, 4)
        assert await core.acknowledging.mark_read("alice", CHAT, seq=5) == (6, 0)


async def test_events_are_nobodys_own_and_want_an_ack(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")  # 1
        await say(core, "alice", group_id)  # 2
        await core.groups.update("alice", group_id, name="new")  # 3
        await say(core, "alice", group_id)  # 4
        assert await cursors(core, "alice", name) == (0, 0)
        assert await counts(core, "alice", name) == (0, 0)
        await ack(core, "alice", "read", 1, name)
        assert await cursors(core, "alice", name) == (2, 2)
        await ack(core, "alice", "read", 3, name)
        assert await cursors(core, "alice", name) == (4, 4)


async def test_own_messages_of_a_closed_span_are_stepped_over_too(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")  # 1
        await say(core, "bob", group_id)  # 2
        await core.groups.leave("bob", group_id)  # 3
        await ack(core, "bob", "delivered", 1, name)
        assert await cursors(core, "bob", name) == (2, 0)
        assert await core.acknowledging.mark_read("bob", name, seq=9) == (3, 0)


# -- writing -------------------------------------------------------------------------------------------


async def test_acks_are_written_by_themselves_and_those_concerned_are_told_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(3):
            await say(core, "alice", "bob")
        told: asyncio.Queue[list[CursorChange]] = asyncio.Queue()
        core.store.seam.attach(CommitLog(told.put_nowait))
        await ack(core, "bob", "delivered", 2)
        assert await told.get() == [CursorChange(CHAT, "bob", 0, 2, 0, 0)]
        (head,) = await core.conversations.heads("bob", [CHAT])
        assert head.delivered_seq == 2
        await ack(core, "bob", "delivered", 1)
        await core.store.cursors.flush()
        assert told.empty()
        await ack(core, "bob", "read", 3)
        assert await told.get() == [CursorChange(CHAT, "bob", 2, 3, 0, 3)]


async def test_many_acks_are_one_transaction(core_url: str) -> None:
    users = [f"u{n:02}" for n in range(40)]
    async with open_test_core(core_url, users, receipts__flush_ms=10_000) as core:
        group_id, name = await found_group(core, *users)
        for _ in range(10):
            await say(core, "u00", group_id)
        ranges = await core.store.conversations.visible_ranges("u01", name)
        assert ranges == ((1, 11),)
        with recorded(core) as recording:
            for user in users[1:]:
                for seq in range(1, 12):
                    core.store.conversations.advance(user, name, delivered_seq=seq, read_seq=seq // 2)
            assert core.store.cursors.pending == 39
            await core.store.cursors.flush()
        assert recording.transactions == 1
        assert core.store.cursors.pending == 0
        for user in users[1:]:
            assert await cursors(core, user, name) == (11, 5)
            assert await counts(core, user, name) == (6, 0)


async def test_closing_writes_what_was_noted(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, receipts__flush_ms=10_000) as core:
        await say(core, "alice", "bob")
        await ack(core, "bob", "read", 1)
    async with open_test_core(core_url) as core:
        assert await cursors(core, "bob") == (1, 1)


async def test_what_the_database_does_not_take_now_is_written_later(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, receipts__flush_ms=10_000) as core:
        for _ in range(3):
            await say(core, "alice", "bob")
        await ack(core, "bob", "read", 2)
        engine: Any = core.store.database.engine

        async def fail(*_: Any, **__: Any) -> None:
            raise Transient("out of reach")

        engine.write_once = fail
        await core.store.cursors.flush()
        with refused("server_busy"):
            await core.acknowledging.mark_read("bob", CHAT, seq=3)
        assert core.store.cursors.pending == 1
        await ack(core, "bob", "delivered", 3)
        del engine.write_once
        assert await cursors(core, "bob") == (3, 2)


async def test_what_comes_while_others_are_written_waits_for_its_own_time(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, receipts__flush_ms=10_000) as core:
        for _ in range(3):
            await say(core, "alice", "bob")
        await ack(core, "bob", "delivered", 1)
        told: list[CursorChange] = []

        def go_on(changes: list[CursorChange]) -> None:
            told.extend(changes)
            core.store.conversations.advance("bob", CHAT, delivered_seq=3)

        core.store.seam.attach(CommitLog(go_on))
        await core.store.cursors.flush()
        assert told == [CursorChange(CHAT, "bob", 0, 1, 0, 0)]
        assert core.store.cursors.pending == 1
        assert await cursors(core, "bob") == (3, 0)


async def test_nothing_noted_is_lost_when_the_database_is_away_and_too_much_waits(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_test_core(core_url, PEOPLE, receipts__flush_ms=10_000) as core:
        await say(core, "alice", "bob")
        await say(core, "carol", "bob")
        await ack(core, "bob", "read", 1)
        monkeypatch.setattr(cursor_writer, "PENDING_MAX", 1)
        engine: Any = core.store.database.engine

        async def fail(*_: Any, **__: Any) -> None:
            core.store.conversations.advance("bob", "si_bob:carol", delivered_seq=1)
            raise Transient("out of reach")

        engine.write_once = fail
        await core.store.cursors.flush()
        with refused("server_busy"):
            core.store.conversations.advance("dave", "si_alice:dave", delivered_seq=1)
        del engine.write_once
        assert await cursors(core, "bob") == (1, 1)
        assert await cursors(core, "bob", "si_bob:carol") == (1, 0)


# -- mark_read -----------------------------------------------------------------------------------------


async def test_mark_read_writes_through_and_touches_no_other_conversation(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        told: list[CursorChange] = []
        core.store.seam.attach(CommitLog(told.extend))
        messages = [await say(core, "alice", "bob") for _ in range(4)]
        await say(core, "carol", "bob")
        assert await core.acknowledging.mark_read("bob", CHAT, seq=1) == (1, 3)
        (head,) = await core.conversations.heads("bob", [CHAT])
        assert (head.delivered_seq, head.read_seq, head.unread) == (1, 1, 3)
        last_msg_id = str(messages[2].server_msg_id)
        assert await core.acknowledging.mark_read("bob", CHAT, last_msg_id=last_msg_id) == (3, 1)
        assert await counts(core, "bob", "si_bob:carol") == (1, 0)
        assert told == [CursorChange(CHAT, "bob", 0, 1, 0, 1), CursorChange(CHAT, "bob", 1, 3, 1, 3)]


async def test_mark_read_says_what_is_wrong_with_it(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        before = await say(core, "alice", group_id)
        await core.groups.join("dave", group_id)
        mark_read = core.acknowledging.mark_read
        for fields in ({}, {"seq": 1, "last_msg_id": 1}):
            with refused("missing_seq"):
                await mark_read("bob", name, **fields)
        with refused("message_not_found"):
            await mark_read("bob", name, last_msg_id=12345)
        with refused("message_not_found"):
            await mark_read("bob", CHAT, last_msg_id=before.server_msg_id)
        with refused("bad_server_msg_id"):
            await mark_read("bob", name, last_msg_id="first")
        with refused("ack_not_allowed"):
            await mark_read("dave", name, last_msg_id=before.server_msg_id)
        with refused("not_group_member"):
            await mark_read("eve", name, seq=1)
        with refused("group_not_found"):
            await mark_read("bob", "sg_g_000000000000", seq=1)
        with refused("conversation_not_found"):
            await mark_read("carol", CHAT, seq=1)
        with refused("bad_conversation_id"):
            await mark_read("carol", "nonsense", seq=1)
        assert await mark_read("bob", CHAT, seq=1) == (0, 0)  # nobody has written there yet
        for seq in (-5, 0):
            assert await mark_read("dave", name, seq=seq) == (2, 0)


# -- unread --------------------------------------------------------------------------------------------


async def test_unread_counts_the_messages_of_others_above_the_read_cursor(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")  # 1
        await say(core, "alice", group_id)  # 2
        await say(core, "bob", group_id)  # 3
        await core.groups.update("alice", group_id, name="x")  # 4
        await say(core, "bob", group_id)  # 5
        recalled = await say(core, "carol", group_id)  # 6
        assert [await counts(core, user, name) for user in ("alice", "bob", "carol")] == [(3, 0), (2, 0), (3, 0)]
        await core.conversations.recall("carol", recalled.server_msg_id)  # 7
        assert [await counts(core, user, name) for user in ("alice", "bob", "carol")] == [(3, 0), (2, 0), (3, 0)]
        assert await core.acknowledging.mark_read("bob", name, seq=2) == (3, 1)  # 3 is his own
        assert await core.acknowledging.mark_read("alice", name, seq=5) == (5, 1)
        assert await core.acknowledging.mark_read("carol", name, seq=4) == (4, 1)
        assert await core.acknowledging.mark_read("carol", name, seq=7) == (7, 0)


async def test_unread_mentions_count_what_others_meant_for_one(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")  # 1
        await say(core, "alice", group_id, mentions=["bob", "alice", "dave"])  # 2
        await say(core, "alice", group_id, mentions=["@all"])  # 3
        await say(core, "bob", group_id, mentions=["bob", "carol"])  # 4
        await say(core, "carol", group_id)  # 5
        await say(core, "carol", group_id, mentions=["bob"])  # 6
        await core.groups.invite("alice", group_id, ["dave"])  # 7
        await say(core, "alice", group_id, mentions=["@all"])  # 8
        expected = {"alice": (3, 0), "bob": (5, 4), "carol": (4, 3), "dave": (1, 1)}
        assert {user: await counts(core, user, name) for user in PEOPLE} == expected
        for seq, left in ((2, (4, 3)), (3, (3, 2)), (5, (2, 2)), (7, (1, 1)), (8, (0, 0))):
            await core.acknowledging.mark_read("bob", name, seq=seq)
            assert await counts(core, "bob", name) == left


async def test_recalling_a_mention_does_not_change_the_count(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        for mentions in (["bob"], ["@all"]):
            message = await say(core, "alice", group_id, mentions=mentions)
            before = await counts(core, "bob", name)
            await core.conversations.recall("alice", message.server_msg_id)
            assert await counts(core, "bob", name) == before
        await core.acknowledging.mark_read("bob", name, seq=99)
        assert await counts(core, "bob", name) == (0, 0)


async def test_mentions_count_in_single_chats(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob", mentions=["bob", "alice", "carol"])
        assert await counts(core, "bob") == (1, 1)
        assert await counts(core, "alice") == (0, 0)
        await core.acknowledging.mark_read("bob", CHAT, seq=1)
        assert await counts(core, "bob") == (0, 0)


async def test_counts_freeze_when_one_leaves_and_can_still_be_read_away(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        for mentions in (["bob"], ["@all"], []):
            await say(core, "alice", group_id, mentions=mentions)
        await core.groups.leave("bob", group_id)
        for mentions in (["bob"], ["@all"], []):
            await say(core, "alice", group_id, mentions=mentions)
        assert await counts(core, "bob", name) == (3, 2)
        assert await core.acknowledging.mark_read("bob", name, seq=2) == (2, 2)
        assert await counts(core, "bob", name) == (2, 1)
        assert await core.acknowledging.mark_read("bob", name, seq=99) == (5, 0)
        assert await counts(core, "bob", name) == (0, 0)


async def test_coming_back_starts_counting_anew(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await say(core, "bob", group_id)
        for mentions in (["bob"], ["@all"]):
            await say(core, "alice", group_id, mentions=mentions)
        await core.groups.leave("bob", group_id)
        await say(core, "alice", group_id, mentions=["@all"])
        await core.groups.join("bob", group_id)
        assert await counts(core, "bob", name) == (0, 0)
        await say(core, "bob", group_id)
        await say(core, "alice", group_id, mentions=["bob"])
        await say(core, "alice", group_id, mentions=["@all"])
        assert await counts(core, "bob", name) == (2, 2)
        await core.acknowledging.mark_read("bob", name, seq=99)
        assert await counts(core, "bob", name) == (0, 0)
