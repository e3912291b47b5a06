"""`session.policy`: who has to go when the same user connects again, and what they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from harness.chat import Client, Person, world
from harness.server_process import ServerProcess

IOS, ANDROID, WEB = 1, 2, 5


@pytest.fixture(scope="module")
def single_server() -> Iterator[ServerProcess]:
    with ServerProcess(session__policy="single") as running:
        yield running


@pytest.fixture(scope="module")
def platform_server() -> Iterator[ServerProcess]:
    with ServerProcess(session__policy="per_platform") as running:
        yield running


async def connect(person: Person, platform_id: int, device_id: str) -> Client:
    return await person.connect(await person.log_in(platform_id, device_id))


async def assert_gone(client: Client, reason: str) -> None:
    await client.expect_error(reason)
    assert await client.expect_close() in range(4000, 4500), "it must not come back by itself"


async def assert_reached(client: Client, sender: Person) -> None:
    """The connection is registered: a message is pushed to it."""
    sent = await sender.send(client, "are you there?")
    await client.expect("SINGLE_CHAT", serverMsgId=sent["server_msg_id"])


async def test_under_multi_every_device_and_tab_lives(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        tabs = [await connect(ann, WEB, "browser") for _ in range(3)]
        phone = await connect(ann, IOS, "phone")
        sent = await ben.send(ann, "everywhere")
        for client in (*tabs, phone):
            await client.expect("SINGLE_CHAT", serverMsgId=sent["server_msg_id"])
            assert client.seen("ERROR") == []
        online = await ben.get("/user/online", user_ids=ann.user_id)
        assert online["users"][0]["platforms"] == [IOS, WEB]


async def test_under_single_another_device_kicks_the_older_one(single_server: ServerProcess) -> None:
    async with world(single_server) as here:
        ann, ben = await here.people("ann", "ben")
        phone = await connect(ann, IOS, "phone")
        desk = await connect(ann, WEB, "browser")
        await assert_gone(phone, "kicked")
        await assert_reached(desk, ben)


async def test_under_single_the_same_device_replaces_its_old_socket(single_server: ServerProcess) -> None:
    async with world(single_server) as here:
        ann, ben = await here.people("ann", "ben")
        old = await connect(ann, IOS, "phone")
        new = await connect(ann, IOS, "phone")
        await assert_gone(old, "replaced")
        await assert_reached(new, ben)


async def test_devices_without_an_id_are_different_devices(single_server: ServerProcess) -> None:
    async with world(single_server) as here:
        ann = await here.person("ann")
        old = await connect(ann, WEB, "")
        await connect(ann, WEB, "")
        await assert_gone(old, "kicked")


async def test_the_device_id_of_auth_counts_before_that_of_the_login(single_server: ServerProcess) -> None:
    async with world(single_server) as here:
        ann = await here.person("ann")
        tokens = await ann.log_in(WEB, "of the login")
        old = await ann.connect(tokens, device_id="of the frame")
        await ann.connect(await ann.log_in(WEB, "of another login"), device_id="of the frame")
        await assert_gone(old, "replaced")


async def test_under_per_platform_only_the_same_platform_has_to_go(platform_server: ServerProcess) -> None:
    async with world(platform_server) as here:
        ann, ben = await here.people("ann", "ben")
        phone = await connect(ann, IOS, "phone")
        desk = await connect(ann, WEB, "browser")
        pad = await connect(ann, IOS, "pad")
        await assert_gone(phone, "kicked")
        again = await connect(ann, IOS, "pad")
        await assert_gone(pad, "replaced")
        sent = await ben.send(ann, "both")
        for client in (desk, again):
            await client.expect("SINGLE_CHAT", serverMsgId=sent["server_msg_id"])


async def test_the_end_of_an_old_socket_never_unregisters_the_new_one(single_server: ServerProcess) -> None:
    async with world(single_server) as here:
        ann, ben = await here.people("ann", "ben")
        watcher = await ben.connect()
        await watcher.ask({"type": "PRESENCE", "subscribe": [ann.user_id]}, "PRESENCE")
        newest = await connect(ann, IOS, "phone")
        for _ in range(10):
            old, newest = newest, await connect(ann, IOS, "phone")
            old.cut()  # its end is noticed at some moment after the newcomer came
            await assert_reached(newest, ben)
        online = await ben.get("/user/online", user_ids=ann.user_id)
        assert online["users"][0]["online"] is True
        await watcher.settle()
        assert [told["users"][0]["online"] for told in watcher.seen("PRESENCE")] == [False, True]


async def test_of_many_newcomers_at_once_one_stays_and_nobody_is_refused(single_server: ServerProcess) -> None:
    async with world(single_server) as here:
        ann, ben = await here.people("ann", "ben")
        tokens = [await ann.log_in(WEB, f"device{i}") for i in range(8)]
        clients = [await ann.open() for _ in tokens]
        for client, login in zip(clients, tokens, strict=True):
            await client.send({"type": "AUTH", "token": login.access})
        await asyncio.gather(*(client.expect("AUTH_OK") for client in clients))
        *_, last = sorted(clients, key=lambda client: len(client.seen("ERROR")), reverse=True)
        for client in clients:
            if client is not last:
                await assert_gone(client, "kicked")
        await last.expect("RESEND_DONE")
        last.is_signed_in = True
        await assert_reached(last, ben)


async def test_the_limit_of_connections_per_user_never_refuses_a_newcomer_under_single() -> None:
    with ServerProcess(session__policy="single", limits__connections_per_user=1) as server:
        async with world(server) as here:
            ann = await here.person("ann")
            old = await connect(ann, WEB, "one")
            await connect(ann, WEB, "two")
            await assert_gone(old, "kicked")
