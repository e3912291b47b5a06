"""The command dialect by itself: signing in over the socket, every group command, names, offline pulls."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from harness.chat import PASSWORD, PATIENCE_S, Person, Refused, World, world
from harness.dialects import CommandSpeaker, Said
from harness.dialects import Refused as Declined
from harness.server_process import ServerProcess
from harness.waiting import time_passes
from nexo.errors import ERRORS

Frame = dict[str, Any]
_numbers = itertools.count(1)


@contextlib.asynccontextmanager
async def opened(server: ServerProcess, **options: Any) -> AsyncIterator[ClientConnection]:
    async with connect(server.ws_address + "/cmd", proxy=None, **options) as socket:
        yield socket


async def receive(socket: ClientConnection) -> Frame:
    frame: Frame = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE_S))
    return frame


async def ask(socket: ClientConnection, cmd: str, **data: Any) -> Frame:
    request_id = f"r{next(_numbers)}"
    await socket.send(json.dumps({"cmd": cmd, "request_id": request_id, "data": data}))
    while True:
        frame = await receive(socket)
        if frame["request_id"] == request_id:
            assert frame["cmd"] == cmd
            return frame


async def close_code(socket: ClientConnection) -> int:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await asyncio.wait_for(socket.recv(), PATIENCE_S)
    assert socket.close_code is not None
    return socket.close_code


def new_name(name: str = "ann") -> str:
    return f"{name}.{secrets.token_hex(5)}"


@pytest.fixture(scope="module")
def hasty() -> Iterator[ServerProcess]:
    with ServerProcess(gateway__auth_timeout_s=1) as running:
        yield running


# -- signing in ----------------------------------------------------------------------------------------------


async def test_register_log_in_refresh_and_log_out_over_the_socket(server: ServerProcess) -> None:
    ann = new_name()
    async with opened(server) as socket:
        assert (await ask(socket, "heartbeat"))["code"] == 0
        user = await ask(socket, "auth.register", user_id=ann, password=PASSWORD, nickname="Ann")
        assert (user["data"]["user_id"], user["data"]["nickname"]) == (ann, "Ann")
        again = await ask(socket, "auth.register", user_id=ann, password=PASSWORD)
        assert (again["code"], again["message"]) == (ERRORS["user_exists"].number, "user_exists")
        wrong = await ask(socket, "auth.login", user_id=ann, password="wrong password")
        assert wrong["message"] == "invalid_credentials"
        tokens = (await ask(socket, "auth.login", user_id=ann, password=PASSWORD, platform_id=2, device_id="d"))["data"]
        assert (tokens["user_id"], tokens["platform_id"], tokens["device_id"]) == (ann, 2, "d")
        assert (await ask(socket, "chat.sync_conversations"))["data"]["conversations"] == []
        twice = await ask(socket, "auth.login", user_id=ann, password=PASSWORD)
        assert twice["message"] == "bad_request"
        newer = (await ask(socket, "auth.refresh", refresh_token=tokens["refresh_token"]))["data"]
        assert newer["refresh_token"] != tokens["refresh_token"]
        renewed = await ask(socket, "auth.token", token=newer["access_token"])
        assert renewed["data"]["user_id"] == ann
        assert (await ask(socket, "auth.logout"))["code"] == 0
        told = await receive(socket)
        assert (told["cmd"], told["data"]["reason"]) == ("session.error", "session_invalid")
        assert await close_code(socket) == ERRORS["session_invalid"].close_code
    async with opened(server) as socket:
        gone = await ask(socket, "auth.token", token=newer["access_token"])
        assert gone["message"] == "session_invalid"
        assert await close_code(socket) == ERRORS["session_invalid"].close_code


async def test_before_signing_in_only_auth_and_heartbeat_are_answered(server: ServerProcess) -> None:
    for cmd in ("chat.send_message", "chat.get_history", "group.create", "auth.logout", "presence.subscribe"):
        async with opened(server) as socket:
            assert (await ask(socket, "auth.register", password=5))["message"] == "bad_password"
            assert (await ask(socket, "auth.login", user_id="x"))["message"] == "missing_password"
            assert (await ask(socket, "auth.refresh", refresh_token="x"))["message"] == "session_invalid"
            assert (await ask(socket, cmd))["message"] == "unauthorized"
            assert await close_code(socket) == ERRORS["unauthorized"].close_code


@pytest.mark.parametrize(("token", "error"), [(None, "missing_token"), ("", "missing_token"), (7, "bad_token")])
async def test_a_bad_token_is_told_and_closes(server: ServerProcess, token: Any, error: str) -> None:
    async with opened(server) as socket:
        answer = await ask(socket, "auth.token", **({} if token is None else {"token": token}))
        assert (answer["code"], answer["message"]) == (ERRORS[error].number, error)
        assert await close_code(socket) == ERRORS[error].close_code


async def test_another_users_token_on_a_live_socket_closes_it(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        async with opened(server) as socket:
            await ask(socket, "auth.token", token=ann.tokens.access)
            assert (await ask(socket, "auth.token", token=ben.tokens.access))["message"] == "reauth_uid_mismatch"
            assert await close_code(socket) == ERRORS["reauth_uid_mismatch"].close_code


async def test_a_bearer_token_with_the_upgrade_signs_in(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        headers = {"Authorization": f"Bearer {ann.tokens.access}"}
        async with opened(server, additional_headers=headers) as socket:
            assert (await ask(socket, "group.get_user_groups"))["data"] == {"groups": []}


async def test_nobody_stays_without_signing_in() -> None:
    with ServerProcess(gateway__auth_timeout_s=3) as server:
        async with opened(server) as socket:
            await time_passes(1.8)
            assert (await ask(socket, "auth.register", user_id="ann", password=PASSWORD))["code"] == 0
            await time_passes(1.8)
            assert (await ask(socket, "auth.login", user_id="ann", password="wrong one"))["code"] != 0, "time anew"
            told = await receive(socket)
            assert (told["cmd"], told["data"]["reason"]) == ("session.error", "auth_timeout")


@pytest.mark.parametrize(
    ("cmd", "data"),
    [
        ("auth.refresh", {"refresh_token": "x" * 43}),
        ("auth.register", {"user_id": "ann", "password": "x"}),
        ("auth.login", {"user_id": "ann", "password": "wrong one"}),
        ("heartbeat", {}),
    ],
)
async def test_a_socket_that_is_not_signed_in_ends_in_time_whatever_it_sends(
    hasty: ServerProcess, cmd: str, data: Frame
) -> None:
    async with opened(hasty) as socket:
        until = time.monotonic() + 10
        with contextlib.suppress(ConnectionClosed):
            while time.monotonic() < until:
                await ask(socket, cmd, **data)
        assert socket.close_code == ERRORS["auth_timeout"].close_code


async def test_passwords_and_registrations_are_limited_over_http_and_socket_together() -> None:
    with ServerProcess(limits__logins_per_min=2, limits__registers_per_min=3) as server:
        async with world(server, check_pushes=False) as here, opened(server) as socket:
            person = Person(here, "ann")
            await here.call("POST", "/user/register", json={"user_id": "ann", "password": PASSWORD})
            assert (await ask(socket, "auth.register", user_id="ben", password=PASSWORD))["code"] == 0
            assert (await ask(socket, "auth.register", user_id="cy", password=PASSWORD))["code"] == 0
            refused = await ask(socket, "auth.register", user_id="dan", password=PASSWORD)
            assert (refused["message"], refused["data"]["retry_after_ms"] > 0) == ("too_many_requests", True)
            with pytest.raises(Refused, match="invalid_credentials"):
                await person.log_in(password="wrong password")
            assert (await ask(socket, "auth.login", user_id="ann", password="wrong"))[
                "message"
            ] == "invalid_credentials"
            refused = await ask(socket, "auth.login", user_id="ann", password=PASSWORD)
            assert refused["message"] == "too_many_requests"


async def test_registration_is_closed_over_http_and_socket_alike() -> None:
    with ServerProcess(auth__registration="invite") as server:
        code = server.run("invite", "--uses", "2").stdout.strip()
        async with world(server, check_pushes=False) as here, opened(server) as socket:
            with pytest.raises(Refused, match="registration_closed"):
                await here.call("POST", "/user/register", json={"user_id": "ann", "password": PASSWORD})
            refused = await ask(socket, "auth.register", user_id="ann", password=PASSWORD)
            assert refused["message"] == "registration_closed"
            await here.call("POST", "/user/register", json={"user_id": "ann", "password": PASSWORD, "code": code})
            assert (await ask(socket, "auth.register", user_id="ben", password=PASSWORD, code=code))["code"] == 0
            refused = await ask(socket, "auth.register", user_id="cy", password=PASSWORD, code=code)
            assert refused["message"] == "registration_closed"


# -- conversations -------------------------------------------------------------------------------------------


async def exact_person(here: World, user_id: str) -> Person:
    person = Person(here, user_id)
    await here.call("POST", "/user/register", json={"user_id": user_id, "password": PASSWORD})
    person.tokens = await person.log_in()
    return person


async def test_chats_that_read_the_same_are_kept_apart(server: ServerProcess) -> None:
    """`p_…` is for reading: here two chats of one user have the same one."""
    tag = secrets.token_hex(4)
    async with world(server, check_pushes=False) as here:
        me = await exact_person(here, f"{tag}_z_{tag}")
        one = await exact_person(here, f"z_{tag}")
        other = await exact_person(here, f"{tag}_z")
        ann = await CommandSpeaker.connect(me)
        first = await ann.say(one.user_id, "to one")
        second = await ann.say(other.user_id, "to the other")
        assert (first.seq, second.seq) == (1, 1)
        assert [note.content for note in await ann.history(one.user_id) if isinstance(note, Said)] == ["to one"]
        assert [note.content for note in await ann.history(other.user_id) if isinstance(note, Said)] == ["to the other"]
        listed = (await ann.ask("chat.sync_conversations"))["conversations"]
        assert [entry["peer_id"] for entry in listed] == [other.user_id, one.user_id]
        name = listed[0]["conversation_id"]
        assert listed[1]["conversation_id"] == name == f"p_{tag}_z_{tag}_z_{tag}"
        with pytest.raises(Declined, match="bad_baselines"):
            await ann.ask("chat.pull_offline", baselines={name: 0})
        by_peer = [{"chat_type": 1, "chat_id": one.user_id, "seq": 0}]
        page = await ann.ask("chat.pull_offline", baselines=by_peer)
        assert [message["to_id"] for message in page["messages"]] == [one.user_id]
        receiver = await CommandSpeaker.connect(one)
        (said,) = [note for note in await receiver.history(me.user_id) if isinstance(note, Said)]
        await receiver.read(said)
        receipt = await ann.pushed("chat.read_receipt")
        assert sorted(receipt["user_ids"]) == sorted((me.user_id, one.user_id))
        await asyncio.gather(ann.close(), receiver.close())


async def test_offline_messages_come_page_by_page_and_once(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cy = await here.people("a_nn", "b_en", "cy")
        group_id = await ben.found_group(ann, cy)
        for i in range(5):
            await ben.send(ann, f"single {i}")
            await ben.send(group_id, f"group {i}")
        speaker = await CommandSpeaker.connect(ann)
        found: list[str] = []
        cursor = ""
        while True:
            page = await speaker.ask("chat.pull_offline", cursor=cursor, limit=3)
            found += [message["content"] for message in page["messages"] if message["msg_type"] == 1]
            cursor = page["next_cursor"]
            if not page["has_more"]:
                break
        assert found == [f"{where} {i}" for i in range(5) for where in ("single", "group")]
        history = await speaker.history(ben.user_id)
        assert isinstance(history[-1], Said)
        await speaker.read(history[-1])
        page = await speaker.ask("chat.pull_offline")
        assert {message["conversation_id"] for message in page["messages"]} == {group_id}, "only that chat was read"
        name = f"p_{ann.user_id}_{ben.user_id}"
        page = await speaker.ask("chat.pull_offline", baselines={name: 3, group_id: 4})
        assert [message["seq"] for message in page["messages"] if message["chat_type"] == 1] == [4, 5]
        assert [message["seq"] for message in page["messages"] if message["chat_type"] == 2] == [5, 6]
        await speaker.close()


async def test_history_goes_backwards_from_a_message(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cy = await here.people("ann", "ben", "cy")
        speaker = await CommandSpeaker.connect(ann)
        sent = [await speaker.say(ben.user_id, str(i)) for i in range(5)]
        chat = {"chat_type": 1, "chat_id": ben.user_id}
        page = await speaker.ask("chat.get_history", **chat, limit=2)
        assert ([message["content"] for message in page["messages"]], page["has_more"]) == (["4", "3"], True)
        page = await speaker.ask("chat.get_history", **chat, before_msg_id=page["messages"][-1]["msg_id"], limit=9)
        assert ([message["content"] for message in page["messages"]], page["has_more"]) == (["2", "1", "0"], False)
        elsewhere = await speaker.say(cy.user_id, "another chat")
        for unknown in (elsewhere.msg_id, "12345"):
            with pytest.raises(Declined, match="message_not_found"):
                await speaker.ask("chat.get_history", **chat, before_msg_id=unknown)
        assert len(sent) == 5
        await speaker.close()


async def test_marking_read_up_to_a_message_or_altogether(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        sent = [await ben.send(ann, str(i)) for i in range(4)]
        speaker = await CommandSpeaker.connect(ann)
        chat = {"chat_type": 1, "chat_id": ben.user_id}
        done = await speaker.ask("chat.mark_read", **chat, last_msg_id=sent[1]["server_msg_id"])
        assert (done["read_seq"], done["unread_count"]) == (2, 2)
        done = await speaker.ask("chat.mark_read", **chat)
        assert (done["read_seq"], done["unread_count"]) == (4, 0)
        (entry,) = (await speaker.ask("chat.sync_conversations"))["conversations"]
        assert (entry["unread_count"], entry["last_msg_id"]) == (0, sent[3]["server_msg_id"])
        assert (entry["is_pinned"], entry["is_muted"], entry["peer_id"]) == (False, False, ben.user_id)
        await speaker.close()


# -- groups --------------------------------------------------------------------------------------------------


async def test_the_life_of_a_group(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cy, dan = await here.people("ann", "ben", "cy", "dan")
        owner, member = await CommandSpeaker.connect(ann), await CommandSpeaker.connect(ben)
        with pytest.raises(Declined, match="group_members_too_few"):
            await owner.ask("group.create", group_name="two", member_ids=[ben.user_id])
        created = await owner.ask(
            "group.create", group_name="team", avatar_url="https://u", member_ids=[ben.user_id, cy.user_id]
        )
        assert list(created) == ["group_id"]
        group = {"group_id": created["group_id"]}
        info = await member.ask("group.get_info", **group)
        assert (info["group_name"], info["avatar_url"], info["owner_id"]) == ("team", "https://u", ann.user_id)
        stranger = await CommandSpeaker.connect(dan)
        glimpse = {"group_name": "team", "avatar_url": "https://u", "member_count": 3, "join_policy": "open"}
        assert await stranger.ask("group.get_info", **group) == group | glimpse
        assert [found["group_id"] for found in (await member.ask("group.get_user_groups"))["groups"]] == [
            *group.values()
        ]
        invited = await owner.ask("group.invite_members", **group, member_ids=[dan.user_id, ben.user_id, "nobody", "!"])
        assert invited["added"] == [dan.user_id]
        assert {skipped["user_id"] for skipped in invited["skipped"]} == {ben.user_id, "nobody", "!"}
        with pytest.raises(Declined, match="no_permission"):
            await member.ask("group.remove_member", **group, user_id=dan.user_id)
        await owner.ask("group.set_member_role", **group, user_id=ben.user_id, role="admin")
        await member.ask("group.remove_member", **group, user_id=dan.user_id)
        updated = await member.ask("group.update", **group, group_name="crew", announcement="hi", introduction="we")
        assert (updated["group_name"], updated["announcement"], updated["introduction"]) == ("crew", "hi", "we")
        page = await member.ask("group.get_members", **group, limit=2)
        rest = await member.ask("group.get_members", **group, cursor=page["next_cursor"])
        roles = {found["user_id"]: found["role"] for found in page["members"] + rest["members"]}
        assert roles == {ann.user_id: "owner", ben.user_id: "admin", cy.user_id: "member"}
        with pytest.raises(Declined, match="owner_cannot_leave"):
            await owner.ask("group.leave", **group)
        await owner.ask("group.transfer_owner", **group, new_owner_id=ben.user_id)
        await owner.ask("group.leave", **group)
        assert (await owner.ask("group.join", **group))["status"] == "joined"
        with pytest.raises(Declined, match="no_permission"):
            await owner.ask("group.dismiss", **group)
        await member.ask("group.dismiss", **group)
        with pytest.raises(Declined, match="group_not_available"):
            await owner.say(created["group_id"], "too late")
        events = await owner.all_pushed("group.event", 9)
        assert [event["msg_type"] for event in events] == [101, 102, 106, 104, 107, 105, 103, 102, 108]
        await asyncio.gather(owner.close(), member.close())


async def test_deleting_a_conversation_is_for_owners_of_groups(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cy = await here.people("ann", "ben", "cy")
        group_id = await ann.found_group(ben, cy)
        await ann.send(ben, "private")
        owner, member = await CommandSpeaker.connect(ann), await CommandSpeaker.connect(ben)
        with pytest.raises(Declined, match="conversation_private_cannot_delete"):
            await owner.ask("chat.delete_conversation", chat_type=1, chat_id=ben.user_id)
        with pytest.raises(Declined, match="no_permission"):
            await member.ask("chat.delete_conversation", chat_type=2, chat_id=group_id)
        assert await owner.ask("chat.delete_conversation", chat_type=2, chat_id=group_id) == {}
        listed = (await member.ask("chat.sync_conversations"))["conversations"]
        assert [entry["chat_type"] for entry in listed] == [1]
        await asyncio.gather(owner.close(), member.close())


# -- what is wrong -------------------------------------------------------------------------------------------


async def test_the_request_id_is_echoed_whatever_is_wrong(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        headers = {"Authorization": f"Bearer {ann.tokens.access}"}
        async with opened(server, additional_headers=headers) as socket:
            to_ben = {"chat_type": 1, "to_id": ben.user_id, "client_msg_id": "c1", "content": "hi"}
            wrong: list[tuple[str, Frame, str]] = [
                ("chat.send_message", {**to_ben, "chat_type": 3}, "bad_request"),
                ("chat.send_message", {**to_ben, "to_id": ""}, "missing_receiver"),
                ("chat.send_message", {**to_ben, "to_id": 5}, "bad_receiver"),
                ("chat.send_message", {**to_ben, "to_id": ann.user_id}, "cannot_send_to_self"),
                ("chat.send_message", {**to_ben, "from_user_id": ben.user_id}, "identity_mismatch"),
                ("chat.send_message", {**to_ben, "content": None}, "missing_content"),
                ("chat.send_message", {"chat_type": 1, "to_id": ben.user_id}, "missing_client_msg_id"),
                ("chat.recall_message", {"msg_id": "x"}, "bad_server_msg_id"),
                ("chat.ack", {}, "missing_server_msg_id"),
                ("chat.get_history", {"chat_type": 2, "chat_id": "g_nothing"}, "group_not_found"),
                ("chat.get_history", {"chat_type": 1, "chat_id": ann.user_id}, "bad_receiver"),
                ("chat.pull_offline", {"cursor": "rubbish"}, "bad_cursor"),
                ("chat.pull_offline", {"baselines": {"p_x_y": 1}}, "bad_baselines"),
                ("group.create", {"member_ids": []}, "missing_name"),
                ("group.set_member_role", {"group_id": "g", "user_id": "u", "role": 1}, "bad_role"),
                ("presence.subscribe", {"user_ids": "ann"}, "bad_user_id"),
            ]
            for cmd, data, error in wrong:
                answer = await ask(socket, cmd, **data)
                assert (answer["code"], answer["message"]) == (ERRORS[error].number, error), (cmd, data)
                if data.get("client_msg_id"):
                    assert answer["data"]["client_msg_id"] == "c1"
            await socket.send(json.dumps({"cmd": "chat.ack", "request_id": 7, "data": [1]}))
            answer = await receive(socket)
            assert (answer["cmd"], answer["request_id"], answer["message"]) == ("chat.ack", 7, "bad_request")
            await socket.send(json.dumps({"request_id": "x"}))
            answer = await receive(socket)
            assert (answer["cmd"], answer["request_id"], answer["message"]) == ("", "x", "missing_type")
