"""What the Python SDK offers to a product's backend, with a real server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from harness.server_process import ServerProcess
from harness.waiting import until
from nexo_client import ClientError, NexoBackend

ALL = "users,tokens,act,events"


@pytest.fixture(scope="module")
def product() -> Iterator[tuple[ServerProcess, str]]:
    """A server, and a key for everything."""
    with ServerProcess() as running:
        made = running.run("key", "add", "shop", "--scope", ALL)
        assert made.returncode == 0, made.stderr
        yield running, made.stdout.strip()


@asynccontextmanager
async def backend_of(product: tuple[ServerProcess, str]) -> AsyncIterator[NexoBackend]:
    server, key = product
    async with NexoBackend(server.address, key) as backend:
        yield backend


def fresh(name: str) -> str:
    return f"{name}.{secrets.token_hex(4)}"


async def test_users_are_made_changed_and_disabled(product: tuple[ServerProcess, str]) -> None:
    async with backend_of(product) as backend:
        ann = fresh("ann")
        made = await backend.users.put([{"user_id": ann, "nickname": "Ann", "extra": {"plan": "gold"}}])
        assert [(user.user_id, user.extra) for user in made] == [(ann, {"plan": "gold"})]
        await backend.users.put([{"user_id": ann, "nickname": "Ann B."}])
        await backend.users.disable(ann, "asked for it")
        found = await backend.users.get(ann)
        assert (found.nickname, found.disabled, found.disabled_reason) == ("Ann B.", True, "asked for it")
        with pytest.raises(ClientError) as refused:
            await backend.tokens.create(ann)
        assert refused.value.reason == "user_disabled"
        await backend.users.enable(ann)
        assert not (await backend.users.get(ann)).disabled
        with pytest.raises(ClientError) as missing:
            await backend.users.get(fresh("nemo"))
        assert (missing.value.reason, missing.value.status) == ("user_not_found", 404)


async def test_the_backend_acts_for_its_users(product: tuple[ServerProcess, str]) -> None:
    async with backend_of(product) as backend:
        ann, ben, cid = fresh("ann"), fresh("ben"), fresh("cid")
        await backend.users.put([{"user_id": user_id} for user_id in (ann, ben, cid)])
        acting = backend.act(ann)
        sent = await acting.send("Your order is on its way", to=ben, client_msg_id="order-1")
        again = await acting.send("Your order is on its way", to=ben, client_msg_id="order-1")
        assert (sent.seq, again.server_msg_id) == (1, sent.server_msg_id)
        page = await backend.act(ben).history(sent.conversation_id)
        assert [(one.sender_id, one.content) for one in page.messages] == [(ann, "Your order is on its way")]
        await backend.act(ben).mark_read(sent.conversation_id, 1)
        group = await acting.groups.create("Order 1", [ben, cid])
        in_group = await acting.send("Welcome", group_id=group.group_id)
        assert in_group.conversation_id == group.conversation_id
        await acting.recall(in_group.server_msg_id)
        assert (await acting.users.info()).user_id == ann
        assert (await acting.call("GET", "/user/info"))["user_id"] == ann
        with pytest.raises(ClientError) as refused:
            await backend.call("GET", "/user/info")
        assert refused.value.reason == "missing_user"


async def test_a_client_signs_in_by_the_backends_tokens_and_its_session_is_revoked(
    product: tuple[ServerProcess, str],
) -> None:
    async with backend_of(product) as backend:
        ann = fresh("ann")
        await backend.users.put([{"user_id": ann}])
        token = await backend.tokens.create(ann, platform_id=7, device_id="phone", ttl_s=600)
        assert (token.user_id, token.device_id, token.refresh_token) == (ann, "phone", "")
        assert token.access_token not in repr(token)
        assert await backend.sessions.revoke(ann, "phone") == 1


# -- events, from a server that is only their route -------------------------------------------------------------------


class EventServer:
    """Answers `GET /server/events` from a list; `failures` are answered first."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.failures: list[tuple[int, str]] = []
        self.asked: list[dict[str, str]] = []
        self.added = asyncio.Event()
        self.url = ""

    def add(self, kind: str, count: int = 1) -> None:
        for _ in range(count):
            number = len(self.events) + 1
            self.events.append({"event_id": str(number), "type": kind, "at": number, "data": {"number": number}})
        self.added.set()

    async def _answer(self, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if self.failures:
            status, name = self.failures.pop(0)
            return status, {"err_code": 1, "err_msg": name, "retry_after_ms": 1}
        cursor = query.get("cursor")
        begin = len(self.events) if cursor is None else 0 if cursor == "begin" else int(cursor.removeprefix("c"))
        if begin >= len(self.events) and int(query["wait_s"]):
            self.added.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.added.wait(), int(query["wait_s"]))
        page = self.events[begin : begin + int(query["limit"])]
        types = query["types"].split(",") if "types" in query else None
        found = [event for event in page if types is None or event["type"] in types]
        return 200, {"err_code": 0, "err_msg": "", "data": {"events": found, "next_cursor": f"c{begin + len(page)}"}}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                assert "authorization: bearer nexo_sk_test" in head.lower()
                query = dict(parse_qsl(urlsplit(head.split(" ", 2)[1]).query))
                self.asked.append(query)
                status, body = await self._answer(query)
                data = json.dumps(body).encode()
                writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        writer.close()


