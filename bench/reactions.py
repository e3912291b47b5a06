"""Reactions: many members of a large group react to one message within seconds, while another chat goes on.

    .venv/bin/python bench/reactions.py                        1,000 of 10,000 members within 10 s, embedded
    .venv/bin/python bench/reactions.py --engine mariadb
    .venv/bin/python bench/reactions.py --members 500 --people 100 --seconds 3

A chat of two users beside it, from a process of its own, measures its sends before and meanwhile. In a group of this
size no frame per message is sent, so the events are pulled, as its members do. Fails unless all members see the same,
right counts and their own reaction, no two events are closer than a second, and sends take at most twice as long (or
10 ms longer) in the median.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import servers
from harness.server_process import NEXO, ServerProcess, environment
from nexo.config import parse_store_url
from nexo.store import migrate

EMOJIS = ["👍", "❤️", "🎉", "😂"]
AT_ONCE = 64


class Backend:
    """Calls of a product's backend, for itself and for its users."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def call(self, method: str, path: str, acting: str = "", /, **body: Any) -> Any:
        headers = {"Nexo-User": acting} if acting else {}
        answer = (await self.http.request(method, path, headers=headers, json=body)).json()
        assert answer["err_code"] == 0, answer
        return answer["data"]

    async def pull(self, user_id: str, **query: Any) -> list[Any]:
        answer = (await self.http.get("/msg/pull", headers={"Nexo-User": user_id}, params=query)).json()
        found: list[Any] = answer["data"]["messages"]
        return found


def probe(url: str, token: str, pipe: Connection) -> None:
    """Measure sends in a process of its own: what the reacting clients cost here is not counted."""
    asyncio.run(_probe(url, token, pipe))


async def _probe(url: str, token: str, pipe: Connection) -> None:
    took: list[float] = []
    number = 0
    async with connect(url, subprotocols=[Subprotocol("nexo.envelope.v1")], max_size=None) as socket:
        await socket.send(json.dumps({"type": "AUTH", "token": token}))
        pipe.send([])
        while True:
            number += 1
            name = f"probe{number}"
            sent_at = time.monotonic()
            fields = {"type": "SINGLE_CHAT", "clientMsgId": name, "to": "other2", "body": "hello"}
            await socket.send(json.dumps(fields))
            while json.loads(await socket.recv()).get("clientMsgId") != name:
                pass
            took.append((time.monotonic() - sent_at) * 1000)
            if pipe.poll():
                if pipe.recv() == "stop":
                    pipe.send(took)
                    return
                pipe.send(took)
                took = []
            await asyncio.sleep(0.02)


async def storm(backend: Backend, message: Any, people: int, seconds: float) -> tuple[float, list[float]]:
    """React as so many members, spread over the time. Returns how long it took, and the times of the answers in ms."""
    free = asyncio.Semaphore(AT_ONCE)
    took: list[float] = []
    started = time.monotonic()

    async def react(number: int) -> None:
        await asyncio.sleep(seconds * number / people)
        async with free:
            asked_at = time.monotonic()
            fields = {"server_msg_id": message["server_msg_id"], "emoji": EMOJIS[number % len(EMOJIS)], "on": True}
            await backend.call("POST", "/msg/react", f"u{number}", **fields)
            took.append((time.monotonic() - asked_at) * 1000)

    await asyncio.gather(*(react(number) for number in range(people)))
    return time.monotonic() - started, took


async def events_of(backend: Backend, message: Any, wanted: int) -> list[Any]:
    """Returns the events of the message, when the last one has all reactions."""
    while True:
        found = await backend.pull("u0", conversation_id=message["conversation_id"], begin_seq=message["seq"] + 1)
        events = [one for one in found if one["msg_type"] == 111]
        if events and sum(one["count"] for one in events[-1]["content"]["reactions"]) == wanted:
            later = await backend.pull("u0", conversation_id=message["conversation_id"], seqs=message["seq"])
            if sum(one["count"] for one in later[0]["reactions"]) == wanted:
                return events
        await asyncio.sleep(0.5)


