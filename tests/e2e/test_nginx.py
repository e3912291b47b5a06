"""Nexo behind the nginx of `deploy/nginx.conf`: WebSocket, the client's address, an instance that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from harness.chat import Person, world
from harness.nginx import Nginx
from harness.server_process import ServerProcess

pytestmark = pytest.mark.servers


class Behind(ServerProcess):
    """A server that is reached through the proxy."""

    proxy: Nginx | None = None

    @property
    def address(self) -> str:
        return self.proxy.address if self.proxy else super().address

    @property
    def ws_address(self) -> str:
        return self.proxy.ws_address if self.proxy else super().ws_address


@pytest.fixture(scope="module")
def server() -> Iterator[Behind]:
    with Behind(
        log_level="debug",
        http__trusted_proxies="127.0.0.1",
        limits__connections_per_ip=2,
        gateway__heartbeat_s=1,
        gateway__idle_s=3,
    ) as running:
        gone = ServerProcess()  # nobody listens there: nginx goes on with the other one
        gone.start()
        gone.kill()
        with Nginx([gone.port, running.port]) as proxy:
            running.proxy = proxy
            yield running


async def open_from(person: Person, address: str, **headers: str) -> None:
    """A connection whose near end has this address; it stays open until the world ends."""
    client = await person.open(local_addr=(address, 0), headers=headers)
    await client.sign_in()


async def test_people_chat_through_the_proxy(server: Behind) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        sender, receiver = await ann.connect(), await ben.connect()
        ack = await sender.say(ben, "through nginx")
        pushed = await receiver.expect("SINGLE_CHAT", serverMsgId=ack["serverMsgId"])
        assert pushed["body"] == "through nginx"
        await asyncio.sleep(3.5)  # the server's pings come through and are answered, or it would be closed
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
    (line,) = [line for line in server.output.splitlines() if '"mine-1"' in line and '"request"' in line]
    assert '"address": "127.0.0.4"' in line


async def test_what_is_for_monitoring_stays_inside(server: Behind) -> None:
    async with httpx.AsyncClient(base_url=server.address, trust_env=False) as http:
        assert (await http.get("/metrics")).status_code == 403
        assert (await http.get("/readyz")).status_code == 200
        assert (await http.post("/msg/send", content=b"x" * 70_000)).status_code == 413
