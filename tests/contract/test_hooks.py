"""Webhooks: the journal delivered to a receiver, signed, in order per conversation, at least once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from harness.api import Api, check_tally, open_api, send
from harness.core import look, run
from harness.receiver import Event, Received, Receiver, receiving
from harness.waiting import nothing_for, until
from nexo.api import hooks
from nexo.hooks import delivery, window

PEOPLE = ("ann", "bob", "cid")
CHAT = "si_ann:bob"
FAST = {"hooks__allow_private": True, "journal__takeover_s": 1, "journal__poll_ms": 50}


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses as they are, a tenth as long."""
    for name in ("FIRST_PAUSE_S", "FRESH_PAUSE_S"):
        monkeypatch.setattr(window, name, 0.1)
    monkeypatch.setattr(delivery, "NOTE_FAILING_S", 0.1)


async def events_key(api: Api) -> str:
    _, text = await api.backend.keys.add("events", ["events"])
    return text


async def add_hook(api: Api, receiver: Receiver, **fields: Any) -> str:
    """Returns the secret."""
    hook, secret = await api.backend.hooks.add(
        receiver.url,
        fields.get("types", ["message.saved"]),
        fields.get("conversations", ()),
        fields.get("name", "shop"),
        "test",
    )
    await until(lambda: held_by_one(api, hook.consumer))
    return secret


async def held_by_one(api: Api, consumer: str) -> bool:
    return bool(await look(api.core, "SELECT 1 FROM journal_consumers WHERE name=? AND owner<>''", consumer))


def verified(request: Received, secret: str) -> Any:
    return Webhook(secret).verify(request.body, request.headers)


