"""A process that sends: `python writer.py URL`, then a plan (JSON, one line) on standard input.

It answers READY when its store is open, sends when it hears GO, and says for every acknowledged send
`ACK client_msg_id server_msg_id conversation_id seq send_at fresh`, at once and in one piece, for every
refusal `ERR client_msg_id name`, and at the end DONE. What is refused for now is tried again, as a client does.
A plan may want it to stop (SIGSTOP) right before it commits for the first time, with all its locks.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import msgspec
import uvloop

from harness.waiting import time_passes
from nexo.background import Background
from nexo.config import load
from nexo.errors import NexoError
from nexo.service.filter import FilterFile
from nexo.service.send import Sending
from nexo.store.store import Store


class Stream(msgspec.Struct):
    """Messages `first`, `first` + 1 … (below `end`, or for ever) of one sender, to the targets in turn."""

    sender: str
    prefix: str
    targets: list[dict[str, str]]
    first: int = 0
    end: int | None = None
    inflight: int = 1
    pause_s: float = 0.0  # after each message, for runs that take long


class Plan(msgspec.Struct):
    streams: list[Stream]
    settings: dict[str, Any] = {}
    stop_before_commit: bool = False


def say(line: str) -> None:
    # One write for one line: a process that is killed has said all of it or nothing.
    os.write(1, line.encode() + b"\n")


async def send(sending: Sending, stream: Stream, number: int) -> None:
    client_msg_id = f"{stream.prefix}{number}"
    target = stream.targets[number % len(stream.targets)]
    while True:
        try:
            sent = await sending.send(
                stream.sender, client_msg_id=client_msg_id, content=f"this is {client_msg_id}", **target
            )
        except NexoError as error:
            say(f"ERR {client_msg_id} {error.name}")
            if not error.row.retry:
                raise
            await time_passes(0.02)
        else:
            message = sent.message
            say(
                f"ACK {client_msg_id} {message.server_msg_id} {message.conversation_id} {message.seq} "
                f"{message.send_at} {int(sent.fresh)}"
            )
            break
    if stream.pause_s:
        await time_passes(stream.pause_s)


async def run_stream(sending: Sending, stream: Stream) -> None:
    number = stream.first
    waiting: set[asyncio.Task[None]] = set()
    while stream.end is None or number < stream.end or waiting:
        while len(waiting) < stream.inflight and (stream.end is None or number < stream.end):
            waiting.add(asyncio.create_task(send(sending, stream, number)))
            number += 1
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


def stop_before_commit(store: Store) -> None:
    driver: Any = store.database.engine._driver  # type: ignore[attr-defined]
    command = driver.command

    async def stopping(connection: Any, word: str) -> None:
        if word == "COMMIT":
            driver.command = command
            os.kill(os.getpid(), signal.SIGSTOP)
        await command(connection, word)

    driver.command = stopping


async def run(url: str, lines: asyncio.StreamReader) -> None:
    plan = msgspec.json.decode(await lines.readline(), type=Plan)
    store = Store(load(env={}, flags={"store.url": url, **plan.settings}), Background())
    await store.open()
    try:
        say("READY")
        if await lines.readline():
            if plan.stop_before_commit:
                stop_before_commit(store)
            sending = Sending(store.messages, FilterFile(None, "off"))
            async with asyncio.TaskGroup() as group:
                for stream in plan.streams:
                    group.create_task(run_stream(sending, stream))
            say("DONE")
    finally:
        await store.close()


async def main(url: str) -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    stdin, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    try:
        await run(url, lines)
    finally:
        stdin.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
