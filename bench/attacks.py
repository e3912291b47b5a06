"""Attacks on a server with its default limits: what they cost it in memory, and the other users in time.

    .venv/bin/python bench/attacks.py                              all of them, a quarter of an hour
    .venv/bin/python bench/attacks.py --only pipelining,typing --seconds 5
    .venv/bin/python bench/attacks.py --seconds 5 --markdown docs/benchmarks.md     and write them into the page
    .venv/bin/python bench/attacks.py --url http://… --for 3600               beside a soak, at a moderate rate

Each attack has a server of its own on the embedded default. Honest users send 40 messages a second meanwhile, checked
by `nexo bench`: before, during and after the attack. Memory has to return to within 20 % of what it was, and the p99 of
the honest users may at most triple (a p99 below 20 ms is never too slow).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import http.client
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import websockets
from rich.console import Console
from rich.table import Table
from websockets import Subprotocol

from nexo.bench.processes import usage_of
from nexo.bench.server import SETTINGS, own_server
from nexo.config import Config
from page import replace_part

HONEST = "single --pairs 10 --rate 40 --warmup 1 --no-check --verify sample"
SETTLE_S = 12.0  # after an attack: time-outs, the sweep, a full run of the collector
MEMORY_SHARE = 1.2
P99_SHARE = 3.0
P99_FREE_MS = 20.0
ATTACKER = "127.0.0.2"  # attackers have an address of their own, as limits per address count them
# `own_server` takes the limits away, which are the defence here
DEFAULTS = {
    key: str(getattr(getattr(Config(), section), name)) for key in SETTINGS for section, _, name in [key.partition(".")]
}


class Target(NamedTuple):
    url: str
    host: str
    port: int
    pace: float  # seconds between two blows of one attacker; 0: as fast as they go


Attack = Callable[[Target, float], Awaitable[None]]


# -- how attackers reach it ---------------------------------------------------------------------------------------


async def connect(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(target.host, target.port, local_addr=(ATTACKER, 0))


async def write_until(
    target: Target, writer: asyncio.StreamWriter, ends_at: float, text: bytes, pause_s: float = 0.0
) -> None:
    """Write the same bytes again and again, and read nothing."""
    with contextlib.suppress(OSError, TimeoutError):
        while time.monotonic() < ends_at:
            writer.write(text)
            async with asyncio.timeout(max(0.1, ends_at - time.monotonic())):
                await writer.drain()
            await asyncio.sleep(max(pause_s, target.pace))


async def at_once(count: int, one: Callable[[int], Awaitable[None]]) -> None:
    await asyncio.gather(*(_forgiving(one(number)) for number in range(count)))


async def _forgiving(work: Awaitable[None]) -> None:
    with contextlib.suppress(OSError, TimeoutError, websockets.WebSocketException, EOFError):
        await work


def call(target: Target, method: str, path: str, body: Any = None, token: str = "") -> Any:
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
    connection = http.client.HTTPConnection(target.host, target.port, timeout=20, source_address=(ATTACKER, 0))
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        if answer.status != 200:
            raise OSError(f"{method} {path}: {found['err_msg']}")
        return found["data"]
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()


async def user(target: Target) -> tuple[str, str]:
    """Returns the id and token of a new user."""
    name = f"attacker-{random.getrandbits(48):x}"
    password = "correct horse battery"
    await asyncio.to_thread(call, target, "POST", "/user/register", {"user_id": name, "password": password})
    login = await asyncio.to_thread(call, target, "POST", "/auth/login", {"user_id": name, "password": password})
    return name, login["access_token"]


@contextlib.asynccontextmanager
async def socket_of(target: Target, token: str) -> Any:
    address = target.url.replace("http", "ws") + "/ws"
    async with websockets.connect(
        address, subprotocols=[Subprotocol("nexo.envelope.v1")], max_size=None, local_addr=(ATTACKER, 0)
    ) as socket:
        await socket.send(json.dumps({"type": "AUTH", "token": token}))
        yield socket


async def request_until(target: Target, ends_at: float, token: str, path: str) -> None:
    """Ask on one connection, one request after the other, and read every answer."""
    while time.monotonic() < ends_at:
        reader, writer = await connect(target)
        head = f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n".encode()
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            while time.monotonic() < ends_at:
                writer.write(head)
                async with asyncio.timeout(20):
                    found = (await reader.readuntil(b"\r\n\r\n")).lower()
                    length = int(found.split(b"content-length: ")[1].split(b"\r\n")[0])
                    await reader.readexactly(length)
                await asyncio.sleep(target.pace)
        writer.close()


# -- before signing in --------------------------------------------------------------------------------------------


async def pipelining(target: Target, seconds: float) -> None:
    """Requests without an end on a few connections; no answer is read."""
    ends_at = time.monotonic() + seconds
    requests = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 400

    async def one(number: int) -> None:
        _, writer = await connect(target)
        await write_until(target, writer, ends_at, requests)
        await asyncio.sleep(max(0.0, ends_at - time.monotonic()))
        writer.close()

    await at_once(4, one)


async def readers_that_do_not_read(target: Target, seconds: float) -> None:
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        while time.monotonic() < ends_at:
            _, writer = await connect(target)
            writer.write(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 8)
            await asyncio.sleep(min(3.0, max(0.1, ends_at - time.monotonic())))
            writer.close()

    await at_once(300, one)


async def slow_heads(target: Target, seconds: float) -> None:
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        while time.monotonic() < ends_at:
            _, writer = await connect(target)
            writer.write(b"POST /user/register HTTP/1.1\r\nhost: x\r\n")
            await write_until(target, writer, ends_at, b"x-a: b\r\n", 0.5)

    await at_once(300, one)


async def long_heads_and_bodies(target: Target, seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    head = b"GET / HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * 200_000 + b"\r\n\r\n"
    body = b"POST /auth/login HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n" + b"a" * 100_000

    async def one(number: int) -> None:
        while time.monotonic() < ends_at:
            reader, writer = await connect(target)
            writer.write(body if number % 2 else head)
            async with asyncio.timeout(5):
                await reader.read(65_536)
            writer.close()
            await asyncio.sleep(target.pace)

    await at_once(20, one)


async def padded_tokens(target: Target, seconds: float) -> None:
    """A valid token with ever different spaces around it."""
    ends_at = time.monotonic() + seconds
    _, token = await user(target)

    async def one(number: int) -> None:
        reader, writer = await connect(target)
        for count in range(1, 1_000_000):
            if time.monotonic() >= ends_at:
                break
            spaces = " " * (count % 3000 + number)
            writer.write(
                f"GET /user/info HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {spaces}{token}\r\n\r\n".encode()
            )
            async with asyncio.timeout(5):
                await reader.read(65_536)
            await asyncio.sleep(target.pace)
        writer.close()

    await at_once(8, one)


async def password_spraying(target: Target, seconds: float) -> None:
    """One password for ever other users."""
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        while time.monotonic() < ends_at:
            body = {"user_id": f"u{random.getrandbits(32):x}", "password": "password1"}
            with contextlib.suppress(OSError):
                await asyncio.to_thread(call, target, "POST", "/auth/login", body)
            await asyncio.sleep(max(0.01, target.pace))

    await at_once(16, one)


async def sockets_that_do_not_sign_in(target: Target, seconds: float) -> None:
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        while time.monotonic() < ends_at:
            address = target.url.replace("http", "ws") + "/ws"
            async with websockets.connect(
                address, subprotocols=[Subprotocol("nexo.command.v1")], local_addr=(ATTACKER, 0)
            ) as socket:
                while time.monotonic() < ends_at:
                    await socket.send(json.dumps({"cmd": "auth.refresh", "data": {"refresh_token": "x" * 40}}))
                    await asyncio.sleep(max(0.2, target.pace))

    await at_once(200, one)


# -- signed in ----------------------------------------------------------------------------------------------------


async def typing(target: Target, seconds: float) -> None:
    """Typing to receivers that do not exist, with long and odd names."""
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        _, token = await user(target)
        async with socket_of(target, token) as socket:
            for count in range(1_000_000):
                if time.monotonic() >= ends_at:
                    return
                name = f"{number}-{count}" + "x" * 60_000 if count % 2 else f"x\u0000{count}"
                await socket.send(json.dumps({"type": "TYPING", "to": name, "on": True}))
                await asyncio.sleep(max(1 / 50, target.pace))

    await at_once(4, one)


async def presence(target: Target, seconds: float) -> None:
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        _, token = await user(target)
        async with socket_of(target, token) as socket:
            for count in range(1_000_000):
                if time.monotonic() >= ends_at:
                    return
                names = [f"n{number}-{count}-{one}" for one in range(100)]
                await socket.send(json.dumps({"type": "PRESENCE", "subscribe": names}))
                await asyncio.sleep(max(1 / 50, target.pace))

    await at_once(4, one)


async def joining_and_leaving(target: Target, seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    _, owner = await user(target)
    members = [(await user(target))[0] for _ in range(2)]
    body = {"name": "open", "member_ids": members, "join_policy": "open"}
    group_id = (await asyncio.to_thread(call, target, "POST", "/group/create", body, owner))["group_id"]

    async def one(number: int) -> None:
        _, token = await user(target)
        while time.monotonic() < ends_at:
            for path in ("/group/join", "/group/quit"):
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(call, target, "POST", path, {"group_id": group_id}, token)
            await asyncio.sleep(target.pace)

    await at_once(8, one)


async def reading_history(target: Target, seconds: float) -> None:
    """Pages of 200 on 30 connections of one user."""
    name, token = await user(target)
    other, _ = await user(target)
    conversation = f"si_{':'.join(sorted((name, other)))}"
    for number in range(400):
        body = {"client_msg_id": f"c{number}", "recv_id": other, "content": "x" * 500}
        while True:
            try:
                await asyncio.to_thread(call, target, "POST", "/msg/send", body, token)
                break
            except OSError:  # the limit of sends
                await asyncio.sleep(0.2)
    ends_at = time.monotonic() + seconds
    path = f"/msg/history?conversation_id={conversation}&limit=200"
    await at_once(30, lambda number: request_until(target, ends_at, token, path))


async def searching(target: Target, seconds: float) -> None:
    """Questions about texts that were made to be slow to compare."""
    _, token = await user(target)
    other, _ = await user(target)
    words = " ".join("\u0644" + letter for letter in ("", "\u0644", "\u0647", "\u0627", "\u064a", "\u0645"))
    for number in range(40):
        body = {"client_msg_id": f"c{number}", "recv_id": other, "content": words + " " + "\ufdfa" * 3900 + " " + words}
        await asyncio.to_thread(call, target, "POST", "/msg/send", body, token)
    ends_at = time.monotonic() + seconds
    path = f"/msg/search?q={quote(words)}"
    await at_once(16, lambda number: request_until(target, ends_at, token, path))


async def large_frames(target: Target, seconds: float) -> None:
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        _, token = await user(target)
        while time.monotonic() < ends_at:
            async with socket_of(target, token) as socket:
                while time.monotonic() < ends_at:
                    await socket.send('{"type":"SINGLE_CHAT","body":"' + "x" * 2_000_000)
                    await asyncio.sleep(target.pace)

    await at_once(8, one)


async def sockets_that_do_not_read(target: Target, seconds: float) -> None:
    """Ask for much on many sockets and take no answer."""
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        _, token = await user(target)
        while time.monotonic() < ends_at:
            async with socket_of(target, token) as socket:
                socket.transport.pause_reading()
                while time.monotonic() < ends_at:
                    await socket.send(json.dumps({"type": "SYNC"}))
                    await asyncio.sleep(max(1 / 40, target.pace))

    await at_once(40, one)


ATTACKS: tuple[Attack, ...] = (
    pipelining,
    readers_that_do_not_read,
    slow_heads,
    long_heads_and_bodies,
    padded_tokens,
    password_spraying,
    sockets_that_do_not_sign_in,
    typing,
    presence,
    joining_and_leaving,
    reading_history,
    searching,
    large_frames,
    sockets_that_do_not_read,
)


# -- what it costs ------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    name: str
    rss_before_mib: float
    rss_highest_mib: float
    rss_after_mib: float
    p99_before_ms: float
    p99_during_ms: float

    @property
    def holds(self) -> bool:
        slow_ms = max(P99_FREE_MS, P99_SHARE * self.p99_before_ms)
        return self.rss_after_mib <= MEMORY_SHARE * self.rss_before_mib and self.p99_during_ms <= slow_ms


class Honest(NamedTuple):
    process: subprocess.Popen[str]
    file: Path


def honest_users(target: Target, seconds: float, folder: str) -> Honest:
    file = Path(folder) / f"honest-{time.monotonic_ns()}.json"
    command = [sys.executable, "-m", "nexo", "bench", *shlex.split(HONEST), "--seconds", f"{seconds:g}"]
    command += ["--url", target.url, "--json", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Honest(process, file)


async def p99_ms(honest: Honest) -> float:
    return await asyncio.to_thread(_p99_ms, honest)


def _p99_ms(honest: Honest) -> float:
    output, _ = honest.process.communicate()
    if honest.process.returncode:
        raise SystemExit(f"the honest users did not get what they were promised: {output[-1500:]}")
    return float(json.loads(honest.file.read_text())["latencies"]["saved"]["p99"])


def _rss_mib(pid: int) -> float:
    return usage_of([pid]).rss_bytes / 2**20


async def measure(attack: Attack, seconds: float) -> Cost:
    with own_server(settings=DEFAULTS) as server, tempfile.TemporaryDirectory() as folder:
        host, port = server.url.removeprefix("http://").split(":")
        target = Target(server.url, host, int(port), 0.0)
        p99_before = await p99_ms(honest_users(target, min(5.0, seconds), folder))
        before = _rss_mib(server.pid)
        highest = before

        async def watch() -> None:
            nonlocal highest
            while True:
                highest = max(highest, _rss_mib(server.pid))
                await asyncio.sleep(0.2)

        watching = asyncio.create_task(watch())
        honest = honest_users(target, seconds, folder)
        await attack(target, seconds + 1.5)
        p99_during = await p99_ms(honest)
        await asyncio.sleep(SETTLE_S)
        watching.cancel()
        return Cost(attack.__name__, before, highest, _rss_mib(server.pid), p99_before, p99_during)


def markdown(costs: list[Cost], seconds: float) -> str:
    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
    lines = [
        f"{seconds:g} s of each attack, recorded {now} (load {os.getloadavg()[0]:.1f} at the end).",
        "",
        "| attack | memory before, MiB | highest | after | p99 of others before, ms | during | |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for cost in costs:
        figures = " | ".join(f"{value:.1f}" for value in cost[1:])
        lines.append(f"| {cost.name.replace('_', ' ')} | {figures} | {'holds' if cost.holds else '**too much**'} |")
    return "\n".join(lines)


async def accompany(url: str, seconds: float) -> None:
    """All attacks in turn, gently, on a server that something else measures."""
    host, port = url.removeprefix("http://").split(":")
    target = Target(url, host, int(port), 0.05)
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        for attack in ATTACKS:
            with contextlib.suppress(OSError):
                await attack(target, min(20.0, max(1.0, ends_at - time.monotonic())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="only these: " + ", ".join(attack.__name__ for attack in ATTACKS))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--url", help="a running server, attacked gently for --for seconds; nothing is measured")
    parser.add_argument("--for", dest="duration", type=float, default=3600.0)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--markdown", type=Path, help="the page whose generated part is to be replaced")
    options = parser.parse_args()
    if options.url:
        asyncio.run(accompany(options.url, options.duration))
        return
    chosen = [attack for attack in ATTACKS if not options.only or attack.__name__ in options.only.split(",")]
    costs = []
    for attack in chosen:
        costs.append(asyncio.run(measure(attack, options.seconds)))
        print(costs[-1], flush=True)
        if options.markdown:  # a run that is cut off leaves what it has measured
            replace_part(options.markdown, "attacks.py", markdown(costs, options.seconds))
    table = Table("attack", "MiB before", "highest", "after", "p99 before", "p99 during", "")
    for cost in costs:
        figures = [f"{value:.1f}" for value in cost[1:]]
        table.add_row(cost.name.replace("_", " "), *figures, "holds" if cost.holds else "TOO MUCH")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps([cost._asdict() for cost in costs], indent=1))
    sys.exit(0 if all(cost.holds for cost in costs) else 1)


if __name__ == "__main__":
    main()
