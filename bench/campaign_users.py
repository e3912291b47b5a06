"""The users of `bench/campaign.py`: a client of their own, written from the protocol pages and nothing else.

A user keeps a send until it is acknowledged as saved, repeats it under the same id on whichever instance answers, and
notes everything that a server has said: the notes are what the laws are checked against.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

PASSWORD = "correct horse battery"
SIGN_IN_S = 3.0
AGAIN_S = 0.4
WINDOW = 6  # sends of a user that are not saved yet
RETRIED = ("server_busy", "too_many_requests", "server_shutdown")
GONE = (OSError, InvalidHandshake, EOFError, ConnectionClosed, TimeoutError, httpx.HTTPError)
MESSAGES = ("SINGLE_CHAT", "GROUP_CHAT", "GROUP_EVENT")

Violate = Callable[[str], None]


class User:
    def __init__(self, user_id: str, addresses: Sequence[str], rng: random.Random, violate: Violate) -> None:
        self.user_id = user_id
        self.token = ""
        self.addresses = addresses
        self.rng = rng
        self.violate = violate
        self.home = rng.randrange(len(addresses))
        self.targets: list[str] = []  # user ids and group ids
        self.order: dict[str, list[str]] = {}  # target -> client_msg_ids, as they were first sent
        self.unsaved: dict[str, dict[str, Any]] = {}  # client_msg_id -> frame, in order
        self.saved: dict[str, tuple[str, int, str]] = {}  # client_msg_id -> conversation, seq, server_msg_id
        self.seen: dict[tuple[str, int], str] = {}  # conversation, seq -> server_msg_id, as pushed
        self.heads: dict[str, int] = {}  # what this user knows of, by conversation
        self.read: dict[str, int] = {}
        self.recalled: set[str] = set()  # server_msg_ids whose recall was acknowledged
        self.edited: dict[str, str] = {}  # server_msg_id -> the last text that was acknowledged
        self.unsure: set[str] = set()  # server_msg_ids with a change whose outcome is unknown
        self.files: list[str] = []  # ids of uploads that were acknowledged
        self.errors: dict[str, int] = {}
        self.ack_times: list[float] = []
        self.push_times: list[float] = []  # of messages of the other one in a pair
        self.connects = 0
        self.stopping = False
        self.socket: ClientConnection | None = None
        self._again: asyncio.TimerHandle | None = None
        self._count = 0

    # -- the connection ------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            address = self.addresses[self.home % len(self.addresses)]
            try:
                async with asyncio.timeout(SIGN_IN_S):
                    socket = await connect(
                        address.replace("http", "ws", 1) + "/ws",
                        subprotocols=["nexo.envelope.v1"],  # type: ignore[list-item]
                        compression=None,
                        ping_interval=None,
                        proxy=None,
                    )
                    await socket.send(json.dumps({"type": "AUTH", "token": self.token, "deviceId": self.user_id}))
                    while (frame := json.loads(await socket.recv()))["type"] != "SYNC":
                        if frame["type"] == "AUTH_FAIL":
                            self._count_error(f"AUTH_FAIL {frame.get('reason')}")
                            raise TimeoutError
                self.connects += 1
                self._take(frame)
                await self._listen(socket)
            except GONE:
                pass
            self.socket = None
            self.home += 1  # another instance
            await asyncio.sleep(self.rng.uniform(0.05, 0.3))

    async def _listen(self, socket: ClientConnection) -> None:
        self.socket = socket
        await self._send_unsaved()
        quiet_s = 0.0
        try:
            while True:
                try:
                    async with asyncio.timeout(2.0):
                        data = await socket.recv()
                    quiet_s = 0.0
                except TimeoutError:  # an instance that hangs keeps the connection: a client asks, and leaves
                    quiet_s += 2.0
                    if quiet_s >= 6.0:
                        return
                    async with asyncio.timeout(2.0):
                        await socket.send('{"type":"PING"}')
                    continue
                self._take(json.loads(data))
        finally:
            socket.transport.abort()

    async def _send_unsaved(self) -> None:
        """Everything again, in order: what was saved already is answered from its row."""
        self._again = None
        socket = self.socket
        if socket is not None:
            with contextlib.suppress(*GONE):
                async with asyncio.timeout(2.0):
                    for frame in list(self.unsaved.values()):
                        await socket.send(json.dumps(frame))

    def _repeat_soon(self) -> None:
        if self._again is None:
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(AGAIN_S, lambda: loop.create_task(self._send_unsaved()))

    # -- what arrives --------------------------------------------------------------------------------------

    def _take(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind in MESSAGES and not frame.get("provisional"):
            self._take_message(frame)
        elif kind in ("SYNC", "HEADS"):
            for item in frame["conversations"]:
                self._know(item["conversationId"], item["headSeq"])
        elif kind == "GROUP_NOTIFY":
            self._know(frame["conversationId"], frame["headSeq"])
        elif kind == "RESYNC":
            asyncio.get_running_loop().call_later(frame["afterMs"] / 1000, self._put, {"type": "SYNC"})
        elif kind == "ACK" and frame["ackType"] == "saved":
            self._take_ack(frame)
        elif kind == "ERROR":
            self._take_error(frame)

    def _take_message(self, frame: dict[str, Any]) -> None:
        place = (frame["conversationId"], int(frame["msgSeq"]))
        known = self.seen.setdefault(place, frame["serverMsgId"])
        if known != frame["serverMsgId"]:
            self.violate(f"law 2: {self.user_id} got two messages at {place}: {known}, {frame['serverMsgId']}")
        self._know(*place)
        if frame["type"] == "SINGLE_CHAT" and frame.get("from") != self.user_id:
            self.push_times.append(time.monotonic())
        if self.rng.random() < 0.3:
            self.read[place[0]] = max(self.read.get(place[0], 0), place[1])
            self._put({"type": "ACK", "ackType": "read", "conversationId": place[0], "msgSeq": place[1]})

    def _take_ack(self, frame: dict[str, Any]) -> None:
        name = frame["clientMsgId"]
        found = (frame["conversationId"], int(frame["msgSeq"]), frame["serverMsgId"])
        if self.saved.setdefault(name, found) != found:
            self.violate(f"law 4: {name} was acknowledged as {self.saved[name]} and as {found}")
        if self.unsaved.pop(name, None) is not None:
            self.ack_times.append(time.monotonic())
        self._know(found[0], found[1])

    def _take_error(self, frame: dict[str, Any]) -> None:
        self._count_error(frame["reason"])
        if frame["reason"] == "internal_error":
            self.violate(f"§30: {self.user_id} got internal_error for {frame.get('clientMsgId')}")
        name = frame.get("clientMsgId")
        if name in self.unsaved:
            if frame["reason"] in (*RETRIED, "internal_error"):
                self._repeat_soon()
            else:  # refused for good, as after leaving a group
                refused = self.unsaved.pop(name)
                self.order[refused.get("groupId") or refused["to"]].remove(name)

    def _count_error(self, reason: str) -> None:
        self.errors[reason] = self.errors.get(reason, 0) + 1

    def _know(self, conversation_id: str, head_seq: int) -> None:
        self.heads[conversation_id] = max(self.heads.get(conversation_id, 0), int(head_seq))

    def _put(self, frame: dict[str, Any]) -> None:
        if self.socket is not None:
            task = asyncio.ensure_future(self.socket.send(json.dumps(frame)))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())

    # -- what it does --------------------------------------------------------------------------------------

    async def live(self, pause_s: float) -> None:
        """Chat until it is stopped: mostly messages, now and then a change."""
        while not self.stopping:
            await asyncio.sleep(self.rng.uniform(0.3, 1.7) * pause_s)
            if self.rng.random() < 0.8 or not self.saved:
                if len(self.unsaved) < WINDOW:
                    self.say(self.rng.choice(self.targets))
            else:
                with contextlib.suppress(*GONE):
                    await self._change()

    def say(self, target: str) -> None:
        self._count += 1
        name = f"{self.user_id}-{self._count}"
        kind, where = ("GROUP_CHAT", "groupId") if target.startswith("g_") else ("SINGLE_CHAT", "to")
        frame = {"type": kind, where: target, "clientMsgId": name, "body": name}
        self.order.setdefault(target, []).append(name)
        self.unsaved[name] = frame
        self._put(frame)

    async def ask(self, method: str, path: str, **fields: Any) -> tuple[bool | None, Any]:
        """A call to any instance. Returns whether it was done (None: unknown) and the data or the error."""
        outcome: bool | None = False
        for attempt in range(4):
            address = self.addresses[(self.home + attempt) % len(self.addresses)]
            try:
                async with httpx.AsyncClient(base_url=address, timeout=6, trust_env=False) as http:
                    answer = await http.request(
                        method, path, headers={"Authorization": f"Bearer {self.token}"}, **fields
                    )
                found = answer.json()
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
            except (httpx.HTTPError, ValueError):
                outcome = None  # it may have been done
                continue
            if found["err_code"] == 0:
                return True, found["data"]
            self._count_error(f"{path} {found['err_msg']}")
            if found["err_msg"] in RETRIED:
                await asyncio.sleep(AGAIN_S)
                continue
            if found["err_msg"] == "internal_error":
                if "check the result" not in str(found.get("detail", "")):
                    self.violate(f"§30: {self.user_id} got internal_error for {path}: {found}")
                outcome = None
                continue
            return outcome, found["err_msg"]
        return outcome, None

    async def _change(self) -> None:
        name = self.rng.choice(list(self.saved))
        _, _, server_msg_id = self.saved[name]
        match self.rng.choice(("edit", "react", "recall", "read", "file", "membership")):
            case "edit":
                self._count += 1
                text = f"edited {self._count}"
                done, _ = await self.ask(
                    "PUT",
                    "/msg/edit",
                    json={"server_msg_id": server_msg_id, "client_msg_id": f"{name}-e{self._count}", "content": text},
                )
                if done:
                    self.edited[server_msg_id] = text
                elif done is None:
                    self.unsure.add(server_msg_id)
            case "react":
                await self.ask("POST", "/msg/react", json={"server_msg_id": server_msg_id, "emoji": "👍"})
            case "recall":
                done, _ = await self.ask("POST", "/msg/recall", json={"server_msg_id": server_msg_id})
                if done:
                    self.recalled.add(server_msg_id)
                elif done is None:
                    self.unsure.add(server_msg_id)
            case "read":
                conversation_id = self.saved[name][0]
                seq = self.heads[conversation_id]
                done, _ = await self.ask(
                    "POST", "/conversation/read", json={"conversation_id": conversation_id, "seq": seq}
                )
                if done:
                    self.read[conversation_id] = max(self.read.get(conversation_id, 0), seq)
            case "file":
                data = self.user_id.encode() * 200
                done, found = await self.ask("POST", "/files", files={"file": ("note.txt", data, "text/plain")})
                if done:
                    self.files.append(found["file_id"])
            case "membership":
                await self._leave_and_join()

    async def _leave_and_join(self) -> None:
        groups = [target for target in self.targets if target.startswith("g_")]
        if not groups or any("groupId" in frame for frame in self.unsaved.values()):
            return
        group_id = self.rng.choice(groups)
        await self.ask("POST", "/group/quit", json={"group_id": group_id})
        for _ in range(20):  # until it is surely a member again
            done, why = await self.ask("POST", "/group/join", json={"group_id": group_id})
            if done or why in ("already_member", "already_group_member"):
                return
            await asyncio.sleep(AGAIN_S)

    async def pull(self, conversation_id: str) -> list[dict[str, Any]] | None:
        """Everything that this user may see, from the beginning; None when no instance answers."""
        found: list[dict[str, Any]] = []
        begin = 1
        while True:
            done, data = await self.ask(
                "GET", "/msg/pull", params={"conversation_id": conversation_id, "begin_seq": begin, "limit": 200}
            )
            if not done:
                return None
            found += data["messages"]
            if not data["has_more"]:
                return found
            begin = data["next_seq"]
