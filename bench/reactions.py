"""Reactions: many members of a large group react to one message within seconds, while another chat goes on.

    .venv/bin/python bench/reactions.py                        1,000 of 10,000 members within 10 s
    .venv/bin/python bench/reactions.py --members 500 --people 100 --seconds 3

A connected member counts the events and their distance; a chat of two users beside it measures its sends before and
meanwhile. Fails unless every reaction is counted and no two events are closer than a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness.server_process import ServerProcess

EMOJIS = ["👍", "❤️", "🎉", "😂"]
AT_ONCE = 16


class Backend:
    """Calls of a product's backend, for itself and for its users."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def call(self, method: str, path: str, acting: str = "", /, **body: Any) -> Any:
        headers = {"Nexo-User": acting} if acting else {}
        answer = (await self.http.request(method, path, headers=headers, json=body)).json()
        assert answer["err_code"] == 0, answer
        return answer["data"]

    async def pull(self, user_id: str, message: Any) -> Any:
        query = {"conversation_id": message["conversation_id"], "seqs": message["seq"]}
        answer = (await self.http.get("/msg/pull", headers={"Nexo-User": user_id}, params=query)).json()
        return answer["data"]["messages"][0]


async def send_for(backend: Backend, seconds: float, label: str) -> list[float]:
    """Returns the times in ms of sends of another chat, one after the other."""
    took: list[float] = []
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        started = time.monotonic()
        fields = {"client_msg_id": f"{label}{len(took)}", "recv_id": "other2", "content": "hello"}
        await backend.call("POST", "/msg/send", "other1", **fields)
        took.append((time.monotonic() - started) * 1000)
        await asyncio.sleep(0.02)
    return took


async def watch(url: str, token: str, message: Any, wanted: int) -> list[Any]:
    """Returns the events of one message until they have all reactions."""
    events: list[Any] = []
    async with connect(url, subprotocols=[Subprotocol("nexo.envelope.v1")], max_size=None) as socket:
        await socket.send(json.dumps({"type": "AUTH", "token": token}))
        while not events or sum(one["count"] for one in events[-1]["reactions"]) < wanted:
            async with asyncio.timeout(120):
                frame = json.loads(await socket.recv())
            if frame["type"] == "REACTIONS" and frame["serverMsgId"] == message["server_msg_id"]:
                events.append(frame)
    return events


async def storm(backend: Backend, message: Any, people: int, seconds: float) -> float:
    """React as so many members, spread over the time. Returns how long it took."""
    free = asyncio.Semaphore(AT_ONCE)
    started = time.monotonic()

    async def react(number: int) -> None:
        await asyncio.sleep(seconds * number / people)
        async with free:
            fields = {"server_msg_id": message["server_msg_id"], "emoji": EMOJIS[number % len(EMOJIS)], "on": True}
            await backend.call("POST", "/msg/react", f"u{number}", **fields)

    await asyncio.gather(*(react(number) for number in range(people)))
    return time.monotonic() - started


def p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)]


async def run(server: ServerProcess, members: int, people: int, seconds: float) -> None:
    key = server.run("key", "add", "bench", "--scope", "users,act,tokens", "--json")
    secret = json.loads(key.stdout)["key"]
    headers = {"Authorization": f"Bearer {secret}"}
    limits = httpx.Limits(max_connections=AT_ONCE + 4)
    async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=120, limits=limits) as http:
        backend = Backend(http)
        names = [f"u{number}" for number in range(members)] + ["other1", "other2"]
        for start in range(0, len(names), 1000):
            users = [{"user_id": name} for name in names[start : start + 1000]]
            await backend.call("PUT", "/server/users", users=users)
        group = await backend.call("POST", "/group/create", "u0", name="crowd", member_ids=names[1:500])
        for start in range(500, members, 500):
            chosen = names[start : min(start + 500, members)]
            await backend.call("POST", "/group/invite", "u0", group_id=group["group_id"], user_ids=chosen)
        fields = {"client_msg_id": "m", "group_id": group["group_id"], "content": "vote"}
        message = await backend.call("POST", "/msg/send", "u0", **fields)
        token = (await backend.call("POST", "/server/tokens", user_id=f"u{members - 1}"))["access_token"]
        quiet = await send_for(backend, 3, "q")
        watching = asyncio.create_task(watch(server.ws_address, token, message, people))
        took, busy = await asyncio.gather(storm(backend, message, people, seconds), send_for(backend, seconds, "b"))
        events = await watching
        counted = sum(one["count"] for one in (await backend.pull("u0", message))["reactions"])
        gaps = [later["ts"] - earlier["ts"] for earlier, later in pairwise(events)]
        print(f"{people} of {members} members reacted in {took:.1f} s; {counted} counted, {len(events)} events")
        print(f"events at least {min(gaps, default=0)} ms apart")
        for label, values in (("before", quiet), ("meanwhile", busy)):
            print(f"sends of another chat {label}: p50 {statistics.median(values):.1f} ms, p99 {p99(values):.1f} ms")
        assert counted == people
        assert all(gap >= 1000 for gap in gaps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    asked = parser.parse_args()
    with ServerProcess(limits__key_requests_per_s=0) as server:
        asyncio.run(run(server, asked.members, asked.people, asked.seconds))


if __name__ == "__main__":
    main()
