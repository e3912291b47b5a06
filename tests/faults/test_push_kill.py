"""The server that pushes is killed again and again while messages arrive for users who are away: each user is notified
of all of them in the end, and no token is in any log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from harness.cluster import cluster
from harness.receiver import Receiver, receiving
from harness.server_process import ServerProcess
from harness.waiting import until

AWAY = [f"away{number}" for number in range(5)]
PASSWORD = "correct horse"
SETTINGS: dict[str, Any] = {"push__wait_ms": 300, "journal__takeover_s": 1, "journal__poll_ms": 50}

_numbers = itertools.count()


@contextmanager
def embedded(url: str) -> Iterator[list[ServerProcess]]:
    with ServerProcess(**SETTINGS, push__hook__url=url) as server:
        yield [server]


@contextmanager
def two_instances(url: str) -> Iterator[list[ServerProcess]]:
    with cluster("postgresql", 2, **SETTINGS, push__hook__url=url) as running:
        yield running.instances


async def call(server: ServerProcess, token: str | None, path: str, /, **body: Any) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=server.address, timeout=30) as http:
        answer = (await http.post(path, json=body, headers=headers)).json()
    assert answer["err_code"] == 0, answer
    return answer["data"]


async def sign_up(server: ServerProcess, user: str) -> str:
    await call(server, None, "/user/register", user_id=user, password=PASSWORD)
    return str((await call(server, None, "/auth/login", user_id=user, password=PASSWORD))["access_token"])


def last_counts(receiver: Receiver) -> dict[str, int]:
    return {one["user_id"]: one["unread"] for one in receiver.taken}


@pytest.mark.slow
@pytest.mark.parametrize("running", [embedded, pytest.param(two_instances, marks=pytest.mark.servers)])
async def test_no_notification_is_lost_when_the_pushing_instance_is_killed(running: Any) -> None:
    async with receiving() as receiver:
        with running(receiver.url) as servers:
            first = servers[0]
            sender = await sign_up(first, "ann")
            for user in AWAY:
                token = await sign_up(first, user)
                device = {"kind": "hook", "token": f"hush-{user}", "device_id": "phone"}
                await call(first, token, "/push/register", **device)
            for server in (servers[0], servers[-1]):
                for user in AWAY:
                    body = {"client_msg_id": f"c{next(_numbers)}", "recv_id": user, "content": "hello"}
                    await call(server, sender, "/msg/send", **body)
                server.kill()  # notes wait, are being made, or are being sent
                server.start()
            await until(lambda: last_counts(receiver) == dict.fromkeys(AWAY, 2), lambda: str(last_counts(receiver)))
            assert "hush-" not in "".join(server.output for server in servers)
