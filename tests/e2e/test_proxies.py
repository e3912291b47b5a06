"""Nexo behind the proxies of `deploy/nginx.conf` and `deploy/haproxy.cfg`: WebSocket, the client's address, what stays
inside, an instance that is gone, and one that is frozen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from harness.chat import Person, world
from harness.haproxy import HaProxy
from harness.nginx import Nginx
from harness.server_process import ServerProcess
from harness.waiting import nothing_for, until
from nexo.api.middleware import BODY_MAX_BYTES

pytestmark = pytest.mark.servers


class Behind(ServerProcess):
    """A server that is reached through the proxy."""

    proxy: Nginx | HaProxy | None = None

    @property
    def address(self) -> str:
        return self.proxy.address if self.proxy else super().address

    @property
    def ws_address(self) -> str:
        return self.proxy.ws_address if self.proxy else super().ws_address


@pytest.fixture(scope="module", params=[Nginx, HaProxy])
def proxy_kind(request: pytest.FixtureRequest) -> type[Nginx] | type[HaProxy]:
    kind: type[Nginx] | type[HaProxy] = request.param
    return kind


@pytest.fixture(scope="module")
def server(proxy_kind: type[Nginx] | type[HaProxy]) -> Iterator[Behind]:
    with Behind(
        log_level="debug",
        http__trusted_proxies="127.0.0.1",
        limits__connections_per_ip=2,
        gateway__heartbeat_s=1,
        gateway__idle_s=3,
    ) as running:
        gone = ServerProcess()  # no server listens there: the proxy goes on with the other one
        gone.start()
        gone.kill()
        with proxy_kind([gone.port, running.port]) as proxy:
            running.proxy = proxy
            yield running


async def open_from(person: Person, address: str, **headers: str) -> None:
    """A connection whose near end has this address; it stays open until the world ends."""
    client = await person.open(local_addr=(address, 0), headers=headers)
    await client.sign_in()


async def logged_request(server: Behind, request_id: str) -> str:
    """The log line of this request, as soon as the server has written it: the answer may arrive before the line."""

    def find() -> str | None:
        lines = [line for line in server.output.splitlines() if f'"{request_id}"' in line and '"request"' in line]
        assert len(lines) <= 1
        return lines[0] if lines else None

    return await until(find, f"the log line of {request_id}") or ""


async def test_people_chat_through_the_proxy(server: Behind) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        sender, receiver = await ann.connect(), await ben.connect()
        ack = await sender.say(ben, "through the proxy")
        pushed = await receiver.expect("SINGLE_CHAT", serverMsgId=ack["serverMsgId"])
        assert pushed["body"] == "through the proxy"
        await nothing_for(3.5)  # the server's pings come through and are answered, or it would be closed
        assert (await sender.say(ben, "still here"))["msgSeq"] == 2


async def test_a_connection_counts_for_the_address_that_the_proxy_saw(server: Behind) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        for _ in range(2):
            await open_from(ann, "127.0.0.2")
        with pytest.raises(InvalidStatus) as refused:
            await open_from(ann, "127.0.0.2", **{"X-Forwarded-For": "203.0.113.9"})
        assert refused.value.response.status_code == 429, "what the client claims is not believed"
        await open_from(ann, "127.0.0.3")


async def test_a_request_is_logged_with_the_clients_address(server: Behind) -> None:
    transport = httpx.AsyncHTTPTransport(local_address="127.0.0.4")
    async with httpx.AsyncClient(base_url=server.address, transport=transport, trust_env=False) as http:
        answer = await http.get("/healthz", headers={"X-Forwarded-For": "203.0.113.9", "X-Request-Id": "mine-1"})
    assert answer.status_code == 200
    assert '"address": "127.0.0.4"' in await logged_request(server, "mine-1")


async def test_a_client_cannot_write_its_own_address(server: Behind) -> None:
    """Not even with entries that would be those of trusted proxies: the header is replaced, not extended."""
    transport = httpx.AsyncHTTPTransport(local_address="127.0.0.4")
    async with httpx.AsyncClient(base_url=server.address, transport=transport, trust_env=False) as http:
        made_up = {"X-Forwarded-For": "203.0.113.9, 127.0.0.1", "X-Request-Id": "mine-2"}
        assert (await http.get("/healthz", headers=made_up)).status_code == 200
    assert '"address": "127.0.0.4"' in await logged_request(server, "mine-2")


async def test_what_is_for_operators_stays_inside(server: Behind) -> None:
    async with httpx.AsyncClient(base_url=server.address, trust_env=False) as http:
        for path in ("/metrics", "/admin", "/admin/stats", "/%61dmin", "/admin/../admin", "/%6detrics"):
            assert (await http.get(path)).status_code == 403, path
        assert (await http.get("/readyz")).status_code == 200


async def test_the_proxy_takes_bodies_as_large_as_nexo_does(server: Behind) -> None:
    async with httpx.AsyncClient(base_url=server.address, trust_env=False) as http:
        allowed = await http.post("/auth/login", content=b"x" * BODY_MAX_BYTES)
        assert allowed.status_code == 400
        assert "err_msg" in allowed.json(), "it was Nexo that refused what is in it"
        refused = await http.post("/auth/login", content=b"x" * (BODY_MAX_BYTES + 1))
        assert refused.status_code == 413
        assert "err_msg" not in refused.text


async def test_requests_go_on_when_an_instance_is_frozen(proxy_kind: type[Nginx] | type[HaProxy]) -> None:
    with ServerProcess() as first, ServerProcess() as frozen, proxy_kind([first.port, frozen.port]) as proxy:
        async with httpx.AsyncClient(base_url=proxy.address, timeout=30, trust_env=False) as http:

            async def ask() -> float:
                begun = time.monotonic()
                assert (await http.get("/healthz")).status_code == 200
                return time.monotonic() - begun

            await asyncio.gather(*(ask() for _ in range(20)))
            with frozen.paused():
                # some wait for the proxy's time-out of five seconds and are repeated at the other instance
                begun = time.monotonic()
                assert max(await asyncio.gather(*(ask() for _ in range(20)))) < 15
                in_a_row = 0
                while in_a_row < 20:
                    in_a_row = in_a_row + 1 if await ask() < 1 else 0
                    assert time.monotonic() - begun < 30, "the proxy still sends requests to the frozen instance"


async def test_haproxy_lets_instances_answer_for_themselves_when_none_is_ready() -> None:
    """The database is gone for all: they answer `server_busy`, which clients understand, and keep their sockets."""
    checks = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal checks
        head = await reader.readuntil(b"\r\n\r\n")
        is_check = head.startswith(b"GET /readyz")
        checks += is_check
        status = b"503 Service Unavailable" if is_check else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as instance:
        port = instance.sockets[0].getsockname()[1]
        proxy = HaProxy([port, port])
        try:
            await asyncio.to_thread(proxy.start)
            await until(lambda: checks >= 8, "each of both failed its checks")
            async with httpx.AsyncClient(base_url=proxy.address, trust_env=False) as http:
                assert (await http.get("/conversation/list")).status_code == 200
        finally:
            await asyncio.to_thread(proxy.remove)
