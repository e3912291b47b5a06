"""`GET /server/events`: a product's backend reads what was committed, by a cursor of its own."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest

from harness.api import Api, make_group, open_api, send
from harness.core import run
from harness.waiting import until
from nexo.core.journal import ENTRY_TYPES
from nexo.journal.pollers import Pollers

PEOPLE = ("ann", "bob", "cid")
CHAT = "si_ann:bob"


async def events_key(api: Api) -> str:
    _, text = await api.backend.keys.add("events", ["events"])
    return text


def pollers_of(api: Api) -> Pollers:
    found = api.backend.events
    assert isinstance(found, Pollers)
    return found


async def read_all(api: Api, key: str, cursor: str = "begin", **query: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        page = (await api.get(key, "/server/events", cursor=cursor, **query)).data
        found += page["events"]
        if page["next_cursor"] == cursor:
            return found
        cursor = page["next_cursor"]


async def test_without_a_cursor_a_reader_begins_now(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await events_key(api)
        await send(api, "ann", "bob", "before")
        first = (await api.get(key, "/server/events")).data
        assert first["events"] == []
        await send(api, "ann", "bob", "after")
        page = (await api.get(key, "/server/events", cursor=first["next_cursor"])).data
        assert [event["data"]["content"] for event in page["events"]] == ["after"]


async def test_data_is_exactly_what_the_api_shows(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await events_key(api)
        sent = await send(api, "ann", "bob", "hi", extra={"a": 1})
        group = await make_group(api, "ann", "bob", "cid")
        await api.post("ann", "/group/set_member_role", group_id=group["group_id"], user_id="bob", role="admin")
        await api.post("bob", "/conversation/read", conversation_id=CHAT, seq=1)
        recalled = await send(api, "ann", "bob", "wrong")
        await api.post("ann", "/msg/recall", server_msg_id=recalled["server_msg_id"])
        found = await read_all(api, key)
        by_type = {event["type"]: event for event in found}
        pulled = (await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=1)).data["messages"]
        saved = [event for event in found if event["type"] == "message.saved"]
        assert [event["data"] for event in saved] == pulled[:2]
        assert saved[1]["data"]["content"] == "", "it was recalled since"
        assert (saved[0]["conversation_id"], saved[0]["user_id"]) == (CHAT, "ann")
        assert saved[0]["data"]["server_msg_id"] == sent["server_msg_id"]
        info = (await api.get("ann", "/group/info", group_id=group["group_id"])).data
        assert by_type["group.created"]["data"] == info
        members = (await api.get("ann", "/group/members", group_id=group["group_id"])).data["members"]
        bob = next(one for one in members if one["user_id"] == "bob")
        assert by_type["member.role"]["data"] == {**bob, "group_id": group["group_id"]}
        user = next(event for event in found if event["type"] == "user.created" and event["user_id"] == "ann")
        shown = (await api.get("bob", "/user/info", user_id="ann")).data
        assert shown.pop("last_seen_at") > 0, "for who may see it, and no part of an entry"
        assert user["data"] == shown
        assert "conversation_id" not in user
        assert by_type["message.recalled"]["data"] == {
            "server_msg_id": recalled["server_msg_id"], "conversation_id": CHAT, "seq": recalled["seq"], "by": "ann",
        }  # fmt: skip
        assert by_type["conversation.read"]["data"] == {"conversation_id": CHAT, "user_id": "bob", "read_seq": 1}
        assert len({event["event_id"] for event in found}) == len(found)
        assert {event["type"] for event in found} <= set(ENTRY_TYPES)


async def test_types_choose_and_pages_follow_one_another(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await events_key(api)
        for number in range(7):
            await send(api, "ann", "bob", str(number))
        await make_group(api, "ann", "bob", "cid")
        found = await read_all(api, key, types="message.saved,group.created", limit=2)
        assert [event["type"] for event in found] == ["message.saved"] * 7 + ["group.created"]
        assert [event["data"]["seq"] for event in found[:7]] == list(range(1, 8))
        both = await read_all(api, key)
        assert [one for one in both if one["type"] in ("message.saved", "group.created")] == found


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"types": "message.saved,message.lost"}, "bad_types"),
        ({"types": ""}, "bad_types"),
        ({"limit": 0}, "bad_limit"),
        ({"limit": 257}, "bad_limit"),
        ({"wait_s": 61}, "bad_duration"),
        ({"wait_s": -1}, "bad_duration"),
        ({"cursor": "x"}, "bad_cursor"),
        ({"cursor": "x" * 600}, "bad_cursor"),
    ],
)
async def test_a_wrong_question_is_refused(core_url: str, query: dict[str, Any], error: str) -> None:
    async with open_api(core_url) as api:
        assert (await api.get(await events_key(api), "/server/events", **query)).error == error


async def test_a_cursor_that_was_trimmed_or_is_of_another_journal_has_expired(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await events_key(api)
        old = (await api.get(key, "/server/events")).data["next_cursor"]
        for number in range(4):
            await send(api, "ann", "bob", str(number))
        new = (await api.get(key, "/server/events")).data["next_cursor"]
        while await api.core.store.journal.trim(-1000):
            pass
        answer = await api.get(key, "/server/events", cursor=old)
        assert (answer.status, answer.error) == (410, "cursor_expired")
        assert len(await read_all(api, key)) == 1, "the newest row is always kept"
        await run(api.core, "DELETE FROM journal")
        assert (await api.get(key, "/server/events", cursor=new)).error == "cursor_expired"


async def test_a_waiting_reader_is_woken_by_the_commit(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, journal__poll_ms=10_000) as api:
        key = await events_key(api)
        cursor = (await api.get(key, "/server/events")).data["next_cursor"]
        asked = asyncio.create_task(api.get(key, "/server/events", cursor=cursor, wait_s=30, types="message.saved"))
        await until(lambda: bool(pollers_of(api)._waiting))
        await api.put("ann", "/user/update", nickname="Ann")  # of another type: it goes on waiting
        await until(lambda: bool(pollers_of(api)._waiting))
        started = time.monotonic()
        await send(api, "ann", "bob", "here")
        page = (await asked).data
        assert [event["data"]["content"] for event in page["events"]] == ["here"]
        assert time.monotonic() - started < 5


async def test_a_commit_of_another_instance_is_found_by_looking(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, journal__poll_ms=50) as api:
        key = await events_key(api)
        asked = asyncio.create_task(api.get(key, "/server/events", wait_s=30))
        await until(lambda: bool(pollers_of(api)._waiting))
        await run(api.core, 'INSERT INTO journal (at,entries) VALUES (5,\'[[2,"ann","updated"]]\')')
        page = (await asked).data
        assert [(event["type"], event["user_id"], event["at"]) for event in page["events"]] == [
            ("user.updated", "ann", 5)
        ]


async def test_after_the_wait_there_is_a_cursor_and_no_event(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await events_key(api)
        started = time.monotonic()
        page = (await api.get(key, "/server/events", wait_s=1)).data
        assert page["events"] == []
        assert 0.9 < time.monotonic() - started < 10
        await send(api, "ann", "bob", "later")
        assert len((await api.get(key, "/server/events", cursor=page["next_cursor"])).data["events"]) == 1


async def test_readers_are_limited_and_those_that_hang_up_make_room(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, journal__pollers_max=2) as api:
        key = await events_key(api)
        waiting = pollers_of(api)._waiting
        address = str(api.http.base_url)
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as gone:
            asked = [asyncio.create_task(gone.get("/server/events", params={"wait_s": 60})) for _ in range(2)]
            await until(lambda: len(waiting) == 2)
            refused = await api.get(key, "/server/events")
            assert (refused.status, refused.error) == (429, "too_many_requests")
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        await until(lambda: not waiting)
        assert (await api.get(key, "/server/events")).status == 200
        values = {sample.name: sample.value for sample in pollers_of(api).samples()}
        assert (values["nexo_event_pollers"], values["nexo_event_pollers_refused_total"]) == (0, 1)


async def test_a_server_that_stops_answers_those_that_wait(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await events_key(api)
        asked = asyncio.create_task(api.get(key, "/server/events", wait_s=60))
        await until(lambda: bool(pollers_of(api)._waiting))
        pollers_of(api).stop()
        assert (await asked).data["events"] == []
