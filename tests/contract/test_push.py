"""Push: what members without a connection are notified of, at most once per conversation at a time, and of nothing
that they have read, muted or blocked, or that was recalled."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from standardwebhooks import Webhook

from harness.api import Api, make_group, open_api, send
from harness.core import look
from harness.push_services import browser_subscription, push_service
from harness.receiver import Event, Receiver, receiving
from harness.waiting import until
from nexo.core.webhook_signature import new_secret
from nexo.ids import now_ms
from nexo.ports.ringing import Ring
from nexo.push import sender
from nexo.store.push import notes
from nexo.store.tracing import SqlTracing

PEOPLE = ("ann", "bob", "cid")
CHAT = "si_ann:bob"
FAST = {"journal__takeover_s": 1, "journal__poll_ms": 50, "push__wait_ms": 100, "limits__sends_per_s": 0}


async def register(api: Api, user: str, token: str = "", **fields: Any) -> None:
    body = {"kind": "hook", "token": token or f"token of {user}", "device_id": f"{user}'s phone", **fields}
    answer = await api.post(user, "/push/register", **body)
    assert answer.data == {"kind": body["kind"], "device_id": body["device_id"], "lang": body.get("lang", "en")[:2]}


def open_push(core_url: str, receiver: Receiver, **settings: Any) -> Any:
    return open_api(core_url, PEOPLE, **{**FAST, "push__hook__url": receiver.url, **settings})


async def got(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    await receiver.until_taken(count)
    return receiver.taken


async def test_a_member_without_a_connection_is_notified_with_exact_numbers(core_url: str) -> None:
    async with receiving() as receiver, open_push(core_url, receiver) as api:
        await register(api, "bob")
        await send(api, "cid", "bob", "earlier")
        (earlier,) = await got(receiver, 1)
        assert (earlier["sender_id"], earlier["unread"], earlier["badge"]) == ("cid", 1, 1)
        sent = await send(api, "ann", "bob", "See you\nat 8?")
        _, made = await got(receiver, 2)
        assert made.pop("ts") > 0
        assert made == {
            "kind": "message",
            "tag": made["tag"],
            "title": "Ann",
            "body": "See you at 8?",
            "conversation_id": CHAT,
            "server_msg_id": sent["server_msg_id"],
            "sender_id": "ann",
            "unread": 1,
            "badge": 2,
            "lang": "en",
            "user_id": "bob",
            "device_id": "bob's phone",
            "token": "token of bob",
            "ttl_s": 24 * 3600,
            "urgent": True,
        }
        assert made["tag"] != earlier["tag"]

        async def answered() -> bool:
            found = await SqlTracing(api.core.store.database).trace(int(sent["server_msg_id"]), "bob")
            return [one[:5] for one in found.offline] == [("bob", "hook", "bob's phone", "sent", "200")]

        await until(answered)


async def read_all(api: Api, user: str, conversation_id: str = CHAT) -> None:
    heads = (await api.get(user, "/conversation/newest_seq", conversation_ids=conversation_id)).data["conversations"]
    await api.post(user, "/conversation/read", conversation_id=conversation_id, seq=heads[0]["head_seq"])


async def test_nothing_is_pushed_that_was_read_muted_blocked_recalled_or_deleted_meanwhile(core_url: str) -> None:
    async with receiving() as receiver, open_push(core_url, receiver, push__wait_ms=800) as api:
        await api.sign_up("dan", "eve", "fay", "gus")
        await register(api, "bob")
        group = await make_group(api, "ann", "bob", "cid")
        muted = f"sg_{group['group_id']}"
        await send(api, "ann", "bob", "read")
        recalled = await send(api, "cid", "bob", "recalled")
        await send(api, "dan", "bob", "blocked")
        deleted = await send(api, "eve", "bob", "deleted")
        await send(api, "fay", "bob", "muted")
        await send(api, "ann", group["group_id"], "not for bob")
        await read_all(api, "bob")
        await api.post("cid", "/msg/recall", server_msg_id=recalled["server_msg_id"])
        await api.post("bob", "/user/block", user_id="dan")
        await api.post("bob", "/msg/delete", server_msg_ids=[deleted["server_msg_id"]])
        await api.put("bob", "/conversation/update", conversation_id="si_bob:fay", recv_msg_opt=1)
        await api.put("bob", "/conversation/update", conversation_id=muted, recv_msg_opt=2)
        await send(api, "gus", "bob", "last")
        assert [one["body"] for one in await got(receiver, 1)] == ["last"]
        named = await send(api, "ann", group["group_id"], "@bob look", mentions=["bob"])
        await send(api, "ann", group["group_id"], "nothing for bob again")
        await receiver.until_taken(2)
        mention = receiver.taken[1]
        assert (mention["server_msg_id"], mention["mention"]) == (named["server_msg_id"], True)
        assert (mention["title"], mention["body"], mention["unread"]) == ("team", "Ann: @bob look", 3)

        async def nothing_waits() -> bool:
            return await look(api.core, "SELECT COUNT(*) FROM push_notes WHERE state<>0") == [(0,)]

        await until(nothing_waits)
        assert len(receiver.taken) == 2


async def test_a_thousand_messages_are_one_notification_with_their_number(core_url: str) -> None:
    wait_ms = 1500
    async with receiving() as receiver, open_push(core_url, receiver, push__wait_ms=wait_ms) as api:
        await register(api, "bob")
        sends = [
            api.core.sending.send("ann", client_msg_id=f"t{n}", recv_id="bob", content=str(n)) for n in range(1000)
        ]
        began = time.monotonic()
        await asyncio.gather(*sends[:500])
        await until(lambda: api.push._planner.waiting, "the journal is read in between")
        await asyncio.gather(*sends[500:])
        took_ms = (time.monotonic() - began) * 1000
        await send(api, "cid", "bob", "later than all of them")
        await receiver.until(lambda: any(one["sender_id"] == "cid" for one in receiver.taken))
        await receiver.until(lambda: any(one["unread"] == 1000 for one in receiver.taken))
        made = [one for one in receiver.taken if one["sender_id"] == "ann"]
        assert len(made) <= 1 + took_ms // wait_ms, "more than one in the time that connections have"
        assert len({one["tag"] for one in made}) == 1
        assert (made[-1]["body"], made[-1]["unread"]) == ("999", 1000)
        assert made[-1]["badge"] in (1000, 1001)


async def test_what_is_read_or_recalled_disappears_from_the_devices_that_show_it(core_url: str) -> None:
    async with receiving() as receiver, open_push(core_url, receiver, push__hook__secret=new_secret()) as api:
        await register(api, "bob")
        await send(api, "ann", "bob", "one")
        await receiver.until_taken(1)
        second = await send(api, "ann", "bob", "two")
        await receiver.until_taken(2)
        await api.post("ann", "/msg/recall", server_msg_id=second["server_msg_id"])
        await receiver.until_taken(3)
        replaced = receiver.taken[2]
        assert (replaced["kind"], replaced["body"], replaced["quiet"]) == ("message", "one", True)
        await read_all(api, "bob")
        await receiver.until_taken(4)
        closed = receiver.taken[3]
        assert (closed["kind"], closed["title"], closed["body"]) == ("read", "", "")
        assert (closed["unread"], closed["badge"], closed["urgent"]) == (0, 0, False)
        await send(api, "ann", "bob", "three")
        await receiver.until_taken(5)
        await read_all(api, "bob")
        await receiver.until_taken(6)
        ids = [request.headers["webhook-id"] for request in receiver.requests]
        assert len(set(ids)) == 6, "each is a notification of its own"
        assert len({one["tag"] for one in receiver.taken}) == 1


async def test_a_connection_that_takes_it_is_enough_and_one_that_ends_without_is_not(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "ONLINE_AGAIN_MS", 100)
    async with receiving() as receiver, open_push(core_url, receiver) as api:
        await register(api, "bob")
        await register(api, "cid")
        api.connected.users = {"bob", "cid"}
        await send(api, "ann", "bob", "taken")
        await send(api, "ann", "cid", "not taken")

        async def noted() -> bool:
            return await look(api.core, "SELECT COUNT(*) FROM push_notes") == [(2,)]

        await until(noted)
        await api.core.acknowledging.ack_seq("bob", "delivered", CHAT, 1)

        async def written() -> bool:
            return await look(api.core, "SELECT delivered_seq FROM members WHERE user_id='bob'") == [(1,)]

        await until(written)
        api.connected.users = set()
        (made,) = await got(receiver, 1)
        assert made["body"] == "not taken"


async def test_a_service_that_fails_is_tried_again_and_a_device_it_does_not_know_is_removed(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "PAUSES_S", (0.1,))
    secret = new_secret()
    async with receiving() as receiver, open_push(core_url, receiver, push__hook__secret=secret) as api:
        await register(api, "bob")
        await register(api, "cid")
        answers = iter((503, 429, 500))

        async def decide(events: list[Event]) -> int:
            return 410 if events[0]["user_id"] == "cid" else next(answers, 200)

        receiver.decide = decide
        await send(api, "ann", "bob", "in the end")
        (made,) = await got(receiver, 1)
        assert made["body"] == "in the end"
        assert [one.status for one in receiver.requests] == [503, 429, 500, 200]
        assert len({one.headers["webhook-id"] for one in receiver.requests}) == 1
        for request in receiver.requests:
            Webhook(secret).verify(request.body, request.headers)
        await send(api, "ann", "cid", "nobody there")

        async def removed() -> bool:
            return await look(api.core, "SELECT user_id FROM push_targets") == [("bob",)]

        await until(removed)
        assert len(receiver.taken) == 1


async def test_a_registration_ends_with_its_session_and_moves_with_its_device(core_url: str) -> None:
    async with receiving() as receiver, open_push(core_url, receiver) as api:
        for user in PEOPLE:
            await register(api, user)
        api.tokens["bob again"] = (await api.accounts.login("bob", "correct horse")).access_token
        await register(api, "bob again", "second", device_id="pad")
        await api.post("bob", "/auth/logout")
        await send(api, "ann", "bob", "for the second")
        (made,) = await got(receiver, 1)
        assert (made["token"], made["device_id"]) == ("second", "pad")
        await register(api, "cid", "second", device_id="pad")  # the pad is cid's now
        await send(api, "ann", "bob", "for none")
        await send(api, "ann", "cid", "for cid")
        assert [one["token"] for one in await got(receiver, 2)] == ["second", "second"]
        assert receiver.taken[1]["user_id"] == "cid"
        assert (await api.post("cid", "/push/unregister", device_id="pad")).data == {"removed": 1}
        assert (await api.post("cid", "/push/unregister")).data == {"removed": 0}
        await register(api, "cid", "third")
        await api.backend.accounts.disable("cid", "", "test")
        await register(api, "ann")
        await api.request("ann", "DELETE", "/user", json={"password": "correct horse"})
        assert await look(api.core, "SELECT COUNT(*) FROM push_targets WHERE user_id='ann'") == [(0,)]
        await api.sign_up("dan", "eve")
        await send(api, "dan", "cid", "disabled")
        await register(api, "eve")
        await send(api, "dan", "eve", "last")
        await receiver.until(lambda: receiver.taken[-1]["user_id"] == "eve")
        assert [one["body"] for one in receiver.taken] == ["for the second", "for cid", "last"]

        async def swept() -> bool:
            await api.core.store.push.sweep(0)
            rows = await look(api.core, "SELECT user_id FROM push_targets ORDER BY user_id")
            return [row[0] for row in rows] == ["eve"]

        await until(swept)


async def test_members_of_a_group_are_notified_page_by_page(core_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MEMBERS_AT_ONCE", 3)
    async with receiving() as receiver, open_push(core_url, receiver, push__content="sender") as api:
        members = [f"m{number}" for number in range(10)]
        await api.sign_up(*members)
        group = await make_group(api, "ann", "bob", "cid", *members)
        for member in members:
            await register(api, member, lang="zh-CN" if member == "m3" else "en")
        await send(api, "ann", group["group_id"], "to all")
        made = {one["user_id"]: one for one in await got(receiver, 10)}
        assert sorted(made) == members
        assert (made["m0"]["title"], made["m0"]["body"]) == ("team", "Ann: New message")
        assert (made["m3"]["body"], made["m3"]["lang"]) == ("Ann: 新消息", "zh")


async def test_what_cannot_be_registered_is_refused(core_url: str) -> None:
    async with receiving() as receiver, open_push(core_url, receiver) as api:
        config = (await api.get("bob", "/push/config")).data
        assert config["kinds"] == ["web", "hook"]
        assert len(config["web"]["public_key"]) == 87
        device = {"device_id": "d"}
        for error, body in (
            ("bad_kind", {"kind": "pigeon", "token": "x", **device}),
            ("missing_kind", {"token": "x", **device}),
            ("missing_device_id", {"kind": "hook", "token": "x"}),
            ("bad_device_id", {"kind": "hook", "token": "x", "device_id": ""}),
            ("missing_token", {"kind": "hook", **device}),
            ("bad_token", {"kind": "hook", "token": "", **device}),
            ("missing_subscription", {"kind": "web", **device}),
            ("bad_subscription", {"kind": "web", "subscription": {"endpoint": "http://x"}, **device}),
            ("bad_kind", {"kind": "fcm", "token": "x", **device}),
            ("bad_request", {"kind": "hook", "token": "x", "lang": "x" * 40, **device}),
        ):
            assert (await api.post("bob", "/push/register", **body)).error == error
        for number in range(25):
            await register(api, "bob", f"t{number}")
        assert await look(api.core, "SELECT COUNT(*) FROM push_targets") == [(1,)]  # one of a kind for a session


async def test_a_call_rings_on_registered_devices_and_stops(core_url: str) -> None:
    async with receiving() as receiver, open_push(core_url, receiver) as api:
        assert not await api.push.is_reachable("bob")
        await register(api, "bob", lang="zh")
        assert await api.push.is_reachable("bob")
        call = Ring("42", "video", "ann", CHAT, now_ms() + 30_000)
        api.push.ring(["bob", "cid"], call)
        (rung,) = await got(receiver, 1)
        assert (rung["kind"], rung["title"], rung["body"], rung["ended"]) == ("call", "Ann", "视频来电", False)
        assert (rung["call_id"], rung["call_kind"], rung["sender_id"]) == ("42", "video", "ann")
        assert 0 < rung["ttl_s"] <= 30
        api.push.stop_ringing(["bob"], call)
        await receiver.until_taken(2)
        ended = receiver.taken[1]
        assert (ended["ended"], ended["title"], ended["tag"]) == (True, "", rung["tag"])


async def test_a_time_without_notifications_lets_mentions_through_alone(core_url: str) -> None:
    async with receiving() as receiver, open_push(core_url, receiver, push__content="none") as api:
        await register(api, "bob")
        group = await make_group(api, "ann", "bob", "cid")
        quiet = {"conversation_id": f"sg_{group['group_id']}", "silent_until": now_ms() + 3_600_000}
        assert (await api.put("bob", "/conversation/update", **quiet)).data is not None
        await send(api, "ann", group["group_id"], "not now")
        await send(api, "ann", "bob", "of another chat")
        named = await send(api, "ann", group["group_id"], "@bob now", mentions=["bob"])
        made = {one["conversation_id"]: one for one in await got(receiver, 2)}
        mention = made[quiet["conversation_id"]]
        assert (mention["server_msg_id"], mention["mention"], mention["unread"]) == (named["server_msg_id"], True, 2)
        for one in made.values():  # `none`: neither who nor what
            assert (one["title"], one["body"]) == ("You were mentioned" if one is mention else "New message", "")
            assert "sender_id" not in one
        quiet["silent_until"] = 0
        await api.put("bob", "/conversation/update", **quiet)
        await send(api, "ann", group["group_id"], "again")
        assert (await got(receiver, 3))[2]["unread"] == 3


async def test_a_service_that_does_not_answer_delays_neither_sends_nor_other_services(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()

    async def hang(events: list[Event]) -> int:
        await go_on.wait()
        return 200

    settings = {"hooks__allow_private": True, "push__connections": 2}
    async with push_service(monkeypatch) as web, receiving() as receiver:
        receiver.decide = hang
        async with open_push(core_url, receiver, **settings) as api:
            away = [f"away{number}" for number in range(5)]
            await api.sign_up(*away)
            for user in away:
                await register(api, user)
            subscription = browser_subscription(f"{web.url}/bob", bytes(16))
            body = {"kind": "web", "subscription": subscription, "device_id": "browser"}
            assert (await api.post("bob", "/push/register", **body)).data["kind"] == "web"
            for user in away:
                await send(api, "ann", user, "into the void")

            async def hangs() -> bool:
                rows = await look(api.core, "SELECT COUNT(*) FROM push_notes WHERE kind='hook' AND state=2")
                return rows == [(2,)]  # as many as may be under way

            await until(hangs)
            await send(api, "ann", "bob", "past it")
            await until(lambda: web.requests)
            assert receiver.taken == []
            go_on.set()
            await receiver.until_taken(len(away))


async def test_a_service_says_when_it_wants_to_be_asked_again(core_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "PAUSES_S", (0.01,))
    async with receiving() as receiver, open_push(core_url, receiver) as api:
        await register(api, "bob")
        times: list[float] = []

        async def decide(events: list[Event]) -> int:
            times.append(time.monotonic())
            return 429 if len(times) == 1 else 200

        receiver.decide = decide
        receiver.headers = [(b"retry-after", b"1")]
        await send(api, "ann", "bob", "later")
        await receiver.until_taken(1)
        assert times[1] - times[0] > 0.9
