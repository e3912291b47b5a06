"""The floor of the gateway: PING answered with PONG by each WebSocket implementation, and nothing behind it.

    .venv/bin/python bench/floor_ws.py                    both implementations, about ten seconds
    .venv/bin/python bench/floor_ws.py --rounds 4 --only picows

The server has one core to itself, the clients another. The implementations take turns in one run, because
the machine's mood changes; CPU time per message is steadier than answers per second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import msgspec
import psutil
import uvicorn
import uvloop
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness.ws_client import TEXT, frame, plain_headers, request_head
from nexo.gateway.links import MAKERS, make_protocol
from nexo.gateway.websocket import Accept, Limits, Link, Request, text_frame

MESSAGE_BYTES = 200


class Ping(msgspec.Struct, tag_field="type", tag="PING", rename="camel"):
    client_msg_id: str
    ts: int
    body: str


class Pong(msgspec.Struct, tag_field="type", tag="PONG", rename="camel"):
    client_msg_id: str
    ts: int


decode = msgspec.json.Decoder(Ping).decode
encode = msgspec.json.Encoder().encode
PING = Ping("0123456789abcdef01234567", 1_700_000_000_000, "")
PING.body = "x" * (MESSAGE_BYTES - len(encode(PING)))
REQUEST = frame(TEXT, encode(PING))
ANSWER_BYTES = len(text_frame(encode(Pong(PING.client_msg_id, PING.ts))))


class Answerer:
    """A peer as lean as can be: everything above it is the implementation's cost."""

    __slots__ = ("_answers", "_link")

    def __init__(self) -> None:
        self._answers: list[bytes] = []

    def opened(self, link: Link) -> None:
        self._link = link

    def text(self, payload: bytes) -> None:
        ping = decode(payload)
        self._answers.append(text_frame(encode(Pong(ping.client_msg_id, ping.ts))))

    def read_done(self) -> None:
        self._link.write(b"".join(self._answers))
        self._answers.clear()

    def binary(self) -> None: ...
    def seen(self) -> None: ...
    def too_big(self, limit: int) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def closed(self, code: int | None) -> None: ...


class OpenGate:
    def decide(self, request: Request) -> Accept:
        return Accept(Answerer())


async def no_http(scope: Any, receive: Any, send: Any) -> None: ...


def serve(implementation: str, port_fd: int) -> None:
    config = uvicorn.Config(
        cast(Any, no_http),
        http="httptools",
        ws=make_protocol(implementation, OpenGate(), Limits()),
        lifespan="off",
        log_config=None,
    )
    with socket.socket(fileno=port_fd) as listener:
        uvloop.run(uvicorn.Server(config).serve(sockets=[listener]))


class Asker(asyncio.Protocol):
    """Keeps a window of requests under way; answers all have one length, so counting bytes is enough."""

    answers = 0

    def __init__(self, window: int) -> None:
        self._window = window
        self._upgraded = False
        self._left_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(request_head("/ws", plain_headers()))

    def data_received(self, data: bytes) -> None:
        if not self._upgraded:
            assert data.startswith(b"HTTP/1.1 101 "), data
            self._upgraded = True
            self.transport.write(REQUEST * self._window)
            return
        count, self._left_bytes = divmod(self._left_bytes + len(data), ANSWER_BYTES)
        Asker.answers += count
        self.transport.write(REQUEST * count)


async def ask(port: int, connections: int, window: int, seconds: float, server: psutil.Process) -> tuple[float, float]:
    """Answers per second, and the server's CPU microseconds per answer."""
    loop = asyncio.get_running_loop()
    askers = [(await loop.create_connection(lambda: Asker(window), "127.0.0.1", port))[1] for _ in range(connections)]
    await asyncio.sleep(seconds / 4)
    answers, started, cpu = Asker.answers, time.perf_counter(), sum(server.cpu_times()[:2])
    await asyncio.sleep(seconds)
    answers = Asker.answers - answers
    elapsed, cpu = time.perf_counter() - started, sum(server.cpu_times()[:2]) - cpu
    for asker in askers:
        asker.transport.abort()
    return answers / elapsed, cpu / answers * 1e6


def measure(implementation: str, connections: int, window: int, seconds: float) -> tuple[float, float]:
    cores = sorted(os.sched_getaffinity(0))
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        command = [sys.executable, __file__, "--serve", implementation, "--fd", str(listener.fileno())]
        with subprocess.Popen(command, pass_fds=[listener.fileno()]) as server:
            try:
                os.sched_setaffinity(server.pid, cores[:1])
                os.sched_setaffinity(0, cores[-1:])
                port = listener.getsockname()[1]
                return uvloop.run(ask(port, connections, window, seconds, psutil.Process(server.pid)))
            finally:
                os.sched_setaffinity(0, cores)
                server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(MAKERS))
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each round, behind a quarter of warm-up")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--fd", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.fd)
        return

    names = [options.only] if options.only else sorted(MAKERS)
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            figures[name].append(measure(name, options.connections, options.window, options.seconds))

    title = f"{options.connections} connections, window {options.window}, {MESSAGE_BYTES}-byte JSON, median of rounds"
    table = Table(title=title)
    for column in ("implementation", "answers/s", "µs/message", "server CPU µs/message"):
        table.add_column(column, justify="left" if column == "implementation" else "right")
    for name, rounds in figures.items():
        rate = statistics.median(rate for rate, _ in rounds)
        cpu_us = statistics.median(cpu_us for _, cpu_us in rounds)
        table.add_row(name, f"{rate:,.0f}", f"{1e6 / rate:.2f}", f"{cpu_us:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
