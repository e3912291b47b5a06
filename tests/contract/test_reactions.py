"""Reactions: their counts, who gave them, the events that announce them, and their limits."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from harness.api import Api, make_group, make_key, open_api, send
from harness.core import look, run
from harness.waiting import until
from nexo.background import Background
from nexo.delivery.reaction_events import ReactionEvents
from nexo.errors import NexoError
from nexo.store.check import check

THUMB, HEART, FLAG = "👍", "❤️", "🇯🇵"


async def react(api: Api, caller: str, message: Any, emoji: str = THUMB, on: bool = True) -> Any:
    return await api.post(caller, "/msg/react", server_msg_id=message["server_msg_id"], emoji=emoji, on=on)


async def shown(api: Api, reader: str, message: Any) -> Any:
    found = await api.get(reader, "/msg/pull", conversation_id=message["conversation_id"], seqs=message["seq"])
    return found.data["messages"][0].get("reactions")


async def announce(api: Api, message: Any) -> Any:
    """Writes the event of a message's reactions, as if a second had passed since the last one."""
    await run(api.core, "UPDATE reaction_changes SET at=at-2000")
    return await api.core.store.message_changes.announce(int(message["server_msg_id"]))


async def events(api: Api, reader: str, message: Any) -> list[Any]:
    found = await api.get(reader, "/msg/pull", conversation_id=message["conversation_id"], begin_seq=1)
    return [one for one in found.data["messages"] if one["msg_type"] == 111]


def one(emoji: str, count: int, mine: bool) -> dict[str, Any]:
    return {"emoji": emoji, "count": count, "mine": mine}


