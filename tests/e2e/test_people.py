"""Contacts, join requests, own sessions and privacy beside connected clients, in three dialects."""

from __future__ import annotations

import pytest

from harness.chat import PASSWORD, Client, Person, Refused, meet, world
from harness.dialects import CommandSpeaker, RequestSpeaker
from harness.dialects import Refused as Declined
from harness.server_process import ServerProcess


async def devices(person: Person, *names: str) -> list[Client]:
    """Returns a connection of each device; with several instances each is on another one."""
    return [await person.connect(await person.log_in(5, name)) for name in names]


async def test_contact_requests_and_decisions_reach_all_devices_of_the_other_user(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        of_ann, of_ben = await devices(ann, "phone", "desk"), await devices(ben, "phone", "desk")
        asked = await ann.post("/contact/request", user_id=ben.user_id, message="it is me")
        for client in of_ben:
            frame = await client.expect("FRIEND_REQUEST")
            assert (frame["requestId"], frame["from"], frame["body"]) == (asked["request_id"], ann.user_id, "it is me")
            assert frame["ts"] > 0
        await ben.post("/contact/decide", user_id=ann.user_id, accept=True)
        for client in of_ann:
            frame = await client.expect("FRIEND_DECISION")
            assert (frame["requestId"], frame["from"], frame["accepted"]) == (asked["request_id"], ben.user_id, True)
            assert client.seen("FRIEND_REQUEST") == []
        (contact,) = (await ann.get("/contact/list"))["contacts"]
        assert contact["user_id"] == ben.user_id


async def test_requests_to_join_reach_owner_and_admins_and_no_member(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group_id = await ann.me.found_group(ben, cid, join_policy="approval")
        await ann.me.post("/group/set_member_role", group_id=group_id, user_id=ben.user_id, role="admin")
        await dan.me.post("/group/join", group_id=group_id, message="let me in")
        for manager in (ann, ben):
            frame = await manager.expect("GROUP_JOIN_REQUEST")
            assert (frame["groupId"], frame["from"], frame["body"]) == (group_id, dan.user_id, "let me in")
        await cid.settle()
        assert cid.seen("GROUP_JOIN_REQUEST") == []


async def test_sessions_that_their_user_ends_are_closed_on_every_instance(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        phone, desk, tablet = await devices(ann, "phone", "desk", "tablet")
        listed = (await ann.get("/session/list"))["sessions"]
        ids = {one["device_id"]: one["session_id"] for one in listed}
        assert all(one["address"] for one in listed)
        await ann.post("/session/revoke", session_id=ids["phone"])
        await phone.expect_error("session_invalid")
        assert await phone.expect_close() in range(4000, 4500)
        await desk.ask({"type": "PING"}, "PONG")
        await ann.post("/session/revoke", others=True)
        for client in (desk, tablet):
            await client.expect_error("session_invalid")
        assert [one["current"] for one in (await ann.get("/session/list"))["sessions"]] == [True]


async def test_presence_is_shown_to_those_that_a_user_chooses(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ben.send({"type": "PRESENCE", "subscribe": [ann.user_id]})
        assert (await ben.expect("PRESENCE"))["users"][0]["online"] is True
        await ann.me.put("/user/update", privacy={"last_seen": "contacts"})
        assert (await ben.expect("PRESENCE"))["users"][0]["online"] is False
        (shown,) = (await ben.me.get("/user/online", user_ids=ann.user_id))["users"]
        assert (shown["online"], shown.get("last_seen_at")) == (False, None)
        await ann.me.post("/contact/request", user_id=ben.user_id)
        await ben.me.post("/contact/decide", user_id=ann.user_id, accept=True)
        assert (await ben.expect("PRESENCE"))["users"][0]["online"] is True
        await ben.me.post("/contact/remove", user_id=ann.user_id)
        assert (await ben.expect("PRESENCE"))["users"][0]["online"] is False


async def test_the_sockets_of_a_closed_account_end_on_every_instance(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        clients = await devices(ann, "phone", "desk")
        (ben_here,) = await devices(ben, "desk")
        group_id = await ann.found_group(ben, await here.person("cid"))
        await ben_here.expect("GROUP_EVENT", msgType=101)
        await ann.call("DELETE", "/user", json={"password": PASSWORD})
        for client in clients:
            await client.expect_error("user_deleted")
            assert await client.expect_close() in range(4000, 4500)
        await ben_here.expect("GROUP_EVENT", msgType=105, groupId=group_id)
        await ben_here.expect("GROUP_EVENT", msgType=103, groupId=group_id)
        with pytest.raises(Refused, match="user_deleted"):
            await ann.log_in()
        with pytest.raises(Refused, match="user_not_found"):
            await ben.send(ann, "are you there")


async def test_contacts_are_made_over_the_command_dialect_and_reported_to_the_request_dialect(
    server: ServerProcess,
) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        commands, requests = await CommandSpeaker.connect(ann), await RequestSpeaker.connect(ben)
        asked = await commands.ask("contact.request", user_id=ben.user_id, message="it is me")
        assert asked["status"] == "pending"
        pushed = await requests.pushed(2017)
        assert (pushed["event"], pushed["request_id"], pushed["user_id"]) == (
            "request", asked["request_id"], ann.user_id,
        )  # fmt: skip
        (waiting,) = (await commands.ask("contact.requests", sent=True))["requests"]
        assert (waiting["user_id"], waiting["message"]) == (ben.user_id, "it is me")
        await ben.post("/contact/decide", user_id=ann.user_id, accept=True)
        decided = await commands.pushed("contact.event")
        assert (decided["event"], decided["accepted"], decided["user_id"]) == ("decision", True, ben.user_id)
        assert (await commands.ask("contact.remark", user_id=ben.user_id, remark="B."))["remark"] == "B."
        (contact,) = (await commands.ask("contact.list"))["contacts"]
        assert (contact["user_id"], contact["remark"]) == (ben.user_id, "B.")
        await commands.ask("contact.remove", user_id=ben.user_id)
        assert (await commands.ask("contact.list"))["contacts"] == []
        with pytest.raises(Declined, match="contact_request_not_found"):
            await commands.ask("contact.decide", user_id=ben.user_id, accept=True)
        for speaker in (commands, requests):
            await speaker.close()
