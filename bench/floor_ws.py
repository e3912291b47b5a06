"""Rows G1 and G2: the gateway against its floor, a server with the same WebSocket implementation and nothing behind.

    .venv/bin/python bench/floor_ws.py                       PING and fan-out, floor and Nexo in turn
    .venv/bin/python bench/floor_ws.py --acts ping --subjects picows,websockets --rounds 4

The server has one core to itself, this script another. The same clients, which only count frames, ask all servers in
one run, because the speed of the machine varies; CPU time per frame is steadier than frames per second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import uvicorn
import uvloop
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from load import call, register
from nexo.bench.http import ServerAddress
from nexo.bench.processes import usage_of
from nexo.bench.server import own_server
from nexo.bench.websocket import client_frame, upgrade_request
from nexo.transport.implementations import MAKERS, make_protocol
from nexo.transport.websocket import Accept, Link, SocketLimits, UpgradeRequest
from nexo.wire.framing import text_frame

MESSAGE_BYTES = 200
BODY = "x" * 100
WINDOW = 8  # PINGs under way on each connection; messages under way to the group
MEMBERS = 1000
SENDERS = 20
SIGNED_IN = b'"RESEND_DONE"'


class Ping(msgspec.Struct, tag_field="type", tag="PING", rename="camel"):
    client_msg_id: str
    ts: int
    body: str


class Pong(msgspec.Struct, tag_field="type", tag="PONG", rename="camel"):
    client_msg_id: str
    ts: int


class Said(msgspec.Struct, tag_field="type", tag="GROUP_CHAT", rename="camel"):
    """A group message with the fewest fields, in the length that Nexo's have."""

    client_msg_id: str
    group_id: str
    body: str
    server_msg_id: str = "380465970784763904"
    msg_seq: int = 4711
    msg_type: int = 1
    from_: str = msgspec.field(default="member-17", name="from")
    conversation_id: str = "sg_g_j1ScjXESgdfj"
    ts: int = 1_794_777_356_151


decode = msgspec.json.Decoder(Ping | Said).decode
encode = msgspec.json.Encoder().encode
PING = Ping("0123456789abcdef01234567", 1_700_000_000_000, "")
PING.body = "x" * (MESSAGE_BYTES - len(encode(PING)))


# -- the floor --------------------------------------------------------------------------------------------------


class Answerer:
    """A peer as lean as can be: everything above it is the implementation's cost. What one read brought is
    answered, or sent to all connections, in one write per connection."""

    __slots__ = ("_answers", "_everybody", "_link", "_said")

    def __init__(self, everybody: list[Link]) -> None:
        self._answers: list[bytes] = []
        self._said: list[bytes] = []
        self._everybody = everybody

    def opened(self, link: Link) -> None:
        self._link = link
        self._everybody.append(link)

    def text(self, payload: bytes) -> None:
        heard = decode(payload)
        if type(heard) is Ping:
            self._answers.append(text_frame(encode(Pong(heard.client_msg_id, heard.ts))))
        else:
            self._said.append(text_frame(encode(heard)))

    def read_done(self) -> None:
        if self._answers:
            self._link.write(b"".join(self._answers))
            self._answers.clear()
        if self._said:
            joined = b"".join(self._said)
            self._said.clear()
            for link in self._everybody:
                link.write(joined)

    def binary(self, payload: bytes) -> None: ...
    def seen(self) -> None: ...
    def too_big(self, limit: int) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...

    def closed(self, code: int | None) -> None:
        self._everybody.remove(self._link)


class OpenGate:
    def __init__(self) -> None:
        self._everybody: list[Link] = []

    def decide(self, request: UpgradeRequest) -> Accept:
        return Accept(Answerer(self._everybody))


async def no_http(scope: Any, receive: Any, send: Any) -> None: ...