async def test_reactions_are_counted_and_announced_without_moving_anything(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        group = await make_group(api, "ann", "bob", "cy")
        sent = await send(api, "ann", group["group_id"])
        before = (await api.get("cy", "/conversation/list")).data["conversations"]
        assert await shown(api, "ann", sent) is None
        assert (await react(api, "bob", sent)).data["reactions"] == [one(THUMB, 1, True)]
        assert (await react(api, "bob", sent)).data["reactions"] == [one(THUMB, 1, True)]
        await react(api, "cy", sent, HEART)
        assert (await react(api, "cy", sent)).data["reactions"] == [one(THUMB, 2, True), one(HEART, 1, True)]
        assert await shown(api, "ann", sent) == [one(THUMB, 2, False), one(HEART, 1, False)]
        assert await shown(api, "bob", sent) == [one(THUMB, 2, True), one(HEART, 1, False)]
        assert (await announce(api, sent)).published is not None
        assert (await announce(api, sent)).published is None
        (event,) = await events(api, "ann", sent)
        assert (event["seq"], event["content"]["server_msg_id"], event["content"]["seq"]) == (
            3,
            sent["server_msg_id"],
            sent["seq"],
        )
        assert event["content"]["reactions"] == [{"emoji": THUMB, "count": 2}, {"emoji": HEART, "count": 1}]
        added = [(change["user_id"], change["emoji"]) for change in event["content"]["added"]]
        assert sorted(added) == sorted([("bob", THUMB), ("cy", THUMB), ("cy", HEART)])
        assert event["content"]["removed"] == []
        after = (await api.get("cy", "/conversation/list")).data["conversations"]
        assert after[0].pop("last_message")["reactions"] == [one(THUMB, 2, True), one(HEART, 1, True)]
        before[0].pop("last_message")
        assert [{**entry, "head_seq": 2} for entry in after] == before
        assert (await check(api.core.store.url)).findings == []


async def test_a_reaction_that_is_taken_back_before_its_event_is_no_change(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob")
        await react(api, "bob", sent)
        assert (await react(api, "bob", sent, on=False)).data["reactions"] == []
        assert (await announce(api, sent)).published is None
        await react(api, "bob", sent)
        await announce(api, sent)
        await react(api, "bob", sent, on=False)
        await react(api, "bob", sent, on=False)
        await announce(api, sent)
        (_, event) = await events(api, "ann", sent)
        assert event["content"]["reactions"] == []
        assert event["content"]["removed"] == [{"emoji": THUMB, "user_id": "bob"}]
        assert await shown(api, "ann", sent) == []
        assert (await check(api.core.store.url)).findings == []


async def test_events_of_one_message_are_a_second_apart(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob")
        announce_now = api.core.store.message_changes.announce
        await react(api, "bob", sent)
        assert await api.core.store.message_changes.marked(0, 10) == [int(sent["server_msg_id"])]
        assert (await announce_now(int(sent["server_msg_id"]))).published is not None
        await react(api, "ann", sent)
        early = await announce_now(int(sent["server_msg_id"]))
        assert early.published is None
        assert 0 < early.again_ms <= 1000
        assert await api.core.store.message_changes.marked(0, 10) == [int(sent["server_msg_id"])]
        assert await api.core.store.message_changes.marked(60_000, 10) == []


async def test_the_limits_of_reactions(core_url: str) -> None:
    people = [f"u{number}" for number in range(8)]
    async with open_api(core_url, ["ann", *people]) as api:
        group = await make_group(api, "ann", *people)
        sent = await send(api, "ann", group["group_id"])
        emojis = [chr(0x1F600 + number) for number in range(24)]
        for number, emoji in enumerate(emojis[:20]):
            assert (await react(api, people[number // 3], sent, emoji)).status == 200
        assert (await react(api, people[0], sent, emojis[19])).error == "too_many_reactions"
        assert (await react(api, people[7], sent, emojis[20])).error == "too_many_reactions"
        assert (await react(api, people[7], sent, emojis[0])).status == 200
        for bad in ("a", "ab", "👍👍", "👍 ", "1", "é", "🇯", "👨‍", "😀" * 9, "‍"):
            assert (await react(api, "ann", sent, bad)).error == "bad_emoji", bad
        assert (await react(api, "ann", sent, "")).error == "missing_emoji"
        assert (await api.post("ann", "/msg/react", server_msg_id=sent["server_msg_id"])).error == "missing_emoji"


async def test_only_members_react_and_only_to_messages(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy", "dee"]) as api:
        group = await make_group(api, "ann", "bob", "cy")
        sent = await send(api, "ann", group["group_id"])
        assert (await react(api, "dee", sent)).error == "message_not_found"
        assert (await react(api, "ann", {"server_msg_id": "5"})).error == "message_not_found"
        await react(api, "cy", sent)
        await announce(api, sent)
        await api.post("cy", "/group/quit", group_id=group["group_id"])
        assert (await react(api, "cy", sent, HEART)).error == "member_not_active"
        await react(api, "bob", sent)
        await react(api, "bob", sent, FLAG)
        assert await shown(api, "cy", sent) == [one(THUMB, 1, True)]
        assert await shown(api, "ann", sent) == [one(THUMB, 2, False), one(FLAG, 1, False)]
        await announce(api, sent)
        assert await shown(api, "cy", sent) == [one(THUMB, 1, True)]
        given = (await api.get("cy", "/msg/reactions", server_msg_id=sent["server_msg_id"])).data["reactions"]
        assert [(each["user_id"], each["emoji"]) for each in given] == [("cy", THUMB)]
        await api.post("ann", "/group/invite", group_id=group["group_id"], user_ids=["dee"])
        await react(api, "ann", sent, HEART)
        await announce(api, sent)
        (bare,) = await events(api, "dee", sent)
        assert set(bare["content"]) == {"server_msg_id", "seq"}
        assert (await react(api, "ann", bare)).error == "message_not_found"
        single = await send(api, "ann", "bob")
        await api.post("ann", "/user/block", user_id="bob")
        assert (await react(api, "bob", single)).error == "blocked"


async def test_who_reacted_is_listed_in_pages(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        group = await make_group(api, "ann", "bob", "cy")
        sent = await send(api, "ann", group["group_id"])
        for user_id in ("ann", "bob", "cy"):
            await react(api, user_id, sent)
        await react(api, "bob", sent, HEART)
        seen: list[tuple[str, str]] = []
        cursor: dict[str, str] = {}
        while True:
            page = (await api.get("cy", "/msg/reactions", server_msg_id=sent["server_msg_id"], limit=3, **cursor)).data
            assert all(set(each) == {"emoji", "user_id", "at"} for each in page["reactions"])
            seen += [(each["user_id"], each["emoji"]) for each in page["reactions"]]
            if not page["has_more"]:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert sorted(seen) == sorted([("ann", THUMB), ("bob", HEART), ("bob", THUMB), ("cy", THUMB)])


async def test_a_recall_takes_all_reactions_with_it(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        key = await make_key(api, "events")
        for number in range(6):
            sent = await send(api, "ann", "bob", f"number {number}")
            await react(api, "bob", sent, HEART)
            await announce(api, sent)
            reacted, _ = await asyncio.gather(
                react(api, "bob", sent), api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"])
            )
            assert reacted.status == 200 or reacted.error == "message_not_found"
            assert await shown(api, "bob", sent) is None
            assert (await announce(api, sent)).published is None
            assert (await react(api, "bob", sent)).error == "message_not_found"
        for table in ("reactions", "reaction_counts", "reaction_marks", "reaction_changes"):
            assert await look(api.core, f"SELECT COUNT(*) FROM {table}") == [(0,)]
        page = await api.get(key, "/server/events", cursor="begin", types="message.reactions")
        assert {tuple(each["data"]["reactions"]) for each in page.data["events"]} == {()}
        assert HEART not in str([each["content"] for each in await events(api, "bob", sent)])
        assert (await check(api.core.store.url)).findings == []


async def test_the_journal_has_counts_and_changes(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        key = await make_key(api, "events")
        sent = await send(api, "ann", "bob")
        await react(api, "bob", sent)
        await announce(api, sent)
        (entry,) = (await api.get(key, "/server/events", cursor="begin", types="message.reactions")).data["events"]
        assert entry["conversation_id"] == sent["conversation_id"]
        assert entry["data"] == {
            "server_msg_id": sent["server_msg_id"],
            "conversation_id": sent["conversation_id"],
            "seq": sent["seq"],
            "reactions": [{"emoji": THUMB, "count": 1}],
            "added": [{"emoji": THUMB, "user_id": "bob"}],
            "removed": [],
        }


async def test_an_event_of_many_changes_names_none_of_them(core_url: str) -> None:
    people = [f"u{number}" for number in range(101)]
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob")
        message_id = int(sent["server_msg_id"])
        await react(api, "bob", sent)
        for user_id in people:
            await run(
                api.core,
                "INSERT INTO reactions (server_msg_id,user_id,emoji) VALUES (?,?,?)",
                message_id,
                user_id,
                THUMB,
            )
            await run(
                api.core,
                "INSERT INTO reaction_marks (server_msg_id,user_id,emoji,is_on) VALUES (?,?,?,1)",
                message_id,
                user_id,
                THUMB,
            )
        await run(api.core, "UPDATE reaction_counts SET counted=counted+101")
        await announce(api, sent)
        (event,) = await events(api, "ann", sent)
        assert set(event["content"]) == {"server_msg_id", "seq", "reactions"}
        assert event["content"]["reactions"] == [{"emoji": THUMB, "count": 102}]


async def test_at_the_limit_two_reactions_at_once_do_not_pass_it(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob")
        answers = await asyncio.gather(*(react(api, "bob", sent, chr(0x1F600 + number)) for number in range(6)))
        assert sorted(answer.status for answer in answers) == [200, 200, 200, 409, 409, 409]
        assert (await check(api.core.store.url)).findings == []


async def test_marks_that_an_instance_left_behind_are_announced_by_another(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob")
        await react(api, "bob", sent)
        await run(api.core, "UPDATE reaction_marks SET at=at-60000")
        background = Background()
        ReactionEvents(api.core.store.message_changes).start(background)
        try:
            await until(lambda: events(api, "ann", sent))
        finally:
            await background.stop()
        (event,) = await events(api, "ann", sent)
        assert event["content"]["added"] == [{"emoji": THUMB, "user_id": "bob"}]


async def test_a_reaction_to_a_message_of_another_server_is_unknown(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        with pytest.raises(NexoError, match="message_not_found"):
            await api.core.changes.react("ann", 12345, THUMB, True)


async def test_reactions_at_once_are_few_transactions_with_an_answer_each(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [f"u{number:02}" for number in range(60)]
    async with open_api(core_url, ["ann", "eve", *people]) as api:
        group = await make_group(api, "ann", *people)
        sent = await send(api, "ann", group["group_id"])
        other = await send(api, "ann", people[0])
        engine, written = api.core.store.database.engine, []
        write_once = engine.write_once

        async def counted(*args: Any, **options: Any) -> Any:
            written.append(1)
            return await write_once(*args, **options)

        monkeypatch.setattr(engine, "write_once", counted)
        react_to, message_id = api.core.changes.react, int(sent["server_msg_id"])
        asked = [react_to(user_id, message_id, THUMB, True) for user_id in people]
        asked += [react_to("eve", message_id, THUMB, True), react_to("ann", 12345, THUMB, True)]
        asked.append(react_to(people[0], int(other["server_msg_id"]), HEART, True))
        results: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
        *answers, stranger, unknown, beside = results
        assert [str(error).partition(":")[0] for error in (stranger, unknown)] == ["message_not_found"] * 2
        assert [reaction.count for answer in answers for reaction in answer.reactions] == [*range(1, 61)]
        assert [reaction.emoji for reaction in beside.reactions] == [HEART]
        assert len(written) <= 3
        monkeypatch.undo()
        assert await shown(api, "ann", sent) == [one(THUMB, 60, False)]
        assert (await check(api.core.store.url)).findings == []


@pytest.mark.parametrize("seed", range(3))
async def test_a_batch_of_reactions_is_the_same_as_one_after_the_other(core_url: str, seed: int) -> None:
    people = ["ann", "bob", "cy"]
    chosen = random.Random(seed)
    async with open_api(core_url, people) as api:
        messages = [await send(api, "ann", "bob"), await send(api, "bob", "cy")]
        given: dict[tuple[str, str], set[str]] = {}
        for _ in range(4):
            wanted = []
            for _ in range(40):
                number = chosen.randrange(2)
                user_id = chosen.choice((("ann", "bob"), ("bob", "cy"))[number])
                wanted.append(
                    (user_id, messages[number]["server_msg_id"], chosen.choice("😀😁😂😃"), chosen.random() < 0.6)
                )
            asked = [api.core.changes.react(*request) for request in wanted]
            answers: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
            for (user_id, message_id, emoji, on), answer in zip(wanted, answers, strict=True):
                own = given.setdefault((message_id, user_id), set())
                if on and emoji not in own and len(own) == 3:
                    assert "too_many_reactions" in str(answer)
                    continue
                own.add(emoji) if on else own.discard(emoji)
                assert {each.emoji for each in answer.reactions if each.mine} == own
            for message in messages:
                await announce(api, message)
            for (message_id, user_id), own in given.items():
                message = next(each for each in messages if each["server_msg_id"] == message_id)
                found = await shown(api, user_id, message) or []
                assert {each["emoji"] for each in found if each["mine"]} == own
            assert (await check(api.core.store.url)).findings == []
