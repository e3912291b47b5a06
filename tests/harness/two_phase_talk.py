"""People who talk through everything, as a careful client does: what is not saved is kept and sent again in order,
what is missing is asked for, provisional copies go away. In the end they can prove what they saw."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from harness.pair_load import open_socket, sign_up
from harness.waiting import time_passes

Frame = dict[str, Any]

TICK_S = 0.2
RESEND_S = 3.0  # without news of what was sent, or accepted, it is sent again
TRANSIENT = ("server_busy", "too_many_requests", "internal_error")
PATIENCE_S = 45.0


class Site(Protocol):
    @property
    def address(self) -> str: ...

    @property
    def ws_address(self) -> str: ...


class Talker:
    def __init__(self, site: Site, user_id: str, token: str, targets: Sequence[str], window: int = 4) -> None:
        self.user_id = user_id
        self.token = token
        self.targets = list(targets)
        self.window = window
        self.pace_s = 0.0  # between two messages
        self.sent: dict[str, list[str]] = defaultdict(list)  # target → clientMsgIds, in order
        self.saved: dict[str, Frame] = {}
        self.accepted: dict[str, str] = {}  # clientMsgId → serverMsgId
        self.refused: dict[str, str] = {}
        self.received: dict[str, dict[int, str]] = defaultdict(dict)  # conversation → seq → serverMsgId
        self.provisional: dict[str, Frame] = {}  # on the screen now
        self.ever_provisional: dict[str, Frame] = {}
        self._seen: set[str] = set()  # all serverMsgIds that have a place
        self._complete: dict[str, int] = {}  # conversation → up to where nothing is missing
        self.busy = 0
        self.connects = 0
        self._site = site
        self._outbox: dict[str, Frame] = {}  # not saved, in order
        self._on_wire: dict[str, float] = {}
        self._paused: dict[str, float] = {}  # target → until
        self._stopping = False
        self._ended = False
        self._is_behind = False
        self._asked_at = 0.0
        self._socket: ClientConnection | None = None

    # -- its life ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until `end` is called; sends until `stop` is."""
        while not self._ended:
            try:
                connection = await open_socket(self._site.ws_address, self.token)
            except (OSError, InvalidHandshake, EOFError, TimeoutError):
                await asyncio.sleep(random.uniform(0.05, 0.2))
                continue
            self.connects += 1
            self._socket = connection
            self.provisional.clear()
            self._on_wire.clear()
            self._paused.clear()
            self._is_behind = True
            ticking = asyncio.create_task(self._tick(connection))
            try:
                async for data in connection:
                    await self._take(connection, json.loads(data))
            except ConnectionClosed:
                pass
            finally:
                ticking.cancel()
                await asyncio.gather(ticking, return_exceptions=True)
                connection.transport.abort()

    def stop(self) -> None:
        self._stopping = True

    def end(self) -> None:
        self._ended = True
        if self._socket is not None:
            self._socket.transport.abort()

    def cut(self) -> None:
        """Lose the connection."""
        if self._socket is not None:
            self._socket.transport.abort()

    @property
    def unsaved(self) -> int:
        return len(self._outbox)

    @property
    def is_waiting(self) -> bool:
        """All that may be under way is accepted, and none of it is saved."""
        return len(self._outbox) >= self.window and all(name in self.accepted for name in self._outbox)

    # -- sending -------------------------------------------------------------------------------------------

    async def _tick(self, connection: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._send_more(connection)
                if (self._is_behind or self._has_gap()) and time.monotonic() - self._asked_at > 1.0:
                    self._asked_at = time.monotonic()
                    self._is_behind = False
                    await connection.send(json.dumps({"type": "SYNC"}))
                await asyncio.sleep(self.pace_s or TICK_S)

    async def _send_more(self, connection: ClientConnection) -> None:
        now = time.monotonic()
        stuck = {
            self._target(frame) for name, frame in self._outbox.items() if now - self._on_wire.get(name, now) > RESEND_S
        }
        for name, frame in self._outbox.items():  # a lane that hears nothing is sent again from its start
            if self._target(frame) in stuck:
                self._on_wire.pop(name, None)
        for name, frame in list(self._outbox.items()):
            if name not in self._on_wire and self._paused.get(self._target(frame), 0) <= now:
                self._on_wire[name] = now
                await connection.send(json.dumps(frame))
        while len(self._outbox) < self.window and not self._stopping:
            frame = self._next()
            if self._paused.get(self._target(frame), 0) <= now:
                self._on_wire[frame["clientMsgId"]] = now
                await connection.send(json.dumps(frame))
            if self.pace_s:
                break

    @staticmethod
    def _target(frame: Frame) -> str:
        return str(frame.get("to") or frame["groupId"])

    def _next(self) -> Frame:
        target = random.choice(self.targets)
        name = f"{self.user_id}-{sum(map(len, self.sent.values()))}"
        self.sent[target].append(name)
        kind, where = ("GROUP_CHAT", "groupId") if target.startswith("g_") else ("SINGLE_CHAT", "to")
        frame = {"type": kind, where: target, "clientMsgId": name, "body": name}
        self._outbox[name] = frame
        return frame

    # -- hearing -------------------------------------------------------------------------------------------

    async def _take(self, connection: ClientConnection, frame: Frame) -> None:
        match frame["type"]:
            case "ACK" if frame["ackType"] == "accepted":
                self.accepted[frame["clientMsgId"]] = frame["serverMsgId"]
                if frame["clientMsgId"] in self._outbox:
                    self._on_wire[frame["clientMsgId"]] = time.monotonic()
            case "ACK" if frame["ackType"] == "saved":
                self._note_saved(frame)
                if not self.pace_s:
                    await self._send_more(connection)
            case "SINGLE_CHAT" | "GROUP_CHAT" if frame.get("provisional"):
                assert "msgSeq" not in frame
                if frame["serverMsgId"] not in self._seen:
                    self.provisional[frame["serverMsgId"]] = frame
                self.ever_provisional[frame["serverMsgId"]] = frame
            case "SINGLE_CHAT" | "GROUP_CHAT" | "GROUP_EVENT":
                self._note(frame)
            case "MESSAGE_REVOKED":
                self.received[frame["conversationId"]][frame["msgSeq"]] = ""
            case "MESSAGE_WITHDRAWN":
                self.provisional.pop(frame["serverMsgId"], None)
            case "RESYNC":
                self.provisional.clear()
                self._is_behind = True
            case "SYNC":
                await self._pull(connection, frame)
            case "PULL_OK":
                for message in frame["messages"]:
                    self._note(message)
                if frame["hasMore"]:
                    await self._ask(connection, frame["conversationId"], frame["nextSeq"])
            case "ERROR" if "clientMsgId" not in frame and frame["reason"] in TRANSIENT:
                await time_passes(0.2)  # a question while the database is away: asked again, as a client does
                await connection.send(json.dumps({"type": "SYNC"}))
            case "ERROR":
                self._note_error(frame)
            case "AUTH_FAIL":
                raise AssertionError(frame)

    def _note_saved(self, ack: Frame) -> None:
        name = ack["clientMsgId"]
        known = self.saved.setdefault(name, ack)
        assert known == ack, f"the same send is acknowledged the same: {known} {ack}"
        self._outbox.pop(name, None)
        self._on_wire.pop(name, None)
        self.received[ack["conversationId"]][ack["msgSeq"]] = ack["serverMsgId"]
        self._seen.add(ack["serverMsgId"])

    def _note(self, frame: Frame) -> None:
        known = self.received[frame["conversationId"]].setdefault(frame["msgSeq"], frame["serverMsgId"])
        assert known == frame["serverMsgId"], "a seq stands for one message"
        self.provisional.pop(frame["serverMsgId"], None)
        self._seen.add(frame["serverMsgId"])

    def _note_error(self, frame: Frame) -> None:
        name = frame.get("clientMsgId")
        if name is None:
            assert frame["reason"] == "server_shutdown", frame
        elif frame["reason"] not in TRANSIENT:
            assert name not in self.saved, f"refused after it was saved: {frame}"
            self.refused[name] = frame["reason"]
            self._outbox.pop(name, None)
            self._on_wire.pop(name, None)
        elif name in self._outbox:
            self.busy += 1
            target = self._target(self._outbox[name])
            self._paused[target] = time.monotonic() + 0.3
            behind = False
            for other, sent in self._outbox.items():
                behind = behind or other == name
                if behind and self._target(sent) == target:
                    self._on_wire.pop(other, None)

    def complete_to(self, name: str) -> int:
        seq = self._complete.get(name, 0)
        while seq + 1 in self.received[name]:
            seq += 1
        self._complete[name] = seq
        return seq

    def _has_gap(self) -> bool:
        return any(len(seqs) > self.complete_to(name) for name, seqs in list(self.received.items()))

    async def _pull(self, connection: ClientConnection, frame: Frame) -> None:
        for head in frame["conversations"]:
            if head["headSeq"] > self.complete_to(head["conversationId"]):
                await self._ask(connection, head["conversationId"], self.complete_to(head["conversationId"]) + 1)
        if frame["hasMore"]:
            await connection.send(json.dumps({"type": "SYNC", "cursor": frame["cursor"]}))

    async def _ask(self, connection: ClientConnection, name: str, seq: int) -> None:
        await connection.send(json.dumps({"type": "PULL", "conversationId": name, "beginSeq": seq}))


class Talk:
    """Some people who talk to their neighbour, and to a group of all."""

    def __init__(self, site: Site, talkers: list[Talker], group_id: str) -> None:
        self.site = site
        self.talkers = talkers
        self.group_id = group_id
        self.running = [asyncio.create_task(talker.run()) for talker in talkers]

    @property
    def saved(self) -> int:
        return sum(len(talker.saved) for talker in self.talkers)

    @property
    def accepted(self) -> int:
        return sum(len(talker.accepted) for talker in self.talkers)

    @property
    def busy(self) -> int:
        return sum(talker.busy for talker in self.talkers)

    async def until(self, is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + patience_s
        while not is_so():
            self.check_alive()
            if time.monotonic() > deadline:
                unsaved = [talker.unsaved for talker in self.talkers]
                raise AssertionError(f"never: {what}; saved {self.saved}, accepted {self.accepted}, unsaved {unsaved}")
            await asyncio.sleep(0.02)

    async def until_more(self, count: int = 50) -> None:
        """So many more are saved."""
        wanted = self.saved + count
        await self.until(lambda: self.saved >= wanted, f"{count} more saved")

    async def until_more_accepted(self, count: int = 50) -> None:
        wanted = self.accepted + count
        await self.until(lambda: self.accepted >= wanted, f"{count} more accepted")

    def check_alive(self) -> None:
        for task in self.running:
            if task.done():
                task.result()
                raise AssertionError("one of them has ended")

    async def finish(self) -> None:
        """No more new messages. Everything is saved, everybody who is connected has it all, and nobody sees what
        is not there; then both sides are compared with what is stored."""
        for talker in self.talkers:
            talker.stop()
        await self.until(lambda: not any(talker.unsaved for talker in self.talkers), "all are saved")
        async with httpx.AsyncClient(base_url=self.site.address, timeout=60, trust_env=False) as http:
            stored: dict[str, list[Frame]] = {}
            for talker in self.talkers:
                await self._check_side(http, talker, stored)
            for talker in self.talkers:
                known = {
                    name: {message["seq"]: message["server_msg_id"] for message in messages}
                    for name, messages in stored.items()
                    if talker.user_id in name or name.startswith("sg_")
                }

                def converged(talker: Talker = talker, known: dict[str, dict[int, str]] = known) -> bool:
                    return not talker.provisional and all(talker.received[name] == known[name] for name in known)

                await self.until(converged, f"{talker.user_id} sees what is stored, provisional {talker.provisional}")

    async def _check_side(self, http: httpx.AsyncClient, talker: Talker, stored: dict[str, list[Frame]]) -> None:
        for target in talker.targets:
            low, high = sorted((talker.user_id, target))
            name = f"sg_{target}" if target.startswith("g_") else f"si_{low}:{high}"
            messages = await history(http, talker.token, name)
            assert stored.setdefault(name, messages) == messages, "both sides see the same history"
            assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1)), "gapless"
            mine = [m for m in messages if m["sender_id"] == talker.user_id and m["msg_type"] < 100]
            wanted = [name for name in talker.sent[target] if name not in talker.refused]
            found = [m["client_msg_id"] for m in mine]
            where = next((i for i, (one, two) in enumerate(zip(found, wanted, strict=False)) if one != two), -5)
            around = slice(max(0, where - 3), where + 5)
            assert found == wanted, f"all of it, once, in order: stored {found[around]}, sent {wanted[around]}"
            for message in mine:
                ack = talker.saved[message["client_msg_id"]]
                assert (ack["msgSeq"], ack["serverMsgId"]) == (message["seq"], message["server_msg_id"])


