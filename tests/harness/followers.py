"""Users who stay connected whatever happens to the instances, and note when they learn of what was saved.

A follower does what the documentation asks of a client: it keeps a send until it is saved, connects to another
instance when its own drops or refuses it, and syncs when it is asked to.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from harness.chat import Site
from harness.pair_load import open_socket, sign_up

MESSAGES = ("SINGLE_CHAT", "GROUP_CHAT", "GROUP_EVENT")
PATIENCE_S = 40.0
SIGN_IN_S = 2.0
AGAIN_S = 0.3
RETRIED = ("server_busy", "internal_error", "too_many_requests", "server_shutdown")


class Saved(NamedTuple):
    conversation_id: str
    seq: int
    client_msg_id: str
    at: float  # when the sender's ACK arrived


class Notice(NamedTuple):
    """What a user learned at one moment."""

    at: float
    kind: str
    conversation_id: str  # empty: RESYNC for all of them
    head_seq: int  # 0: RESYNC


class Follower:
    def __init__(self, user_id: str, token: str, sites: Sequence[Site], home: int) -> None:
        self.user_id = user_id
        self.token = token
        self.notices: list[Notice] = []
        self.resyncs: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self.accepted: list[str] = []  # clientMsgIds
        self.drops: list[tuple[int | None, str]] = []  # close code and reason
        self.connects = 0
        self._sites = sites
        self._home = home
        self._saved: dict[str, Saved] = {}
        self._unsaved: dict[str, dict[str, Any]] = {}
        self._socket: ClientConnection | None = None
        self._changed = asyncio.Event()

    # -- its life ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        for attempt in itertools.count():
            site = self._sites[(self._home + attempt) % len(self._sites)]
            with contextlib.suppress(OSError, InvalidHandshake, EOFError, ConnectionClosed, TimeoutError):
                async with asyncio.timeout(SIGN_IN_S):
                    socket = await open_socket(site.ws_address, self.token)
                    while (frame := json.loads(await socket.recv()))["type"] != "SYNC":
                        if frame["type"] == "AUTH_FAIL":
                            raise TimeoutError
                self.connects += 1
                self._take(frame)
                await self._listen(socket)
            self._socket = None
            await asyncio.sleep(0.1)

    async def _listen(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._changed.set()
        for frame in list(self._unsaved.values()):
            await socket.send(json.dumps(frame))
        try:
            async for data in socket:
                self._take(json.loads(data))
        finally:
            self.drops.append((socket.close_code, socket.close_reason or ""))
            socket.transport.abort()

    def _take(self, frame: dict[str, Any]) -> None:
        now = time.monotonic()
        kind = frame["type"]
        if kind in MESSAGES and not frame.get("provisional"):
            self.notices.append(Notice(now, kind, frame["conversationId"], frame["msgSeq"]))
        elif kind in ("SYNC", "HEADS"):
            self.notices += [
                Notice(now, kind, item["conversationId"], item["headSeq"]) for item in frame["conversations"]
            ]
        elif kind == "RESYNC":
            self.resyncs.append(frame)
            self.notices += [Notice(now, kind, name, 0) for name in frame.get("conversations", [""])]
            asyncio.get_running_loop().call_later(frame["afterMs"] / 1000, self._put, {"type": "SYNC"})
        elif kind == "ACK" and frame["ackType"] == "accepted":
            self.accepted.append(frame["clientMsgId"])
        elif kind == "ACK" and frame["ackType"] == "saved":
            name = frame["clientMsgId"]
            self._unsaved.pop(name, None)
            self._saved.setdefault(name, Saved(frame["conversationId"], frame["msgSeq"], name, now))
        elif kind == "ERROR":
            self.errors.append(frame)
            name = frame.get("clientMsgId")
            if name in self._unsaved and frame["reason"] in RETRIED:
                asyncio.get_running_loop().call_later(AGAIN_S, self._put_again, name)
        self._changed.set()

    def _put_again(self, name: str) -> None:
        if name in self._unsaved:
            self._put(self._unsaved[name])

    def _put(self, frame: dict[str, Any]) -> None:
        if self._socket is not None:
            task = asyncio.ensure_future(self._socket.send(json.dumps(frame)))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _until_changed(self, deadline: float) -> bool:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._changed.wait()
        return time.monotonic() < deadline

    async def connected(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self._socket is None:
            assert await self._until_changed(deadline), f"{self.user_id} cannot connect; drops {self.drops}"

    # -- what it does --------------------------------------------------------------------------------------

    def put(self, to: str) -> str:
        """Send a message to a user or group; its clientMsgId."""
        name = f"f-{secrets.token_hex(6)}"
        kind, where = ("GROUP_CHAT", "groupId") if to.startswith("g_") else ("SINGLE_CHAT", "to")
        frame = {"type": kind, where: to, "clientMsgId": name, "body": name}
        self._unsaved[name] = frame
        self._put(frame)
        return name

    async def saved(self, name: str, timeout_s: float = PATIENCE_S) -> Saved:
        """Waits until this send is acknowledged as saved."""
        deadline = time.monotonic() + timeout_s
        while name not in self._saved:
            assert await self._until_changed(deadline), (
                f"{name} was not saved in {timeout_s} s; accepted: {name in self.accepted}; errors {self.errors[-5:]}"
            )
        return self._saved[name]

    async def learns(self, message: Saved, timeout_s: float = PATIENCE_S) -> float:
        """Seconds from the sender's ACK until this user knew of the message, or that there is something."""
        deadline = time.monotonic() + timeout_s
        while True:
            for notice in self.notices:
                if notice.conversation_id == message.conversation_id and notice.head_seq >= message.seq:
                    return max(0.0, notice.at - message.at)
                is_resync = notice.kind == "RESYNC" and notice.conversation_id in ("", message.conversation_id)
                if is_resync and notice.at >= message.at:
                    return notice.at - message.at
            assert await self._until_changed(deadline), (
                f"{self.user_id} knows nothing of seq {message.seq} after {timeout_s} s; notices {self.notices[-5:]}, "
                f"drops {self.drops}"
            )

    async def knows(self, message: Saved, timeout_s: float = PATIENCE_S) -> None:
        """Waits until it knows a head that covers the message: RESYNC alone does not count."""
        deadline = time.monotonic() + timeout_s
        while not any(
            notice.conversation_id == message.conversation_id and notice.head_seq >= message.seq
            for notice in self.notices
        ):
            assert await self._until_changed(deadline), (self.user_id, message, self.notices[-5:])


