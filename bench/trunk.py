"""Counts the files that one message passes and the calls that change file, as a profiler sees them.

    .venv/bin/python bench/trunk.py
    .venv/bin/python bench/trunk.py --list

A server on the embedded default runs in this process; alice sends bob a message over the envelope dialect. Counted is
every call of a function of Nexo, on the event loop and in the writer thread, from reading alice's frame until her ACK
and bob's copy have been written. A call changes file when its caller stands in another one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import msgspec
import uvloop
import websockets

import nexo
from nexo.app import serve
from nexo.config import Config

SOURCE = str(Path(nexo.__file__).parent)
MUST_CHANGES, MUST_TRUNK = 60, 10
MESSAGES = 7  # the one with the fewest changes counts: timers of the server fire during some of them
TRUNK_CALLS = 4  # a file belongs to the trunk when so many of the calls are in it


class CallCounter:
    """Counts calls of Nexo's functions while it is switched on."""

    def __init__(self) -> None:
        self.on = False
        self.calls: Counter[str] = Counter()
        self.changes: Counter[tuple[str, str]] = Counter()
        self.log: list[str] = []

    def clear(self) -> None:
        self.calls.clear()
        self.changes.clear()
        self.log.clear()

    def hook(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self.on or event != "call":
            return
        file = frame.f_code.co_filename
        if not file.startswith(SOURCE):
            return
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        self.calls[file] += 1
        self.log.append(f"{short(caller)} -> {short(file)}:{frame.f_code.co_name}")
        if caller != file:
            self.changes[caller, file] += 1


def short(file: str) -> str:
    return file.removeprefix(SOURCE + "/") if file.startswith(SOURCE) else "(outside)"


async def measure(counter: CallCounter) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = msgspec.convert({"data": {"dir": folder}, "server": {"port": 0}}, Config)
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def ready(at: str) -> None:
            address.set_result(at)

        server = asyncio.create_task(serve(config, ready=ready))
        try:
            await converse(await address, counter)
        finally:
            server.cancel()
            await asyncio.gather(server, return_exceptions=True)


async def converse(address: str, counter: CallCounter) -> None:
    sockets = {}
    async with httpx.AsyncClient(base_url=address) as http:
        for name in ("alice", "bob"):
            password = {"user_id": name, "password": "correct horse battery"}
            await http.post("/user/register", json=password)
            token = (await http.post("/auth/login", json=password)).json()["data"]["access_token"]
            socket = sockets[name] = await websockets.connect(address.replace("http", "ws") + "/ws", ping_interval=None)
            await socket.send(json.dumps({"type": "AUTH", "token": token}))
            while json.loads(await socket.recv())["type"] != "RESEND_DONE":
                pass
    for number in range(20):
        await say(sockets, number)
    await asyncio.sleep(0.5)  # cursors of the first messages are written
    fewest = None
    for number in range(20, 20 + MESSAGES):
        counter.clear()
        counter.on = True
        await say(sockets, number, acknowledge=False)
        counter.on = False
        found = (sum(counter.changes.values()), dict(counter.calls), dict(counter.changes), list(counter.log))
        fewest = found if fewest is None else min(fewest, found, key=lambda one: one[0])
    assert fewest is not None
    counter.calls, counter.changes, counter.log = Counter(fewest[1]), Counter(fewest[2]), fewest[3]


async def say(sockets: dict[str, Any], number: int, acknowledge: bool = True) -> None:
    frame = {"type": "SINGLE_CHAT", "clientMsgId": f"m{number}", "to": "bob", "body": "hello"}
    await sockets["alice"].send(json.dumps(frame))
    while json.loads(await sockets["alice"].recv()).get("ackType") != "saved":
        pass
    while (pushed := json.loads(await sockets["bob"].recv()))["type"] != "SINGLE_CHAT":
        pass
    if acknowledge:
        ack = {"type": "ACK", "ackType": "delivered", "serverMsgId": pushed["serverMsgId"]}
        await sockets["bob"].send(json.dumps(ack))
        while json.loads(await sockets["alice"].recv()).get("ackType") != "delivered":
            pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="every counted call in order")
    options = parser.parse_args()
    counter = CallCounter()
    threading.setprofile(counter.hook)
    sys.setprofile(counter.hook)
    uvloop.run(measure(counter))
    sys.setprofile(None)
    if options.list:
        print("\n".join(counter.log))
    changes, calls = sum(counter.changes.values()), sum(counter.calls.values())
    trunk = [file for file, count in counter.calls.items() if count >= TRUNK_CALLS]
    for file, count in counter.calls.most_common():
        print(f"{count:4} calls  {'trunk ' if file in trunk else '      '} {short(file)}")
    print(f"{len(counter.calls)} files, {len(trunk)} of them trunk (must: {MUST_TRUNK}), {calls} calls, "
          f"{changes} changes of file (must: {MUST_CHANGES})")  # fmt: skip
    return 0 if changes <= MUST_CHANGES and len(trunk) <= MUST_TRUNK else 1


if __name__ == "__main__":
    sys.exit(main())
