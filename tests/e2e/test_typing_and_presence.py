"""What is told and never stored: who types, and who is here."""

from __future__ import annotations

import pytest

from harness.chat import Frame, meet, world
from harness.server_process import ServerProcess


async def test_typing_before_the_first_message_is_told_and_does_not_swallow_it(server: ServerProcess) -> None:
    """The chat does not exist yet when it is typed in, and does a moment later."""
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.send({"type": "TYPING", "to": ben.user_id, "on": True})
        assert (await ben.expect("TYPING"))["from"] == ann.user_id
        await ann.expect_nothing("TYPING")
        await ann.say(ben, "the first")
        assert (await ben.expect("SINGLE_CHAT"))["body"] == "the first"
        await ann.send({"type": "TYPING", "to": ben.user_id})
        assert (await ben.expect("TYPING"))["on"] is True


async def test_typing_reaches_neither_strangers_nor_those_who_left(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        await cid.expect("GROUP_EVENT", msgType=101)
        await cid.me.post("/group/quit", group_id=group)
        await cid.expect("GROUP_EVENT", msgType=103)
        await dan.send({"type": "TYPING", "groupId": group, "on": True})
        await cid.send({"type": "TYPING", "groupId": group, "on": True})
        await dan.send({"type": "TYPING", "groupId": "nonsense", "on": True})
        await dan.send({"type": "TYPING", "to": dan.user_id, "on": True})
        await dan.send({"type": "TYPING", "to": "nobody-there", "on": True})
        await dan.settle()
        await ann.send({"type": "TYPING", "groupId": group, "on": True})
        assert (await ben.expect("TYPING"))["from"] == ann.user_id
        for client in (ann, cid, dan):
            await client.expect_nothing("TYPING")
        await ben.expect_nothing("TYPING")


@pytest.mark.parametrize("receiver", ["x\x00", "x" * 60_000, "", "@all", "si_a:b"])
async def test_typing_to_what_cannot_be_a_user_is_refused_and_disturbs_no_other_user(
    server: ServerProcess, receiver: str
) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.send({"type": "TYPING", "to": receiver, "on": True})
        assert (await ann.expect("ERROR"))["reason"] in ("bad_receiver", "missing_receiver")
        await ben.settle()
        await ben.expect_nothing("RESYNC")


@pytest.mark.parametrize("have_spoken", [True, False])
async def test_who_is_blocked_types_unseen(server: ServerProcess, have_spoken: bool) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        if have_spoken:
            await ann.say(ben)
        else:
            await ann.send({"type": "TYPING", "to": ben.user_id, "on": False})
            await ben.expect("TYPING", on=False)
        await ben.me.post("/user/block", user_id=ann.user_id)
        await ann.send({"type": "TYPING", "to": ben.user_id, "on": True})
        await ann.settle()
        await ben.expect_nothing("TYPING")
        await ben.me.post("/user/unblock", user_id=ann.user_id)
        await ann.send({"type": "TYPING", "to": ben.user_id, "on": True})
        await ben.expect("TYPING")


async def test_a_subscription_replaces_the_one_before_and_an_empty_one_ends_it(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        watcher = await ann.connect()
        await watcher.ask({"type": "PRESENCE", "subscribe": [ben.user_id]}, "PRESENCE")
        told = await watcher.ask({"type": "PRESENCE", "subscribe": [cid.user_id, cid.user_id]}, "PRESENCE")
        assert told["users"] == [{"userId": cid.user_id, "online": False, "platforms": []}]
        await ben.connect()
        await cid.connect()
        assert (await watcher.expect("PRESENCE"))["users"][0]["userId"] == cid.user_id
        assert await watcher.ask({"type": "PRESENCE", "subscribe": []}, "PRESENCE") == {"type": "PRESENCE", "users": []}
        await cid.connect(await cid.log_in(platform_id=1))
        await watcher.expect_nothing("PRESENCE")


async def test_a_hundred_users_can_be_watched(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        told = await ann.ask({"type": "PRESENCE", "subscribe": [f"user{i}" for i in range(100)]}, "PRESENCE")
        assert len(told["users"]) == 100
        await ann.send({"type": "PRESENCE", "subscribe": [f"user{i}" for i in range(101)]})
        await ann.expect_error("bad_user_id")


async def test_presence_tells_the_platforms_and_only_when_they_change(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        watcher = await ann.connect()
        await watcher.ask({"type": "PRESENCE", "subscribe": [ben.user_id]}, "PRESENCE")
        web = await ben.connect()
        assert (await watcher.expect("PRESENCE"))["users"][0]["platforms"] == [5]
        second = await ben.connect()
        phone = await ben.connect(await ben.log_in(platform_id=2))
        assert (await watcher.expect("PRESENCE"))["users"][0]["platforms"] == [2, 5]
        await second.close()
        await web.close()
        assert (await watcher.expect("PRESENCE"))["users"][0]["platforms"] == [2]
        phone.cut()
        assert (await watcher.expect("PRESENCE"))["users"] == [
            {"userId": ben.user_id, "online": False, "platforms": []}
        ]
        await watcher.expect_nothing("PRESENCE")


async def test_reauth_with_a_token_of_another_platform_is_a_change_of_presence(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        watcher = await ann.connect()
        await watcher.ask({"type": "PRESENCE", "subscribe": [ben.user_id]}, "PRESENCE")
        client = await ben.connect()
        await watcher.expect("PRESENCE")
        phone = await ben.log_in(platform_id=1)
        await client.ask({"type": "REAUTH", "token": phone.access}, "AUTH_OK")
        assert (await watcher.expect("PRESENCE"))["users"][0]["platforms"] == [1]


async def test_a_connection_that_is_not_signed_in_is_not_online(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        await ann.open()
        online = await ann.get("/user/online", user_ids=ann.user_id)
        assert online["users"][0]["online"] is False


async def test_presence_is_not_shown_to_users_whom_one_has_blocked(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cy", check_pushes=False) as (ann, ben, cy):
        subscribe = {"type": "PRESENCE", "subscribe": [ann.user_id, cy.user_id]}

        def shown(frame: Frame) -> dict[str, bool]:
            return {user["userId"]: user["online"] for user in frame["users"]}

        assert shown(await ben.ask(subscribe, "PRESENCE")) == {ann.user_id: True, cy.user_id: True}
        await ann.me.post("/user/block", user_id=ben.user_id)
        assert shown(await ben.expect("PRESENCE")) == {ann.user_id: False}
        other = await ann.me.connect(await ann.me.log_in(2))
        await other.close()
        assert shown(await ben.ask(subscribe, "PRESENCE")) == {ann.user_id: False, cy.user_id: True}
        online = await ben.me.get("/user/online", user_ids=f"{ann.user_id},{cy.user_id}")
        assert [user["online"] for user in online["users"]] == [False, True]
        online = await cy.me.get("/user/online", user_ids=ann.user_id)
        assert [user["online"] for user in online["users"]] == [True]
        await ann.me.post("/user/unblock", user_id=ben.user_id)
        assert shown(await ben.expect("PRESENCE")) == {ann.user_id: True}