async def stored(site: Site, token: str, conversation_id: str) -> list[str]:
    """The clientMsgIds of a conversation, in the order of their seq."""
    found: list[str] = []
    page: dict[str, Any] = {"has_more": True, "next_seq": 1}
    async with httpx.AsyncClient(base_url=site.address, timeout=PATIENCE_S, trust_env=False) as http:
        while page["has_more"]:
            answer = await http.get(
                "/msg/pull",
                params={"conversation_id": conversation_id, "begin_seq": page["next_seq"]},
                headers={"Authorization": f"Bearer {token}"},
            )
            page = answer.json()["data"]
            found += [message["client_msg_id"] for message in page["messages"]]
    return found


@contextlib.asynccontextmanager
async def following(sites: Sequence[Site], *homes: int) -> AsyncIterator[list[Follower]]:
    """New users, each connected to the site with that number; when it fails them, to the next one."""
    names = [f"f{i}.{secrets.token_hex(4)}" for i in range(len(homes))]
    tokens = await sign_up(sites[0].address, names)
    followers = [Follower(name, tokens[name], sites, home) for name, home in zip(names, homes, strict=True)]
    running = [asyncio.create_task(follower.run()) for follower in followers]
    try:
        for follower in followers:
            await follower.connected()
        yield followers
        for task in running:
            assert not task.done(), task
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
