"""Names that users choose, and whose servers do not answer, delay nothing that operators have named."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from harness.waiting import until
from nexo.core.push import PushTarget
from nexo.outgoing import lookups
from nexo.outgoing.addresses import parse_target, resolve
from nexo.push.ports import PushRequest
from nexo.push.web import WebPush, _encode
from nexo.push.web_crypto import encode_base64url, public_of

NO_ANSWER = ".does-not-answer.example"


@pytest.fixture
def silent_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names below `NO_ANSWER` are looked up until the test ends. Returns those."""
    asked: list[str] = []
    over = threading.Event()
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *rest: Any, **more: Any) -> Any:
        if str(host).endswith(NO_ANSWER):
            asked.append(host)
            over.wait()
            raise socket.gaierror("no answer")
        return look_up(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    for name in ("USERS", "OPERATORS"):
        monkeypatch.setattr(getattr(lookups, name), "_under_way", {})
    yield asked
    over.set()


def _request(host: str) -> PushRequest:
    key = public_of(ec.generate_private_key(ec.SECP256R1()))
    subscription = {"endpoint": f"https://{host}/x", "keys": {"p256dh": key, "auth": encode_base64url(bytes(16))}}
    target = PushTarget(1, "ann", "web", _encode(subscription).decode(), "d", "en")
    return PushRequest(target, {"tag": "t"}, 60, is_urgent=False)


async def test_silent_name_servers_of_users_hold_up_no_other_name(
    silent_servers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "UNDER_WAY_MAX", 8)
    web = WebPush(ec.generate_private_key(ec.SECP256R1()), "mailto:a@b.example", 60.0, allow_private=False)
    hosts = [f"h{number}{NO_ANSWER}" for number in range(8)]
    sending = [asyncio.create_task(web.send(_request(host))) for host in hosts * 2]
    await until(lambda: sorted(silent_servers) == hosts, "each name is looked up, once")
    assert await resolve(parse_target("http://localhost/hook"), allow_private=True)
    assert await asyncio.get_running_loop().getaddrinfo("localhost", 80)
    with pytest.raises(OSError, match="8 names are being looked up"):
        await lookups.USERS.find(f"one-more{NO_ANSWER}", 443)
    for task in sending:
        task.cancel()
    assert all(isinstance(one, BaseException) for one in await asyncio.gather(*sending, return_exceptions=True))


async def test_a_name_that_is_none_is_an_error_of_the_network() -> None:
    for host in ("x" * 64 + ".example", "a..b.example"):
        with pytest.raises(OSError):
            await lookups.OPERATORS.find(host, 80)
