"""Random histories over a running server: what clients make of the frames that are pushed to them, and of nothing else,
is what they would fetch anew; unread counts are what a recount gives."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from harness.server_process import ServerProcess
from harness.waiting import until
from nexo.config import parse_store_url
from nexo.store.check import check

PEOPLE = ["ann", "bob", "cy", "dee"]
EMOJIS = ["👍", "🎉", "😀"]
STEPS, SEEDS = (200, 5) if os.environ.get("NEXO_LONG_TESTS") else (40, 1)
PASSWORD = "correct horse"

Shown = tuple[Any, ...]


class Follower:
    """A user with a connection: the state of one group, from pushed frames only. A client that joins again fetches
    what it missed, once, as clients do."""

    def __init__(self, http: httpx.AsyncClient, user_id: str) -> None:
        self.http = http
        self.user_id = user_id
        self.name = ""
        self.messages: dict[str, list[Any]] = {}  # seq, status, content, edited_at, counts, expires_at
        self.headers: dict[str, str] = {}
        self.anew: dict[str, Shown] = {}  # as fetched last
        self.has_left = False

    async def call(self, method: str, path: str, **options: Any) -> Any:
        answer = (await self.http.request(method, path, headers=self.headers, **options)).json()
        return answer["data"] if not answer["err_code"] else answer["err_msg"]

    async def sign_in(self) -> str:
        await self.call("POST", "/user/register", json={"user_id": self.user_id, "password": PASSWORD})
        signed = await self.call("POST", "/auth/login", json={"user_id": self.user_id, "password": PASSWORD})
        self.headers = {"Authorization": f"Bearer {signed['access_token']}"}
        return str(signed["access_token"])

    async def fetched(self) -> list[Any]:
        found: list[Any] = []
        begin = 1
        while True:
            query = {"conversation_id": self.name, "begin_seq": begin}
            page = await self.call("GET", "/msg/pull", params=query)
            found += page["messages"]
            if not page["has_more"]:
                return found
            begin = page["next_seq"]

    async def follow(self, socket: ClientConnection) -> None:
        async for text in socket:
            frame = json.loads(text)
            if frame.get("conversationId") == self.name:
                await self.take(frame)

    async def take(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        known = self.messages.get(frame.get("serverMsgId", ""))
        if kind == "GROUP_CHAT" and known is None:
            self.messages[frame["serverMsgId"]] = [frame["msgSeq"], 0, frame["body"], None, {}, frame.get("expiresAt")]
        elif kind == "MESSAGE_EDITED" and known is not None:
            known[2], known[3] = frame["body"], frame["editedAt"]
        elif kind == "REACTIONS" and known is not None:
            known[4] = {one["emoji"]: one["count"] for one in frame["reactions"]}
        elif kind == "MESSAGE_REVOKED" and known is not None:
            known[1:5] = [1, "", None, {}]
        elif kind == "DELETED":
            for one in frame.get("serverMsgIds", ()):
                self.messages.pop(one, None)
            up_to = frame.get("upToSeq", 0)
            self.messages = {one: state for one, state in self.messages.items() if state[0] > up_to}
        elif kind == "GROUP_EVENT" and frame["msgType"] == 102 and self.user_id in frame["body"]["user_ids"]:
            self.has_left = False
            self.messages = dict(map(as_state, filter(is_message, await self.fetched())))
        elif kind == "GROUP_EVENT" and frame["msgType"] == 103 and frame["body"]["user_id"] == self.user_id:
            self.has_left = True

    def view(self) -> dict[str, Shown]:
        return {one: shown(*state) for one, state in self.messages.items()}

    def difference(self) -> str:
        """What only one of the two has, and the last frames."""
        differs = {one for one in self.anew.keys() | self.view() if self.anew.get(one) != self.view().get(one)}
        both = {one: (self.view().get(one), self.anew.get(one)) for one in differs}
        return f"{self.user_id}, pushed and fetched: {both}"

    async def is_same(self) -> bool:
        self.anew = {one: shown(*state) for one, state in map(as_state, filter(is_message, await self.fetched()))}
        view = self.view()
        if self.has_left:  # nothing is pushed any more; what was recalled since is blank when it is fetched
            view |= {one: kept for one, kept in self.anew.items() if kept[1] == "gone" and one in view}
        return view == self.anew

    async def check_unread(self) -> None:
        (entry,) = (await self.call("GET", "/conversation/list"))["conversations"]
        counted = [
            one
            for one in await self.fetched()
            if is_message(one) and one["sender_id"] != self.user_id and one["seq"] > entry["read_seq"]
            and one["seq"] >= entry["min_seq"]
        ]  # fmt: skip
        assert entry["unread"] == len(counted), self.user_id


def is_message(message: dict[str, Any]) -> bool:
    return bool(message["msg_type"] < 100)


def as_state(message: dict[str, Any]) -> tuple[str, list[Any]]:
    counts = {one["emoji"]: one["count"] for one in message.get("reactions", ())}
    edited = message.get("edited_at")
    kept = [message["seq"], message["status"], message["content"], edited, counts, message.get("expires_at")]
    return message["server_msg_id"], kept


def shown(seq: int, status: int, content: Any, edited_at: int | None, counts: Any, expires_at: int | None) -> Shown:
    if status == 1 or (expires_at is not None and expires_at <= time.time() * 1000):
        return (seq, "gone")  # recalled or expired: there is nothing to show
    return (seq, status, content, edited_at, tuple(sorted((one, count) for one, count in counts.items() if count)))


class History:
    def __init__(self, followers: dict[str, Follower], group_id: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.followers = followers
        self.group_id = group_id
        self.sent: list[tuple[str, str]] = []  # sender, id
        self.number = 0

    async def step(self) -> None:
        acts: list[Callable[[Follower], Awaitable[Any]]] = [
            self.send, self.send, self.send, self.edit, self.edit, self.react, self.react, self.react, self.recall,
            self.delete, self.clear, self.read, self.come_and_go,
        ]  # fmt: skip
        await self.rng.choice(acts)(self.followers[self.rng.choice(PEOPLE)])

    def chosen(self) -> tuple[str, str]:
        return self.rng.choice(self.sent[-12:])

    async def send(self, by: Follower) -> None:
        self.number += 1
        fields = {"client_msg_id": f"m{self.number}", "group_id": self.group_id, "content": f"text {self.number}"}
        more = {"expires_s": 5} if self.rng.random() < 0.1 else {}
        saved = await by.call("POST", "/msg/send", json=fields | more)
        if isinstance(saved, dict):
            self.sent.append((by.user_id, saved["server_msg_id"]))

    async def edit(self, _: Follower) -> None:
        sender, one = self.chosen()
        self.number += 1
        fields = {"server_msg_id": one, "client_msg_id": f"e{self.number}", "content": f"edit {self.number}"}
        await self.followers[sender].call("PUT", "/msg/edit", json=fields)

    async def react(self, by: Follower) -> None:
        fields = {"server_msg_id": self.chosen()[1], "emoji": self.rng.choice(EMOJIS), "on": self.rng.random() < 0.7}
        await by.call("POST", "/msg/react", json=fields)

    async def recall(self, _: Follower) -> None:
        sender, one = self.chosen()
        await self.followers[sender].call("POST", "/msg/recall", json={"server_msg_id": one})

    async def delete(self, by: Follower) -> None:
        await by.call("POST", "/msg/delete", json={"server_msg_ids": [self.chosen()[1]]})

    async def clear(self, by: Follower) -> None:
        if self.rng.random() < 0.2:
            await by.call("POST", "/conversation/clear", json={"conversation_id": by.name})

    async def read(self, by: Follower) -> None:
        seq = self.rng.randint(1, self.number + 5)
        await by.call("POST", "/conversation/read", json={"conversation_id": by.name, "seq": seq})

    async def come_and_go(self, by: Follower) -> None:
        if by.user_id == PEOPLE[0]:
            return  # the owner stays
        if await by.call("POST", "/group/quit", json={"group_id": self.group_id}) == "member_not_active":
            await by.call("POST", "/group/join", json={"group_id": self.group_id})


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_pushed_frames_lead_to_what_is_fetched_anew(core_url: str, seed: int) -> None:
    settings = {"store__url": core_url, "auth__secret": "a secret of the tests, 32 bytes or more"}
    with ServerProcess(**settings) as server:
        async with httpx.AsyncClient(base_url=server.address, timeout=60) as http:
            followers = {user_id: Follower(http, user_id) for user_id in PEOPLE}
            sockets, tasks = [], []
            tokens = [await follower.sign_in() for follower in followers.values()]
            fields = {"name": "team", "member_ids": PEOPLE[1:]}
            group = await followers[PEOPLE[0]].call("POST", "/group/create", json=fields)
            for follower, token in zip(followers.values(), tokens, strict=True):
                follower.name = group["conversation_id"]
                socket = await connect(server.ws_address, subprotocols=[Subprotocol("nexo.envelope.v1")])
                await socket.send(json.dumps({"type": "AUTH", "token": token}))
                assert json.loads(await socket.recv())["type"] == "AUTH_OK"
                sockets.append(socket)
                tasks.append(asyncio.create_task(follower.follow(socket)))
            history = History(followers, group["group_id"], seed)
            await history.send(followers[PEOPLE[0]])
            for number in range(STEPS):
                await history.step()
                if number % 20 == 19:
                    for follower in followers.values():
                        await until(follower.is_same, follower.difference)
                        await follower.check_unread()
            assert all(not task.done() for task in tasks)
            for socket in sockets:
                await socket.close()
            await asyncio.gather(*tasks)
    assert (await check(parse_store_url(core_url))).findings == []