async def history(http: httpx.AsyncClient, token: str, name: str) -> list[Frame]:
    found: list[Frame] = []
    begin_seq = 1
    while True:
        answer = await http.get(
            "/msg/pull",
            params={"conversation_id": name, "begin_seq": begin_seq},
            headers={"Authorization": f"Bearer {token}"},
        )
        page = answer.json()["data"]
        found += page["messages"]
        if not page["has_more"]:
            return found
        begin_seq = page["next_seq"]


@contextlib.asynccontextmanager
async def talking(site: Site, people: int = 6, *, is_started: bool = True, **options: Any) -> AsyncIterator[Talk]:
    """Everybody is connected and, unless nobody saves, something is saved when the block begins; its good end is
    `finish`."""
    names = [f"t{i}" for i in range(people)]
    tokens = await sign_up(site.address, names)
    async with httpx.AsyncClient(base_url=site.address, timeout=60, trust_env=False) as http:
        answer = await http.post(
            "/group/create",
            json={"name": "all", "member_ids": names[1:]},
            headers={"Authorization": f"Bearer {tokens[names[0]]}"},
        )
    group = str(answer.json()["data"]["group_id"])
    talkers = [
        Talker(site, name, tokens[name], [names[(i + 1) % people], group], **options) for i, name in enumerate(names)
    ]
    talk = Talk(site, talkers, group)
    try:
        if is_started:
            await talk.until_more(people)
        yield talk
        await talk.finish()
    finally:
        for talker in talkers:
            talker.end()
        for task in talk.running:
            task.cancel()
        await asyncio.gather(*talk.running, return_exceptions=True)