async def test_what_is_committed_arrives_signed_as_standard_webhooks_say(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        await send(api, "ann", "bob", "before")
        secret = await add_hook(api, receiver)
        sent = await send(api, "ann", "bob", "你好")
        await receiver.until_taken(1)
        request = receiver.requests[0]
        body = verified(request, secret)
        pulled = (await api.get("bob", "/msg/pull", conversation_id=CHAT, begin_seq=2)).data["messages"]
        assert [event["data"] for event in body["events"]] == pulled
        assert (body["events"][0]["type"], body["events"][0]["conversation_id"]) == ("message.saved", CHAT)
        assert body["events"][0]["data"]["server_msg_id"] == sent["server_msg_id"]
        assert request.headers["content-type"] == "application/json"
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(request.body + b" ", request.headers)


async def test_types_and_conversations_choose(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        await add_hook(api, receiver, types=["message.saved", "user.updated"], conversations=["sg_*", "si_bob:*"])
        group = (await api.post("ann", "/group/create", name="g", member_ids=["bob", "cid"])).data
        await send(api, "ann", "bob", "not this")
        await api.put("ann", "/user/update", nickname="nor this")
        await send(api, "bob", "cid", "one")
        await send(api, "ann", group["group_id"], "two")
        await receiver.until_taken(2)
        assert sorted(receiver.contents()) == ["one", "two"]


async def test_a_receiver_that_fails_gets_everything_later_in_order(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        await add_hook(api, receiver)
        failures = 6

        async def fail_first(events: list[Event]) -> int:
            nonlocal failures
            failures -= 1
            return 200 if failures < 0 else 503

        receiver.decide = fail_first
        for number in range(20):
            await send(api, "ann", "bob", (number and f"{number}") or "0")
        await receiver.until_taken(20)
        assert receiver.contents() == [str(number) for number in range(20)]
        assert [one.status for one in receiver.requests][:6] == [503] * 6


async def test_a_repeated_request_has_the_same_id(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        secret = await add_hook(api, receiver)
        answers = iter((500, 200))

        async def once(events: list[Event]) -> int:
            return next(answers)

        receiver.decide = once
        await send(api, "ann", "bob", "hi")
        await receiver.until_taken(1)
        first, second = receiver.requests
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.events[0]["event_id"] == second.events[0]["event_id"]
        verified(second, secret)


async def test_a_conversation_that_is_refused_holds_up_no_other(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        await add_hook(api, receiver)
        heal = asyncio.Event()

        async def refuse_one(events: list[Event]) -> int:
            is_bad = any(event["conversation_id"] == CHAT for event in events)
            return 500 if is_bad and not heal.is_set() else 200

        receiver.decide = refuse_one
        await send(api, "ann", "bob", "bad 1")
        for number in range(10):
            await send(api, "bob", "cid", f"good {number}")
            await send(api, "ann", "bob", f"bad {number + 2}")
        await receiver.until_taken(10)
        assert receiver.contents() == [f"good {number}" for number in range(10)]
        heal.set()
        await receiver.until_taken(21)
        assert receiver.contents()[10:] == [f"bad {number}" for number in range(1, 12)]


async def test_a_slow_answer_delays_only_its_conversation(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        await add_hook(api, receiver)
        answer = asyncio.Event()

        async def wait_with_one(events: list[Event]) -> int:
            if any(event["conversation_id"] == CHAT for event in events):
                await answer.wait()
            return 204

        receiver.decide = wait_with_one
        await send(api, "ann", "bob", "slow")
        await nothing_for(0.1)
        await send(api, "bob", "cid", "quick")
        await receiver.until_taken(1)
        assert receiver.contents() == ["quick"]
        answer.set()
        await receiver.until_taken(2)


async def test_one_webhook_that_hangs_delays_no_other(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as hanging, receiving() as healthy:
        forever = asyncio.Event()

        async def hang(events: list[Event]) -> int:
            await forever.wait()
            return 200

        hanging.decide = hang
        await add_hook(api, hanging, name="hanging")
        await add_hook(api, healthy, name="healthy")
        for number in range(5):
            await send(api, "ann", "bob", str(number))
        await healthy.until_taken(5)
        assert hanging.taken == []
        forever.set()


async def test_after_a_restart_a_webhook_continues_where_it_was(core_url: str) -> None:
    async with receiving() as receiver:
        async with open_api(core_url, PEOPLE, **FAST) as api:
            await add_hook(api, receiver)
            await send(api, "ann", "bob", "one")
            await receiver.until_taken(1)
        async with open_api(core_url, **FAST) as api:
            await api.core.sending.send("ann", client_msg_id="x2", recv_id="bob", content="two")
            await receiver.until_taken(2)
            assert receiver.contents() == ["one", "two"]


async def test_what_was_recalled_while_it_waited_is_blank(core_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "STALE_S", 0.0)
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        await add_hook(api, receiver)
        is_back = asyncio.Event()

        async def be_away(events: list[Event]) -> int:
            return 200 if is_back.is_set() else 500

        receiver.decide = be_away
        sent = await send(api, "ann", "bob", "secret")
        await receiver.until(lambda: len(receiver.requests) > 0)
        await api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"])
        is_back.set()
        await receiver.until_taken(1)
        assert receiver.contents() == [""]


async def test_both_secrets_sign_during_a_rotation_and_then_the_new_one(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        key = await events_key(api)
        old = await add_hook(api, receiver)
        new = (await api.post(key, "/server/hooks/shop/rotate")).data["secret"]
        assert (await api.post(key, "/server/hooks/nemo/rotate")).error == "hook_not_found"
        await until(lambda: is_taken_up(api, 2))
        await send(api, "ann", "bob", "both")
        await receiver.until_taken(1)
        verified(receiver.requests[0], old)
        verified(receiver.requests[0], new)
        newest = (await api.post(key, "/server/hooks/shop/rotate")).data["secret"]
        await until(lambda: is_taken_up(api, 3))
        await send(api, "ann", "bob", "again")
        await receiver.until_taken(2)
        verified(receiver.requests[-1], newest)
        verified(receiver.requests[-1], new)
        with pytest.raises(WebhookVerificationError):
            verified(receiver.requests[-1], old)


async def is_taken_up(api: Api, epoch: int) -> bool:
    """Returns whether a delivery has begun after so many changes."""
    statement = "SELECT 1 FROM journal_consumers WHERE name LIKE 'hook.%' AND owner<>'' AND epoch>=?"
    return bool(await look(api.core, statement, epoch))


async def test_paused_resumed_replayed_and_removed(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        key = await events_key(api)
        begin = (await api.get(key, "/server/events")).data["next_cursor"]
        added = (await api.post(key, "/server/hooks", url=receiver.url, types=["message.saved"], name="shop")).data
        hook_id = added["hook_id"]
        assert added["secret"].startswith("whsec_")
        assert (added["status"], added["name"]) == ("active", "shop")
        await send(api, "ann", "bob", "one")
        await receiver.until_taken(1)
        assert (await api.post(key, f"/server/hooks/{hook_id}/pause")).data["status"] == "paused"
        await until(lambda: not_held(api, hook_id))
        await send(api, "ann", "bob", "two")
        await nothing_for(0.2)
        assert receiver.contents() == ["one"]
        assert (await api.post(key, "/server/hooks/shop/resume")).data["status"] == "active"
        await receiver.until_taken(2)
        assert receiver.contents() == ["one", "two"]
        await api.post(key, "/server/hooks/shop/replay", **{"from": begin})
        await receiver.until_taken(4)
        assert receiver.contents() == ["one", "two", "one", "two"]
        await api.post(key, "/server/hooks/shop/replay", **{"from": "1h"})
        await receiver.until_taken(6)
        for start, error in (("x", "bad_cursor"), ("2026-99-99", "bad_cursor"), ("", "missing_cursor")):
            assert (await api.post(key, "/server/hooks/shop/replay", **{"from": start})).error == error
        listed = (await api.get(key, "/server/hooks")).data["hooks"]
        assert [(one["name"], one["hook_id"], one["status"]) for one in listed] == [("shop", hook_id, "active")]
        assert added["secret"] not in str(listed)
        assert (await api.request(key, "DELETE", "/server/hooks/shop")).status == 200
        assert (await api.get(key, "/server/hooks")).data["hooks"] == []
        assert await look(api.core, "SELECT name FROM journal_consumers WHERE name LIKE 'hook%'") == []
        for act in ("pause", "resume", "test"):
            assert (await api.post(key, f"/server/hooks/shop/{act}")).error == "hook_not_found"
        assert (await api.post(key, "/server/hooks/shop/replay", **{"from": "begin"})).error == "hook_not_found"
        assert (await api.request(key, "DELETE", "/server/hooks/shop")).error == "hook_not_found"
        acts = [row[0] for row in await look(api.core, "SELECT act FROM audit_log ORDER BY id")]
        assert acts == ["hook.add", "hook.pause", "hook.resume", "hook.replay", "hook.replay", "hook.remove"]
        actors = {row[0] for row in await look(api.core, "SELECT actor FROM audit_log")}
        assert actors == {"key:events"}


async def not_held(api: Api, hook_id: str) -> bool:
    return not await held_by_one(api, f"hook.{hook_id}")


async def test_a_replay_from_what_was_trimmed_is_refused(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        key = await events_key(api)
        old = (await api.get(key, "/server/events")).data["next_cursor"]
        await add_hook(api, receiver)
        for _ in range(3):
            await send(api, "ann", "bob")
        while await api.core.store.journal.trim(-1000):
            pass
        assert (await api.post(key, "/server/hooks/shop/replay", **{"from": old})).error == "cursor_expired"
        assert (await api.post(key, "/server/hooks/shop/replay", **{"from": "30d"})).status == 200


async def test_after_hours_of_failures_a_webhook_is_paused_and_reported(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST, hooks__give_up_h=1) as api, receiving() as receiver:
        key = await events_key(api)

        async def refuse(events: list[Event]) -> int:
            return 500

        receiver.decide, receiver.body = refuse, b"no room"
        await add_hook(api, receiver)
        await send(api, "ann", "bob", "one")
        await until(lambda: is_failing(api))
        await run(api.core, "UPDATE hooks SET revision=10,failing_since=1")  # seen by the next delivery
        await until(lambda: is_given_up(api))
        (hook,) = (await api.get(key, "/server/hooks")).data["hooks"]
        assert "failing for 1 h" in hook["reason"]
        assert "answered 500: no room" in hook["reason"]
        receiver.decide = take
        await api.post(key, "/server/hooks/shop/resume")
        await receiver.until_taken(1)
        assert receiver.contents() == ["one"]


async def take(events: list[Event]) -> int:
    return 200


async def is_failing(api: Api) -> bool:
    return bool(await look(api.core, "SELECT 1 FROM hooks WHERE failing_since>1"))


async def is_given_up(api: Api) -> bool:
    return bool(await look(api.core, "SELECT 1 FROM hooks WHERE status=2"))


async def test_a_test_event_shows_the_answer(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST) as api, receiving() as receiver:
        key = await events_key(api)
        secret = await add_hook(api, receiver)
        assert (await api.post(key, "/server/hooks/shop/test")).data["taken"] is True
        assert verified(receiver.requests[0], secret)["events"][0]["type"] == "hook.test"

        async def move(events: list[Event]) -> int:
            return 307

        receiver.decide, receiver.headers = move, [(b"location", receiver.url.encode())]
        moved = (await api.post(key, "/server/hooks/shop/test")).data
        assert (moved["taken"], moved["status"]) == (False, 307)
        assert len(receiver.requests) == 2, "a redirect is not followed"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/hook",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://192.168.1.1:8080/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[fd00::1]/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "ftp://example.com/",
        "http:///nothing",
        "http://user:password@example.com/",
        "http://example.com/#part",
        "http://example.com:0/",
        "http://exam ple.com/",
        "x",
        "http://example.com/" + "x" * 2048,
    ],
)
async def test_an_address_that_is_not_allowed_is_refused_at_once(url: str, tmp_path: Any) -> None:
    async with open_api(f"sqlite:///{tmp_path}/nexo.db") as api:
        assert (await api.post(await events_key(api), "/server/hooks", url=url)).error == "bad_url"


async def test_a_name_that_resolves_to_a_private_address_is_refused_at_every_attempt(core_url: str) -> None:
    settings = FAST | {"hooks__allow_private": False}
    async with open_api(core_url, PEOPLE, **settings) as api, receiving() as receiver:
        key = await events_key(api)
        url = receiver.url.replace("127.0.0.1", "localhost")
        await api.post(key, "/server/hooks", url=url, name="inside")
        trial = (await api.post(key, "/server/hooks/inside/test")).data
        assert (trial["taken"], trial["status"]) == (False, 0)
        assert "is not a global address" in trial["detail"]
        await send(api, "ann", "bob", "one")
        await until(lambda: is_failing(api))
        assert receiver.requests == []


async def test_wrong_webhooks_are_refused(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, **FAST, hooks__max_hooks=1) as api:
        key = await events_key(api)
        for fields, error in (
            ({"url": "http://127.0.0.1/", "types": ["message.lost"]}, "bad_types"),
            ({"url": "http://127.0.0.1/", "conversations": ["a b"]}, "bad_conversation_id"),
            ({"url": "http://127.0.0.1/", "name": "a b"}, "bad_name"),
            ({}, "missing_url"),
        ):
            assert (await api.post(key, "/server/hooks", **fields)).error == error
        assert (await api.post(key, "/server/hooks", url="http://127.0.0.1/", name="one")).status == 200
        assert (await api.post(key, "/server/hooks", url="http://127.0.0.1/")).error == "too_many_hooks"
    async with open_api(core_url, **FAST) as api:
        again = (await api.backend.keys.add("again", ["events"]))[1]
        assert (await api.post(again, "/server/hooks", url="http://127.0.0.1/", name="one")).error == "bad_name"


# The last test of this file: what all of them together have met.
def test_every_route_of_webhooks_was_called_and_every_error_met(request: pytest.FixtureRequest) -> None:
    check_tally(request, hooks)
