"""The journal: what was committed is in it, in order, once; what was not is not."""

from __future__ import annotations

import asyncio

import pytest

from harness.core import found_group, look, open_test_core, refused, run, say
from harness.journal import BEGINNING, read_all, rows_of, seqs_of, types_of
from harness.statements import recorded
from nexo.assembly.core import Core
from nexo.core.journal import MemberOf, Place, ReadUpTo, RecalledFact
from nexo.core.model import Group, Message, Role, User
from nexo.store.account_store import SqlAccounts
from nexo.store.engine import Script, write
from nexo.store.journal import sql_journal, writing

PEOPLE = ("alice", "bob", "carol", "dave")
CHAT = "si_alice:bob"


async def start(core: Core) -> Place:
    return await core.store.journal.now()


# -- what becomes an entry -----------------------------------------------------------------------------


async def test_a_message_is_an_entry_with_the_message_itself(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        first = await say(core, "alice", "bob")
        sent = await core.sending.send(
            "bob", client_msg_id="2", recv_id="alice", content="hi", reply_to=str(first.server_msg_id), extra={"a": 1}
        )
        one, two = await read_all(core)
        assert (one.type, one.conversation_id, one.user_id, one.data) == ("message.saved", CHAT, "alice", first)
        assert two.data == sent.message
        assert isinstance(two.data, Message)
        assert two.data.quote is not None
        assert one.event_id != two.event_id
        assert 0 < one.at <= two.at


async def test_every_event_of_a_group_becomes_its_entries_in_order(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        groups = core.groups
        message = await say(core, "bob", group_id)
        await groups.invite("alice", group_id, ["dave"])
        await groups.set_role("alice", group_id, "bob", "admin")
        await groups.mute("alice", group_id, "carol", 60)
        await groups.mute("alice", group_id, None, 60)
        await groups.update("alice", group_id, name="other")
        await core.conversations.recall("bob", message.server_msg_id)
        await groups.remove("alice", group_id, "carol")
        await groups.leave("dave", group_id)
        await groups.transfer("alice", group_id, "bob")
        await groups.dismiss("bob", group_id)
        entries = await read_all(core)
        assert [(entry.type, entry.user_id) for entry in entries] == [
            ("group.created", "alice"),
            ("message.saved", "bob"),
            ("member.joined", "dave"),
            ("member.role", "bob"),
            ("member.muted", "carol"),
            ("group.updated", "alice"),
            ("group.updated", "alice"),
            ("message.recalled", "bob"),
            ("member.removed", "carol"),
            ("member.left", "dave"),
            ("member.role", "alice"),
            ("member.role", "bob"),
            ("group.updated", "alice"),
            ("group.dismissed", "bob"),
        ]
        assert {entry.conversation_id for entry in entries} == {name}
        assert len({entry.event_id for entry in entries}) == len(entries)
        by_type = {entry.type: entry.data for entry in entries}
        assert isinstance(by_type["group.created"], Group)
        assert by_type["group.created"].name == "other", "data is as it is now"
        role = by_type["member.role"]
        assert isinstance(role, MemberOf)
        assert (role.group_id, role.member.user_id, role.member.role) == (group_id, "bob", Role.OWNER)
        assert by_type["message.recalled"] == RecalledFact(message.server_msg_id, name, message.seq, "bob")


async def test_what_was_recalled_since_is_blank(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        message = await say(core, "alice", "bob", content="a secret")
        await core.conversations.recall("alice", message.server_msg_id)
        (saved, recalled) = await read_all(core)
        assert isinstance(saved.data, Message)
        assert (saved.data.status, saved.data.content) == (1, '""')
        assert recalled.type == "message.recalled"
        assert [row for row in await rows_of(core) if "secret" in row[1]] == []


async def test_accounts_and_read_cursors_become_entries(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        accounts = SqlAccounts(core.store.database)
        await accounts.add_user("erin", "hash", "Erin", "", None, False)
        await accounts.update("erin", {"nickname": "E"})
        await accounts.set_admin("erin", True)
        await say(core, "alice", "bob")
        place = await start(core)
        await core.store.conversations.mark_read("bob", CHAT, 1)
        await core.store.conversations.mark_read("bob", CHAT, 1)  # does not move
        core.store.conversations.advance("alice", CHAT, delivered_seq=1)
        await core.store.cursors.flush()
        entries = await read_all(core)
        assert types_of(entries) == [
            "user.created", "user.updated", "user.updated", "message.saved", "conversation.read",
        ]  # fmt: skip
        assert isinstance(entries[0].data, User)
        assert (entries[0].user_id, entries[0].data.nickname, entries[0].data.is_admin) == ("erin", "E", True)
        (read,) = await read_all(core, place)
        assert read.data == ReadUpTo(CHAT, "bob", 1)


# -- an entry exists if and only if its change was committed -------------------------------------------


async def test_what_is_refused_or_repeated_leaves_nothing(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob", client_msg_id="1")
        before = await rows_of(core)
        await say(core, "alice", "bob", client_msg_id="1")
        await say(core, "alice", "bob", client_msg_id="1")
        with refused("client_msg_id_reused"):
            await say(core, "alice", "bob", content="other", client_msg_id="1")
        with refused("user_not_found"):
            await say(core, "alice", "nobody")
        with refused("user_not_found"):
            await SqlAccounts(core.store.database).update("nobody", {"nickname": "x"})
        with refused("group_not_found"):
            await core.groups.leave("alice", "g_" + "x" * 12)
        assert await rows_of(core) == before
        assert len(await read_all(core)) == 1


async def test_what_is_rolled_back_is_not_in_the_journal(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:

        def fail() -> Script[None]:
            yield from writing.note(1, writing.user("alice", "updated"))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await write(core.store.database.engine, fail)
        await say(core, "alice", "bob")
        assert types_of(await read_all(core)) == ["message.saved"]


async def test_a_batch_is_one_row_and_its_messages_are_in_the_order_of_seq(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for peer in ("bob", "carol"):
            await say(core, "alice", peer)
        place = await start(core)
        sends = [say(core, "alice", ("bob", "carol")[n % 2]) for n in range(100)]
        with recorded(core) as recording:
            sent = await asyncio.gather(*sends)
        assert len(await rows_of(core)) - place.row == recording.transactions <= 3
        found = seqs_of(await read_all(core, place))
        assert sorted(found) == sorted((message.conversation_id, message.seq) for message in sent)
        for name in (CHAT, "si_alice:carol"):
            seqs = [seq for conversation_id, seq in found if conversation_id == name]
            assert seqs == list(range(2, 52))


# -- pages ---------------------------------------------------------------------------------------------


async def test_a_page_may_end_inside_a_row_and_goes_on_there(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        await asyncio.gather(*(say(core, "alice", "bob") for _ in range(20)))
        whole = await read_all(core)
        assert len(whole) == 21
        assert len(await rows_of(core)) < 21
        for limit in (1, 2, 7, 20):
            assert await read_all(core, limit=limit) == whole
        page = await core.store.journal.page(BEGINNING, 5)
        assert (len(page.entries), page.has_more, page.is_waiting) == (5, True, False)
        cursor = core.store.journal.cursor_of(page.place)
        assert len(cursor) <= 512
        assert await read_all(core, await core.store.journal.place_of(cursor)) == whole[5:]


async def test_a_page_is_cut_by_its_size_and_has_at_least_one_entry(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        for _ in range(5):
            await say(core, "alice", "bob", content="x" * 4000)
        journal = core.store.journal
        page = await journal.page(BEGINNING, 256, max_bytes=10_000)
        assert (len(page.entries), page.has_more) == (2, True)
        assert len((await journal.page(page.place, 256, max_bytes=10)).entries) == 1


async def test_only_the_types_that_are_asked_for_are_given_and_the_rest_is_passed(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", group_id)
        await core.store.conversations.mark_read("bob", f"sg_{group_id}", 2)
        for types, count in (
            ({"message.saved"}, 1),
            ({"conversation.read", "group.created"}, 2),
            ({"user.created"}, 0),
        ):
            page = await core.store.journal.page(BEGINNING, 256, types)
            assert len(page.entries) == count
            assert {entry.type for entry in page.entries} <= types
            assert page.place == Place(3, 0)


async def test_a_cursor_leads_from_now_on_from_the_beginning_or_is_refused(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        journal = core.store.journal
        assert await journal.place_of(None) == BEGINNING
        await say(core, "alice", "bob")
        now = await journal.place_of(None)
        last = await say(core, "alice", "bob")
        assert [entry.data for entry in await read_all(core, now)] == [last]
        assert len(await read_all(core, await journal.place_of("begin"))) == 2
        for wrong in ("", "nonsense", "x" * 600, journal.cursor_of(Place(-1, 0))):
            with refused("bad_cursor"):
                await journal.place_of(wrong)
        with refused("cursor_expired"):
            await journal.place_of(journal.cursor_of(Place(99, 0)))


# -- trimming ------------------------------------------------------------------------------------------


async def test_trimming_takes_the_oldest_in_steps_and_never_the_newest(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        journal = core.store.journal
        for _ in range(6):
            await say(core, "alice", "bob")
        assert await journal.trim(3_600_000) == 0
        await run(core, "UPDATE journal SET at=1 WHERE id<=?", 3)
        monkeypatch.setattr(sql_journal.trimming.trim, "__defaults__", (2,))
        assert [await journal.trim(3_600_000) for _ in range(3)] == [2, 1, 0]
        assert [row[0] for row in await rows_of(core)] == [4, 5, 6]
        assert await journal.oldest() == Place(3, 0)
        assert len(await read_all(core, Place(3, 0))) == 3
        for expired in (BEGINNING, Place(2, 0)):
            with refused("cursor_expired"):
                await journal.page(expired, 10)
        await run(core, "UPDATE journal SET at=1")
        assert sum([await journal.trim(3_600_000) for _ in range(4)]) == 2
        assert [row[0] for row in await rows_of(core)] == [6]
        await say(core, "alice", "bob")
        assert [row[0] for row in await rows_of(core)] == [6, 7]


async def test_what_consumers_and_trimming_write_costs_sqlite_nothing_it_remembers(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        if core.store.database.engine.name != "sqlite":
            return
        await say(core, "alice", "bob")
        journal = core.store.journal
        lease = await journal.take("c", "me", 60, from_now=True)
        assert lease is not None
        await say(core, "alice", "bob")
        assert await journal.save(lease, Place(1, 0))
        assert await journal.renew(lease, 60)
        await journal.trim(1)
        with recorded(core) as recording:
            await say(core, "alice", "bob")
        assert not [stmt for stmt in recording.statements if stmt.sql.startswith("SELECT")]


async def test_the_journal_names_no_content_and_one_row_for_each_transaction(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        message = await say(core, "alice", "bob", content="words")
        conv = (await look(core, "SELECT id FROM conversations WHERE conversation_id=?", CHAT))[0][0]
        assert await rows_of(core) == [(1, f"[[1,{conv},1,1]]")]
        assert message.seq == 1


async def test_the_message_of_the_canary_is_no_entry(core_url: str) -> None:
    async with open_test_core(core_url) as core:
        await core.store.beat()
        await core.sending.send("nexo.canary", client_msg_id="canary", recv_id="nexo.canary.echo", content="canary")
        assert await read_all(core) == []
        assert (await core.store.journal.page(BEGINNING, 10)).place == Place(1, 0)


async def test_a_store_that_is_empty_has_an_empty_journal(core_url: str) -> None:
    async with open_test_core(core_url) as core:
        page = await core.store.journal.page(BEGINNING, 10)
        assert (page.entries, page.place, page.has_more) == ([], BEGINNING, False)
        state = await core.store.journal.state()
        assert (state.newest, state.trimmed_to, state.consumers) == (0, 0, [])