def serve(implementation: str, port_fd: int) -> None:
    config = uvicorn.Config(
        cast(Any, no_http),
        http="httptools",
        ws=make_protocol(implementation, OpenGate(), SocketLimits()),
        lifespan="off",
        log_config=None,
    )
    with socket.socket(fileno=port_fd) as listener:
        uvloop.run(uvicorn.Server(config).serve(sockets=[listener]))


# -- the clients ----------------------------------------------------------------------------------------------


class Listener(asyncio.Protocol):
    """Counts the frames that come and looks into none of them, once it is signed in."""

    def __init__(self, tally: Tally, address: ServerAddress, token: str) -> None:
        self._tally = tally
        self._upgrade = upgrade_request(address, "/ws", "nexo.envelope.v1" if token else "")
        self._hello = client_frame(encode({"type": "AUTH", "token": token})) if token else b""
        self.ready = asyncio.get_running_loop().create_future()
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._upgrade)

    def connection_lost(self, error: Exception | None) -> None:
        self._tally.lost += 1
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(f"not let in: {self._buffer[:200]!r}"))

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            self._sign_in(data)
            return
        buffer = self._buffer + data if self._buffer else data
        position, total, count = 0, len(buffer), 0
        while total - position >= 4:
            size = buffer[position + 1]
            end = position + 2 + size
            if size == 126:
                end = position + 4 + (buffer[position + 2] << 8 | buffer[position + 3])
            if end > total:
                break
            position = end
            count += 1
        self._buffer = buffer[position:]
        self._tally.count(self, count)

    def _sign_in(self, data: bytes) -> None:
        self._buffer += data
        if self._hello and b"\r\n\r\n" in self._buffer:
            self.transport.write(self._hello)
            self._hello, self._buffer = b"", b" "
        elif SIGNED_IN in self._buffer or self._buffer.startswith(b"HTTP/1.1 101"):
            self._buffer = b""
            self.ready.set_result(None)


class Tally:
    """What all listeners of one server counted; a driver that is set reacts to it."""

    def __init__(self) -> None:
        self.frames = 0
        self.lost = 0
        self.driver: Any = None

    def count(self, listener: Listener, frames: int) -> None:
        self.frames += frames
        if self.driver is not None:
            self.driver(listener, frames)


class Subject:
    """A server with listeners on it."""

    def __init__(self, name: str, url: str, pid: int) -> None:
        self.name = name
        self.address = ServerAddress(url)
        self.pid = pid
        self.tally = Tally()
        self.listeners: list[Listener] = []
        self.group_id = "g_j1ScjXESgdfj"

    async def connect(self, count: int) -> None:
        tokens = [""] * count
        if self.name == "nexo":
            names = [f"m{i}" for i in range(count)]
            port = self.address.port
            known = await asyncio.to_thread(register, port, names)
            tokens = [known[name] for name in names]
            group = {"name": "all", "member_ids": names[1:]}
            self.group_id = (await asyncio.to_thread(call, port, "/group/create", group, tokens[0]))["group_id"]
        loop = asyncio.get_running_loop()
        for token in tokens:
            _, listener = await loop.create_connection(
                lambda token=token: Listener(self.tally, self.address, token), self.address.host, self.address.port
            )
            await listener.ready
            self.listeners.append(listener)

    async def measure(self, act: str, seconds: float) -> tuple[float, float]:
        """Frames per second, and the server's CPU microseconds per frame."""
        drive = self._ping if act == "ping" else self._fan_out
        drive()
        await asyncio.sleep(seconds / 4)
        frames, began, cpu_s = self.tally.frames, time.perf_counter(), usage_of([self.pid]).cpu_s
        await asyncio.sleep(seconds)
        frames = self.tally.frames - frames
        took_s, cpu_s = time.perf_counter() - began, usage_of([self.pid]).cpu_s - cpu_s
        self.tally.driver = None
        await asyncio.sleep(0.3)  # what is under way
        if self.tally.lost or not frames:
            raise AssertionError(f"{self.name}: {self.tally.lost} connections were lost, {frames} frames came")
        return frames / took_s, cpu_s / frames * 1e6

    def _ping(self) -> None:
        request = client_frame(encode(PING))
        self.tally.driver = lambda listener, frames: listener.transport.write(request * frames)
        for listener in self.listeners:
            listener.transport.write(request * WINDOW)

    def _fan_out(self) -> None:
        """The next message leaves when all receivers have the one eight before it (its author has its answer)."""
        source, sent, begun = random.Random(os.urandom(8)), 0, self.tally.frames
        members = len(self.listeners)

        def drive(listener: Listener | None, frames: int) -> None:
            nonlocal sent
            while self.tally.frames - begun >= (sent - WINDOW + 1) * members:
                message = {
                    "type": "GROUP_CHAT",
                    "clientMsgId": f"{source.getrandbits(96):024x}",
                    "groupId": self.group_id,
                    "body": BODY,
                }
                self.listeners[sent % SENDERS].transport.write(client_frame(encode(message)))
                sent += 1

        self.tally.driver = drive
        drive(None, 0)