@asynccontextmanager
async def event_server() -> AsyncIterator[EventServer]:
    made = EventServer()
    listener = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        listener.close()


async def test_events_are_followed_and_continue_from_the_cursor_that_was_stored() -> None:
    async with event_server() as server, NexoBackend(server.url, "nexo_sk_test") as backend:
        server.add("user.created", 3)
        stream = backend.events("begin", limit=2)
        first, second, third = [await anext(stream) for _ in range(3)]
        assert [event.data["number"] for event in (first, second, third)] == [1, 2, 3]
        assert (first.cursor, second.cursor, third.cursor) == ("begin", "c2", "c3")
        assert stream.cursor == "c2"  # the third is being handled
        follow = asyncio.create_task(anext(stream))
        await until(lambda: server.asked[-1].get("cursor") == "c3")
        server.add("message.saved")
        assert (await follow).type == "message.saved"
        again = backend.events(second.cursor)
        assert (await anext(again)).event_id == "3"


async def test_without_a_cursor_only_what_follows_is_received() -> None:
    async with event_server() as server, NexoBackend(server.url, "nexo_sk_test") as backend:
        server.add("user.created", 3)
        stream = backend.events(types=["message.saved", "message.recalled"])
        follow = asyncio.create_task(anext(stream))
        await until(lambda: len(server.asked) == 2)  # the first gives the place, the second waits there
        assert (server.asked[0]["wait_s"], server.asked[1]["cursor"]) == ("0", "c3")
        assert server.asked[1]["types"] == "message.saved,message.recalled"
        server.add("user.updated")
        server.add("message.saved")
        assert (await follow).event_id == "5"


async def test_an_error_that_may_pass_is_waited_for_and_another_is_raised() -> None:
    async with event_server() as server, NexoBackend(server.url, "nexo_sk_test") as backend:
        server.add("user.created")
        server.failures = [(503, "server_busy"), (500, "internal_error")]
        assert (await anext(backend.events("begin"))).event_id == "1"
        server.failures = [(410, "cursor_expired")]
        with pytest.raises(ClientError) as raised:
            await anext(backend.events("c0"))
        assert raised.value.reason == "cursor_expired"


@pytest.mark.parametrize("key", ["", "\n", "nexo_sk_te st", "nexo_sk_té", "nexo_sk_one\nnexo_sk_two"])
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ClientError, match="bad_key") as raised:
        NexoBackend("http://127.0.0.1:1", key)
    assert "nexo_sk" not in str(raised.value)


async def test_a_key_read_from_a_file_may_end_its_line() -> None:
    async with event_server() as server, NexoBackend(server.url, "nexo_sk_test\n") as backend:
        server.add("user.created")
        assert (await anext(backend.events("begin"))).event_id == "1"


def test_an_address_without_a_scheme_is_refused_at_once() -> None:
    with pytest.raises(ClientError, match="bad_url"):
        NexoBackend("127.0.0.1:8900", "nexo_sk_test")


async def test_events_that_cannot_be_fetched_are_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with event_server() as server, NexoBackend(server.url, "nexo_sk_test") as backend:
        server.add("user.created")
        server.failures = [(503, "server_busy")] * 3
        assert (await anext(backend.events("begin"))).event_id == "1"
    (line,) = [record.getMessage() for record in caplog.records if record.name == "nexo_client"]
    assert line.startswith("events cannot be fetched (server_busy: ")


async def test_the_real_route_gives_what_was_committed_in_order(product: tuple[ServerProcess, str]) -> None:
    async with backend_of(product) as backend:
        ann, ben = fresh("ann"), fresh("ben")
        stream = backend.events(types=["message.saved"], limit=2)
        first = asyncio.create_task(anext(stream))
        await until(lambda: stream.cursor is not None)
        await backend.users.put([{"user_id": ann}, {"user_id": ben}])
        for number in range(5):
            await backend.act(ann).send(str(number), to=ben)
        async with asyncio.timeout(30):
            found = [await first, *[await anext(stream) for _ in range(4)]]
        assert [event.data["content"] for event in found] == ["0", "1", "2", "3", "4"]
        assert {event.conversation_id for event in found} == {f"si_{ann}:{ben}"}
        again = backend.events(found[-1].cursor, types=["message.saved"])
        await backend.act(ann).send("after", to=ben)
        async with asyncio.timeout(30):
            assert (await anext(again)).data["content"] == "after"