async def check_counts(backend: Backend, message: Any, people: int) -> None:
    """Every member who reacted, and one who did not, sees all counts and their own reaction."""
    wanted = {one: len(range(number, people, len(EMOJIS))) for number, one in enumerate(EMOJIS)}
    free = asyncio.Semaphore(AT_ONCE)

    async def check(number: int) -> None:
        async with free:
            query = {"conversation_id": message["conversation_id"], "seqs": message["seq"]}
            (shown,) = await backend.pull(f"u{number}", **query)
        own = {EMOJIS[number % len(EMOJIS)]} if number < people else set()
        assert {one["emoji"]: one["count"] for one in shown["reactions"]} == wanted, shown
        assert {one["emoji"] for one in shown["reactions"] if one["mine"]} == own, shown

    await asyncio.gather(*(check(number) for number in range(people + 1)))


def p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)]


async def prepare(backend: Backend, members: int) -> Any:
    names = [f"u{number}" for number in range(members)] + ["other1", "other2"]
    for start in range(0, len(names), 1000):
        users = [{"user_id": name} for name in names[start : start + 1000]]
        await backend.call("PUT", "/server/users", users=users)
    group = await backend.call("POST", "/group/create", "u0", name="crowd", member_ids=names[1:500])
    for start in range(500, members, 500):
        chosen = names[start : min(start + 500, members)]
        await backend.call("POST", "/group/invite", "u0", group_id=group["group_id"], user_ids=chosen)
    fields = {"client_msg_id": "m", "group_id": group["group_id"], "content": "vote"}
    return await backend.call("POST", "/msg/send", "u0", **fields)


def make_key(server: ServerProcess) -> str:
    command = [NEXO, "key", "add", "bench", "--scope", "users,act,tokens", "--json", "--data", server.data]
    done = subprocess.run(command, env=environment(server.settings), capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout)["key"])


async def run(server: ServerProcess, members: int, people: int, seconds: float) -> bool:
    headers = {"Authorization": f"Bearer {await asyncio.to_thread(make_key, server)}"}
    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=120, limits=limits) as http:
        backend = Backend(http)
        message = await prepare(backend, members)
        token = (await backend.call("POST", "/server/tokens", user_id="other1"))["access_token"]
        pipe, theirs = multiprocessing.Pipe()
        prober = multiprocessing.get_context("spawn").Process(
            target=probe, args=(server.ws_address, token, theirs), daemon=True
        )
        prober.start()
        await asyncio.to_thread(pipe.recv)
        await asyncio.sleep(1)
        pipe.send("begin")
        await asyncio.to_thread(pipe.recv)
        await asyncio.sleep(5)
        pipe.send("next")
        before = await asyncio.to_thread(pipe.recv)
        took, answers = await storm(backend, message, people, seconds)
        pipe.send("stop")
        meanwhile = await asyncio.to_thread(pipe.recv)
        prober.join()
        events = await events_of(backend, message, people)
        await check_counts(backend, message, people)
    gaps = [later["send_at"] - earlier["send_at"] for earlier, later in pairwise(events)]
    print(f"{people} of {members} members reacted in {took:.1f} s; all counts right")
    print(f"answers: p50 {statistics.median(answers):.1f} ms, p99 {p99(answers):.1f} ms")
    print(f"{len(events)} events, at least {min(gaps, default=0)} ms apart")
    for label, values in (("before", before), ("meanwhile", meanwhile)):
        print(f"sends of another chat {label}: p50 {statistics.median(values):.1f} ms, p99 {p99(values):.1f} ms")
    limit = max(2 * statistics.median(before), statistics.median(before) + 10)
    return all(gap >= 1000 for gap in gaps) and statistics.median(meanwhile) <= limit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--engine", choices=("sqlite", "mariadb", "postgresql"), default="sqlite")
    asked = parser.parse_args()
    settings: dict[str, object] = {"limits__key_requests_per_s": 0}
    if asked.engine != "sqlite":
        database = servers.mariadb() if asked.engine == "mariadb" else servers.postgres()
        url = database.create_database()
        asyncio.run(migrate.upgrade(parse_store_url(url)))
        settings |= {"store__url": url, "auth__secret": "a secret of the benchmark, 32 bytes or more"}
    print(f"{asked.engine}:")
    with ServerProcess(**settings) as server:
        is_good = asyncio.run(run(server, asked.members, asked.people, asked.seconds))
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