@contextlib.contextmanager
def floor(implementation: str, cores: set[int]) -> Iterator[Subject]:
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        command = [sys.executable, __file__, "--serve", implementation, "--fd", str(listener.fileno())]
        with subprocess.Popen(command, pass_fds=[listener.fileno()]) as server:
            try:
                os.sched_setaffinity(server.pid, cores)
                yield Subject(implementation, f"http://127.0.0.1:{listener.getsockname()[1]}", server.pid)
            finally:
                server.terminate()


@contextlib.contextmanager
def nexo(cores: set[int]) -> Iterator[Subject]:
    # a thousand members online would get notices by the default strategy
    with own_server("", {"group.strategy.mode": "push"}, cores) as own:
        yield Subject("nexo", own.url, own.pid)


async def measure(subjects: list[Subject], act: str, rounds: int, seconds: float) -> dict[str, Any]:
    for subject in subjects:
        await subject.connect(100 if act == "ping" else MEMBERS)
    found: dict[str, dict[str, list[float]]] = {subject.name: {"per_s": [], "cpu_us": []} for subject in subjects}
    for _ in range(rounds):
        for subject in subjects:
            per_s, cpu_us = await subject.measure(act, seconds)
            found[subject.name]["per_s"].append(per_s)
            found[subject.name]["cpu_us"].append(cpu_us)
    for subject in subjects:
        for listener in subject.listeners:
            listener.transport.abort()
    return found


def compare(names: list[str], act: str, rounds: int, seconds: float) -> dict[str, Any]:
    cores = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        os.sched_setaffinity(0, cores[-1:])
        stack.callback(os.sched_setaffinity, 0, cores)
        subjects = [
            stack.enter_context(nexo(set(cores[:1])) if name == "nexo" else floor(name, set(cores[:1])))
            for name in names
        ]
        return uvloop.run(measure(subjects, act, rounds, seconds))


def table_of(act: str, found: dict[str, Any]) -> Table:
    table = Table(title="PING, 100 connections, window 8" if act == "ping" else f"one group of {MEMBERS}")
    for column in ("server", "frames/s", "server CPU µs/frame", "× the first"):
        table.add_column(column, justify="left" if column == "server" else "right")
    first = statistics.median(next(iter(found.values()))["per_s"])
    for name, figures in found.items():
        per_s, cpu_us = statistics.median(figures["per_s"]), statistics.median(figures["cpu_us"])
        table.add_row(name, f"{per_s:,.0f}", f"{cpu_us:.2f}", f"{per_s / first:.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--acts", default="ping,group")
    parser.add_argument("--subjects", default="picows,nexo", help=f"of {', '.join(sorted(MAKERS))} and nexo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each round, behind a quarter of warm-up")
    parser.add_argument("--json", type=Path, help="write what was found to this file, too")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--fd", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.fd)
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    found = {}
    for act in options.acts.split(","):
        found[act] = compare(options.subjects.split(","), act, options.rounds, options.seconds)
        Console(width=120).print(table_of(act, found[act]))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
