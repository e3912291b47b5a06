"""Users, sessions and groups that a command or a key disables or ends beside connected clients."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from harness.chat import PASSWORD, Client, Person, Refused, World, world
from harness.server_process import ServerProcess
from nexo.ids import MODERATOR_ID

DO_NOT_RECONNECT = range(4000, 4500)
AT_ONCE_S = 1.5  # within a second, on a machine that does other things too


def command(server: ServerProcess, *arguments: str) -> str:
    done = server.run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def by_key(here: World, key: str, method: str, path: str, **fields: Any) -> Any:
    return await here.call(method, path, json=fields, headers={"Authorization": f"Bearer {key}"})


async def connect_devices(person: Person, *devices: str) -> list[Client]:
    """Returns a connection of each device; with several instances each is on another one."""
    return [await person.connect(await person.log_in(5, device)) for device in devices]


async def assert_out(clients: list[Client], reason: str) -> None:
    """They get the reason and are closed, within a second from now."""
    since = time.monotonic()
    await asyncio.gather(*(client.expect_error(reason) for client in clients))
    for client in clients:
        assert await client.expect_close() in DO_NOT_RECONNECT
    assert time.monotonic() - since < AT_ONCE_S


async def test_a_user_who_is_disabled_by_a_command_is_out_everywhere_at_once(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        clients = await connect_devices(ann, "phone", "desk", "tablet")
        command(server, "user", "disable", ann.user_id, "--reason", "spam")
        await assert_out(clients, "user_disabled")
        for _ in clients:
            with pytest.raises(Refused, match="user_disabled"):
                await ann.get("/user/info")
        with pytest.raises(Refused, match="user_disabled"):
            await ann.log_in()
        command(server, "user", "enable", ann.user_id)
        ann.tokens = await ann.log_in()
        (again,) = await connect_devices(ann, "phone")
        await again.ask({"type": "PING"}, "PONG")


async def test_a_user_who_is_disabled_by_a_key_is_out_everywhere_at_once(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        key = command(server, "key", "add", f"key-of-{ann.user_id}", "--scope", "users")
        clients = await connect_devices(ann, "phone", "desk", "tablet")
        await by_key(here, key, "POST", f"/server/users/{ann.user_id}/disable", reason="spam")
        await assert_out(clients, "user_disabled")


async def test_sessions_of_a_device_that_a_command_ends_are_over_and_others_stay(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        phone, desk = await connect_devices(ann, "phone", "desk")
        command(server, "user", "revoke", ann.user_id, "--device", "phone")
        await assert_out([phone], "session_invalid")
        await desk.ask({"type": "PING"}, "PONG")
        assert desk.seen("ERROR") == []
        command(server, "user", "revoke", ann.user_id)
        await assert_out([desk], "session_invalid")


async def test_a_code_that_a_command_prints_resets_the_password(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        (client,) = await connect_devices(ann, "phone")
        code = command(server, "user", "reset", ann.user_id)
        await here.call("POST", "/auth/reset", json={"code": code, "new_password": "another password"})
        await assert_out([client], "session_invalid")
        with pytest.raises(Refused, match="invalid_credentials"):
            await ann.log_in(password=PASSWORD)
        await ann.log_in(password="another password")


async def test_a_group_that_a_command_disables_takes_nothing_until_it_is_enabled(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben, cem = await here.people("ann", "ben", "cem")
        group = await ann.post("/group/create", name="team", member_ids=[ben.user_id, cem.user_id])
        group_id = group["group_id"]
        await ann.send(group_id, "hello")
        command(server, "group", "disable", group_id, "--reason", "spam")
        for person in (ann, ben, cem):
            with pytest.raises(Refused, match="group_not_available"):
                await person.send(group_id, "no")
        assert (await ben.get("/msg/history", conversation_id=f"sg_{group_id}"))["messages"][0]["content"] == "hello"
        command(server, "group", "enable", group_id)
        for person in (ann, ben, cem):
            await person.send(group_id, "yes")


async def test_members_learn_of_a_recall_by_a_moderator(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        key = command(server, "key", "add", f"key-of-{ann.user_id}", "--scope", "moderate")
        at_ann, at_ben = await ann.connect(), await ben.connect()
        sent = await ann.send(ben, "you fool")
        await at_ben.expect("SINGLE_CHAT", serverMsgId=sent["server_msg_id"])
        await by_key(here, key, "POST", f"/server/messages/{sent['server_msg_id']}/recall")
        for client in (at_ann, at_ben):
            told = await client.expect("MESSAGE_REVOKED", serverMsgId=sent["server_msg_id"])
            assert told["from"] == MODERATOR_ID
