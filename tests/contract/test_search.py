"""Search on every engine: equal to a scan of what a user may see, and never more."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from harness.core import found_group, look, open_test_core, say
from harness.searching import open_search, random_question, random_text
from harness.waiting import loop_turns
from nexo.core.journal import Place
from nexo.core.search_index import IndexStep, SearchFilter
from nexo.core.search_query import parse_question
from nexo.core.search_text import MediaKind
from nexo.ids import single_conversation_id
from nexo.search import searching
from nexo.service.forwarding import ForwardTarget

USERS = ("ann", "bob", "cid", "dot")
PAIRS = (("ann", "bob"), ("ann", "cid"), ("bob", "cid"), ("dot", "ann"))


async def test_200_questions_find_what_a_scan_finds(core_url: str) -> None:
    rng = random.Random(7)
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        group_id, group_name = await found_group(core, "ann", "bob", "cid")
        members = {"ann", "bob", "cid"}
        sent = []
        for number in range(400):
            roll = rng.random()
            if roll < 0.5:
                sender, target = rng.choice(PAIRS)
            else:
                sender, target = rng.choice(sorted(members)), group_id
            if roll > 0.97:
                target = group_id
                user = rng.choice(("bob", "cid", "dot"))
                if user in members:
                    await core.groups.leave(user, group_id=group_id)
                    members.discard(user)
                else:
                    await core.groups.invite("ann", group_id=group_id, user_ids=[user])
                    members.add(user)
                continue
            content: Any = random_text(rng)
            if rng.random() < 0.1:
                content = {"url": "https://example.com/x", "name": content[:200].replace("\n", " ")}
            fields = {"msg_type": 5} if isinstance(content, dict) else {}
            sent.append(await say(core, sender, target, content, **fields))
            if rng.random() < 0.05:
                one = rng.choice(sent)
                if sender == one.sender_id:
                    await core.conversations.recall(sender, one.server_msg_id)
            if number == 200:
                await search.indexer.catch_up()  # the second half arrives at an index that is there
        await search.indexer.catch_up()
        names = {user: [single_conversation_id(*pair) for pair in PAIRS if user in pair] for user in USERS}
        hits = 0
        for number in range(200):
            query, user = random_question(rng), rng.choice(USERS)
            seen = [*names[user], group_name] if await _was_member(core, user, group_name) else names[user]
            expected = await search.scan(user, query, seen)
            found = await search.find(user, query, limit=rng.choice((3, 20, 100)))
            assert [one.server_msg_id for one in found] == [one.server_msg_id for one in expected], query
            hits += len(found)
            if number % 4 == 0:
                inside = await search.find(user, query, conversation_id=names[user][0])
                wanted = [one.seq for one in expected if one.conversation_id == names[user][0]]
                assert [one.seq for one in inside] == wanted
        assert hits > 500


async def _was_member(core: Any, user_id: str, name: str) -> bool:
    found = await look(
        core,
        "SELECT 1 FROM members m JOIN conversations c ON c.id=m.conv WHERE c.conversation_id=? AND m.user_id=?",
        name,
        user_id,
    )
    return bool(found)


async def test_what_is_recalled_is_gone_from_the_index_too(core_url: str) -> None:
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        kept = await say(core, "ann", "bob", "a secret kept")
        gone = await say(core, "ann", "bob", "a secret gone")
        await search.indexer.catch_up()
        assert len(await search.find("bob", "secret")) == 2
        await core.conversations.recall("ann", gone.server_msg_id)
        assert [one.seq for one in await search.find("bob", "secret")] == [kept.seq]
        await search.indexer.catch_up()
        assert (await search.index.state()).entries == 1
        assert await search.find("bob", "gone") == []


async def test_texts_that_are_slow_to_compare_end_a_page_and_let_other_work_run(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    at_compare: list[int] = []
    now = 0.0

    class SlowClock:
        @staticmethod
        def perf_counter() -> float:
            return now

    compare = searching._hit

    def slow_compare(*given: Any) -> Any:
        nonlocal now
        now += 0.1
        at_compare.append(turns)
        return compare(*given)

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await loop_turns()

    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        sent = [(await say(core, "ann", "bob", f"slow {number}")).seq for number in range(10)]
        await search.indexer.catch_up()
        monkeypatch.setattr(searching, "time", SlowClock)
        monkeypatch.setattr(searching, "_hit", slow_compare)
        other = asyncio.create_task(other_work())
        found: list[int] = []
        cursor: str | None = None
        pages = 0
        while cursor != "":
            page = await search.searching.search("bob", parse_question("slow"), SearchFilter(), None, 100, cursor)
            found += [hit.message.seq for hit in page.hits]
            cursor, pages = page.next_cursor, pages + 1
        other.cancel()
        assert found == sent[::-1]
        assert pages >= 3  # three texts are over the time of one request
        assert len(set(at_compare)) == len(at_compare)


async def test_filters_choose_by_sender_type_and_time(core_url: str) -> None:
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        first = await say(core, "ann", "bob", "a plan")
        second = await say(core, "bob", "ann", "another plan")
        third = await say(core, "ann", "bob", {"url": "https://x.example/y", "name": "plan.pdf"}, msg_type=5)
        await search.indexer.catch_up()

        async def seqs(**wanted: Any) -> list[int]:
            return [one.seq for one in await search.find("bob", "plan", **wanted)]

        assert await seqs() == [third.seq, second.seq, first.seq]
        assert await seqs(sender_id="ann") == [third.seq, first.seq]
        assert await seqs(msg_type=5) == [third.seq]
        assert await seqs(after=second.send_at) == [third.seq, second.seq]
        assert await seqs(before=second.send_at) == [first.seq]
        assert await seqs(sender_id="ann", before=third.send_at) == [first.seq]


async def test_an_edit_is_found_by_its_new_text_and_by_the_old_one_where_that_is_seen(core_url: str) -> None:
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        group_id, _ = await found_group(core, "ann", "bob", "cid")
        message = await say(core, "ann", group_id, "the old text")
        await search.indexer.catch_up()
        await core.groups.leave("bob", group_id=group_id)
        await core.changes.edit("ann", message.server_msg_id, "the new words", "edit1")
        for _ in ("from the journal", "by a rebuild"):
            await search.indexer.catch_up()
            for user in ("ann", "cid"):
                assert await search.texts(user, "new words") == ["the new words"]
                assert await search.texts(user, "old text") == []
            assert await search.texts("bob", "old text") == ["the old text"]
            assert await search.texts("bob", "new") == []
            await search.index.begin(await search.store.now())
            search.indexer.state = None
        await search.indexer.catch_up()
        await core.conversations.recall("ann", message.server_msg_id)
        await search.indexer.catch_up()
        assert (await search.index.state()).entries == 0


async def test_merged_forwards_are_found_by_what_they_hold(core_url: str) -> None:
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        first = await say(core, "ann", "bob", "pineapple on pizza")
        second = await say(core, "bob", "ann", "never ever")
        ids = [first.server_msg_id, second.server_msg_id]
        plan = core.forwarding.plan("fwd1", ids, [ForwardTarget("cid", None)], merge=True)
        await core.forwarding.forward("ann", plan)
        await search.indexer.catch_up()
        (found,) = await search.find("cid", "pineapple never")
        assert found.msg_type == 8


async def test_an_index_begun_anew_takes_all_messages_and_goes_on_where_it_was_stopped(core_url: str) -> None:
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        search.index.batch = 10
        for number in range(35):
            await say(core, "ann", "bob", f"word{number % 7} text")
        await search.indexer.step()  # begins, and takes the newest
        state = await search.index.state()
        assert state.below > 0
        later = search.new_indexer()  # after a kill: nothing is remembered
        await say(core, "ann", "bob", "word0 live")
        await later.catch_up()
        state = await search.index.state()
        assert (state.below, state.entries) == (0, 36)
        assert len(await search.find("bob", "word0", limit=4)) == 6
        await later.catch_up()  # again: nothing changes
        assert (await search.index.state()).entries == 36


async def test_an_index_behind_the_retention_or_of_another_database_is_built_anew(core_url: str) -> None:
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        for number in range(5):
            await say(core, "ann", "bob", f"hello {number}")
        await search.indexer.catch_up()
        await say(core, "ann", "bob", "hello late")
        for number in range(3):
            await say(core, "ann", "bob", f"hello {number}")
        while await core.store.journal.trim(-60_000):
            pass
        await search.indexer.catch_up()
        assert len(await search.find("bob", "hello")) == 9
        assert search.indexer.rebuilds == 2
        state = await search.index.state()
        ahead = Place(10_000, 0)
        await search.index.apply(state.version, IndexStep([], [], ahead, 0))
        again = search.new_indexer()
        await again.catch_up()
        assert (again.rebuilds, len(await search.find("bob", "hello"))) == (1, 9)


async def test_a_writer_with_an_outdated_state_changes_nothing(core_url: str) -> None:
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        await say(core, "ann", "bob", "hello")
        await search.indexer.catch_up()
        state = await search.index.state()
        other = search.new_indexer()
        await say(core, "ann", "bob", "hello again")
        await other.catch_up()
        assert await search.index.apply(state.version, IndexStep([], [], Place(0, 0), 0)) is None
        await search.indexer.catch_up()
        assert len(await search.find("bob", "hello")) == 2


async def test_media_lists_are_the_same_with_and_without_the_index(core_url: str) -> None:
    async with open_test_core(core_url, USERS) as core, open_search(core) as search:
        name = single_conversation_id("ann", "bob")
        media = {"url": "https://files.example/x"}
        for _ in range(3):
            for msg_type in (2, 3, 4, 5):
                await say(core, "ann", "bob", media, msg_type=msg_type)
            await say(core, "ann", "bob", "see https://example.com")
            await say(core, "ann", "bob", "no link")
        recalled = await say(core, "ann", "bob", media, msg_type=2)
        await core.conversations.recall("ann", recalled.server_msg_id)
        await search.indexer.catch_up()
        for kind, seqs in (
            (MediaKind.PHOTO, [13, 7, 1]),
            (MediaKind.VIDEO, [14, 8, 2]),
            (MediaKind.VOICE, [15, 9, 3]),
            (MediaKind.FILE, [16, 10, 4]),
            (MediaKind.LINK, [17, 11, 5]),
        ):
            for is_indexed in (True, False):
                first = await search.searching.media("bob", name, kind, None, 2, is_indexed)
                found = [one.seq for one in first.messages]
                assert first.has_more
                before, has_more = first.next_seq, first.has_more
                while has_more:
                    page = await search.searching.media("bob", name, kind, before, 2, is_indexed)
                    found += [one.seq for one in page.messages]
                    before, has_more = page.next_seq, page.has_more
                assert found == seqs, (kind, is_indexed)
