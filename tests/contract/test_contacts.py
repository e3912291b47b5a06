"""Contacts: requests, decisions, crossing requests, remarks, the rule that only contacts may write, privacy."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.api import Api, open_api, send
from harness.core import look, say
from nexo.core import events
from nexo.core.journal import ContactFact
from nexo.ids import CANARY_IDS
from nexo.store.check import check

KINDS = ("requested", "accepted", "removed")
PEOPLE = ("ann", "bob", "cat", "dan")


async def ask(api: Api, user: str, other: str, message: str = "") -> str:
    return str((await api.post(user, "/contact/request", user_id=other, message=message)).data["status"])


async def befriend(api: Api, one: str, other: str) -> None:
    assert await ask(api, one, other) == "pending"
    assert (await api.post(other, "/contact/decide", user_id=one, accept=True)).data["status"] == "accepted"


async def contacts(api: Api, user: str) -> list[str]:
    return [one["user_id"] for one in (await api.get(user, "/contact/list")).data["contacts"]]


async def requests(api: Api, user: str, **query: Any) -> list[tuple[str, str]]:
    found = (await api.get(user, "/contact/requests", **query)).data["requests"]
    return [(one["user_id"], one["message"]) for one in found]


def pushed(api: Api) -> list[tuple[str, events.Event]]:
    return [what for name, what in api.publisher.take() if name == "user_event"]


async def journal_types(api: Api) -> list[tuple[str, Any]]:
    store = api.core.store.journal
    page = await store.page(await store.place_of("begin"), 256, {f"contact.{kind}" for kind in KINDS})
    facts = [(entry.type, entry.data) for entry in page.entries]
    return [(kind, (fact.user_id, fact.contact_id)) for kind, fact in facts if isinstance(fact, ContactFact)]


async def assert_sound(api: Api) -> None:
    assert (await check(api.core.store.url)).findings == []


async def test_a_request_is_pushed_listed_and_decided_once(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        asked = (await api.post("ann", "/contact/request", user_id="bob", message="it is me")).data
        assert asked["status"] == "pending"
        [(receiver, frame)] = pushed(api)
        assert receiver == "bob"
        assert isinstance(frame, events.ContactRequested)
        assert (str(frame.request_id), frame.user_id, frame.message) == (asked["request_id"], "ann", "it is me")
        assert await requests(api, "bob") == [("ann", "it is me")]
        assert await requests(api, "ann") == []
        assert await requests(api, "ann", sent=True) == [("bob", "it is me")]
        again = (await api.post("ann", "/contact/request", user_id="bob", message="once more")).data
        assert again == asked
        assert pushed(api) == []
        assert (await api.post("ann", "/contact/decide", user_id="bob", accept=True)).error == (
            "contact_request_not_found"
        )
        decided = await api.post("bob", "/contact/decide", user_id="ann", accept=True)
        assert decided.data == {"status": "accepted", "request_id": asked["request_id"]}
        [(receiver, answer)] = pushed(api)
        assert isinstance(answer, events.ContactDecided)
        assert (receiver, answer.request_id, answer.user_id, answer.accepted) == ("ann", frame.request_id, "bob", True)
        assert await requests(api, "bob") == []
        assert (await contacts(api, "ann"), await contacts(api, "bob")) == (["bob"], ["ann"])
        assert await ask(api, "ann", "bob") == "accepted"
        assert (await api.post("bob", "/contact/decide", user_id="ann", accept=False)).error == (
            "contact_request_not_found"
        )
        await assert_sound(api)


async def test_a_refused_request_leaves_no_contact_and_may_be_made_again(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        await ask(api, "ann", "bob")
        assert (await api.post("bob", "/contact/decide", user_id="ann", accept=False)).data["status"] == "refused"
        assert [frame.accepted for _, frame in pushed(api) if isinstance(frame, events.ContactDecided)] == [False]
        assert (await contacts(api, "ann"), await requests(api, "bob")) == ([], [])
        assert await ask(api, "ann", "bob", "please") == "pending"
        assert await journal_types(api) == [
            ("contact.requested", ("ann", "bob")),
            ("contact.requested", ("ann", "bob")),
        ]


async def test_a_contact_ends_for_both_and_has_a_remark_for_each(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        await befriend(api, "ann", "bob")
        shown = (await api.post("ann", "/contact/remark", user_id="bob", remark="Bobby")).data
        assert (shown["user_id"], shown["nickname"], shown["remark"]) == ("bob", "Bob", "Bobby")
        assert [one["remark"] for one in (await api.get("bob", "/contact/list")).data["contacts"]] == [""]
        assert (await api.post("ann", "/contact/remark", user_id="cat", remark="x")).error == "not_contact"
        assert (await api.post("ann", "/contact/remark", user_id="bob", remark="x" * 129)).error == "bad_remark"
        assert (await api.post("bob", "/contact/remove", user_id="ann")).status == 200
        assert (await contacts(api, "ann"), await contacts(api, "bob")) == ([], [])
        assert (await api.post("bob", "/contact/remove", user_id="ann")).error == "not_contact"
        assert [kind for kind, _ in await journal_types(api)] == [
            "contact.requested", "contact.accepted", "contact.removed",
        ]  # fmt: skip
        await assert_sound(api)


async def test_wrong_requests_are_refused_by_name(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        for fields, error in (
            ({"user_id": "ann"}, "bad_user_id"),
            ({"user_id": "no such"}, "bad_user_id"),
            ({"user_id": "nobody"}, "user_not_found"),
            ({"user_id": "nexo.canary"}, "user_not_found"),
            ({}, "missing_user_id"),
            ({"user_id": "bob", "message": "x" * 513}, "bad_message"),
        ):
            assert (await api.post("ann", "/contact/request", **fields)).error == error, fields
        await api.post("bob", "/user/block", user_id="ann")
        assert (await api.post("ann", "/contact/request", user_id="bob")).error == "blocked"
        assert await requests(api, "bob") == []


async def test_blocking_removes_the_open_request_of_the_blocked_user(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        await ask(api, "ann", "bob")
        await api.post("bob", "/user/block", user_id="ann")
        assert await requests(api, "bob") == []
        assert (await api.post("bob", "/contact/decide", user_id="ann", accept=True)).error == (
            "contact_request_not_found"
        )


async def test_crossing_requests_make_one_contact(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        await ask(api, "ann", "bob")
        api.publisher.take()
        assert await ask(api, "bob", "ann") == "accepted"
        frames = pushed(api)
        assert {(who, frame.user_id) for who, frame in frames if isinstance(frame, events.ContactDecided)} == {
            ("ann", "bob"), ("bob", "ann"),
        }  # fmt: skip
        assert (await contacts(api, "ann"), await contacts(api, "bob")) == (["bob"], ["ann"])
        assert (await requests(api, "ann"), await requests(api, "bob")) == ([], [])


async def test_requests_that_cross_at_the_same_moment_make_one_contact_each_time(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **{"contact.requests_per_min": 0, "limits.requests_per_s": 0}) as api:
        for _ in range(8):
            answers = await asyncio.gather(ask(api, "ann", "bob"), ask(api, "bob", "ann"), ask(api, "ann", "bob"))
            assert "accepted" in answers
            assert (await contacts(api, "ann"), await contacts(api, "bob")) == (["bob"], ["ann"])
            assert (await requests(api, "ann"), await requests(api, "bob")) == ([], [])
            await assert_sound(api)
            assert (await api.post("ann", "/contact/remove", user_id="bob")).status == 200
        kinds = [kind for kind, _ in await journal_types(api)]
        assert kinds.count("contact.accepted") == kinds.count("contact.removed") == 8


async def test_numbers_of_contacts_and_requests_are_bounded(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **{"contact.max": 1, "contact.max_requests": 2}) as api:
        await befriend(api, "ann", "bob")
        assert await ask(api, "ann", "cat") == "pending"
        assert (await api.post("cat", "/contact/decide", user_id="ann", accept=True)).error == "too_many_contacts"
        assert await ask(api, "ann", "dan") == "pending"
        await api.accounts.register("correct horse", "eve")
        assert (await api.post("ann", "/contact/request", user_id="eve")).error == "too_many_contacts"


async def test_lists_have_pages(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        for other in ("bob", "cat", "dan"):
            await befriend(api, "ann", other)
        first = (await api.get("ann", "/contact/list", limit=2)).data
        assert ([one["user_id"] for one in first["contacts"]], first["has_more"]) == (["bob", "cat"], True)
        rest = (await api.get("ann", "/contact/list", limit=2, cursor=first["next_cursor"])).data
        assert ([one["user_id"] for one in rest["contacts"]], rest["has_more"]) == (["dan"], False)
        assert rest["next_cursor"] == ""
        assert (await api.get("ann", "/contact/list", cursor="x")).error == "bad_cursor"
        assert (await api.get("ann", "/contact/requests", cursor="x")).error == "bad_cursor"


async def test_only_contacts_may_write_where_the_policy_says_so(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **{"policy.single_chat": "contacts"}) as api:
        refused = {"client_msg_id": "c-1", "recv_id": "bob", "content": "hello"}
        assert (await api.post("ann", "/msg/send", **refused)).error == "not_contact"
        await befriend(api, "ann", "bob")
        assert (await api.post("ann", "/msg/send", **refused)).data["seq"] == 1
        await send(api, "bob", "ann")
        await api.post("ann", "/contact/remove", user_id="bob")
        assert (await api.post("bob", "/msg/send", **{**refused, "recv_id": "ann"})).error == "not_contact"
        # a retry of what was stored is answered from its row
        assert (await api.post("ann", "/msg/send", **refused)).data["seq"] == 1
        group = (await api.post("ann", "/group/create", name="g", member_ids=["bob", "cat"])).data
        await send(api, "cat", group["group_id"])


async def test_the_canary_needs_no_contact(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **{"policy.single_chat": "contacts"}) as api:
        await api.core.store.beat()
        assert (await say(api.core, *CANARY_IDS)).seq == 1


async def test_sends_are_open_by_default(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        assert (await send(api, "ann", "bob"))["seq"] == 1


async def test_a_send_asks_no_table_of_contacts(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **{"policy.single_chat": "contacts"}) as api:
        await befriend(api, "ann", "bob")
        marks = await look(api.core, "SELECT user_id,contact FROM members ORDER BY user_id")
        assert marks == [("ann", 1), ("bob", 1)]
