"""People who chat with a running server: over HTTP, and over WebSocket by a library the server does not use.

    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.say(ben, "hello")
        await ben.expect("SINGLE_CHAT", body="hello")

When the block ends well, whoever is still connected knows from pushes what a fresh fetch tells
(`assert_push_equals_pull`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol, Self

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from harness.replica import Fetched, Frame, Replica, differences, from_http, is_own

SUBPROTOCOL = "nexo.envelope.v1"
PASSWORD = "correct horse battery"
AT_ONCE = 16  # requests: passwords are checked a few at a time
PATIENCE_S = 30.0  # only a broken server makes a test wait this long; the machine may be busy

_numbers = itertools.count(1)


def fresh_id() -> str:
    return f"m{next(_numbers)}-{secrets.token_hex(4)}"


class Refused(Exception):
    """An HTTP call was answered with an error of the table."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.name: str = body["err_msg"]
        self.body = body


class Tokens:
    """One login."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.access: str = data["access_token"]
        self.refresh: str = data["refresh_token"]
        self.expires_at: int = data["expires_at"]


class Person:
    """A registered user: calls the HTTP API with the tokens of the first login, and opens connections."""

    def __init__(self, world: World, user_id: str) -> None:
        self.world = world
        self.user_id = user_id
        self.tokens: Tokens

    def __repr__(self) -> str:
        return f"<{self.user_id}>"

    async def log_in(self, platform_id: int = 5, device_id: str = "", password: str = PASSWORD) -> Tokens:
        data = await self.world.call(
            "POST",
            "/auth/login",
            json={
                "user_id": self.user_id,
                "password": password,
                "platform_id": platform_id,
                "device_id": device_id,
            },
        )
        return Tokens(data)

    async def call(self, method: str, path: str, *, tokens: Tokens | None = None, **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {(tokens or self.tokens).access}"}
        return await self.world.call(method, path, headers=headers, **options)

    async def get(self, path: str, **query: Any) -> Any:
        return await self.call("GET", path, params=query)

    async def post(self, path: str, **fields: Any) -> Any:
        return await self.call("POST", path, json=fields)

    async def put(self, path: str, **fields: Any) -> Any:
        return await self.call("PUT", path, json=fields)

    async def send(self, to: Person | Client | str, body: Any, **fields: Any) -> Any:
        """A message through `POST /msg/send`."""
        target = to if isinstance(to, str) else to.user_id
        where = "group_id" if target.startswith("g_") else "recv_id"
        return await self.post("/msg/send", **{where: target, "content": body, "client_msg_id": fresh_id()} | fields)

    async def found_group(self, *members: Person | Client, **fields: Any) -> str:
        """A new group of these; its id."""
        made = await self.post(
            "/group/create", **{"name": "team", "member_ids": [member.user_id for member in members]} | fields
        )
        return str(made["group_id"])

    async def open(self, **options: Any) -> Client:
        """A connection on which nothing was said yet."""
        client = Client(self)
        await client.open(**options)
        self.world.clients.append(client)
        return client

    async def connect(
        self, tokens: Tokens | None = None, *, device_id: str | None = None, baselines: Any = None, **options: Any
    ) -> Client:
        """A connection that is signed in and synced."""
        client = await self.open(**options)
        await client.sign_in(tokens, device_id=device_id, baselines=baselines)
        return client


class Site(Protocol):
    """A server, or several that behave as one."""

    @property
    def address(self) -> str: ...

    @property
    def ws_address(self) -> str: ...


class Closable(Protocol):
    async def close(self) -> None: ...


class World:
    """A server, and everybody who talks to it in one test."""

    def __init__(self, server: Site, http: httpx.AsyncClient) -> None:
        self.server = server
        self.http = http
        self.clients: list[Client] = []
        self.speakers: list[Closable] = []  # of whatever dialect

    async def call(self, method: str, path: str, **options: Any) -> Any:
        response = await self.http.request(method, self.server.address + path, **options)
        body = response.json()
        if body["err_code"]:
            raise Refused(response.status_code, body)
        return body["data"]

    async def stranger(self, name: str) -> Person:
        """A new user whose id begins so, who does not sign in."""
        person = Person(self, f"{name}.{secrets.token_hex(5)}")
        await self.call("POST", "/user/register", json={"user_id": person.user_id, "password": PASSWORD})
        return person

    async def person(self, name: str) -> Person:
        """A new user whose id begins so, signed in."""
        person = await self.stranger(name)
        person.tokens = await person.log_in()
        return person

    async def people(self, *names: str) -> list[Person]:
        return await self._make(self.person, names)

    async def strangers(self, *names: str) -> list[Person]:
        return await self._make(self.stranger, names)

    async def _make(self, make: Callable[[str], Awaitable[Person]], names: Sequence[str]) -> list[Person]:
        found: list[Person] = []
        for start in range(0, len(names), AT_ONCE):
            found += await asyncio.gather(*map(make, names[start : start + AT_ONCE]))
        return found

    async def close(self) -> None:
        """Nobody stays: a loop with an open connection does not end while a failed test still holds on to it."""
        await asyncio.gather(*(client.close() for client in self.clients))
        await asyncio.gather(*(speaker.close() for speaker in self.speakers), return_exceptions=True)


@contextlib.asynccontextmanager
async def world(server: Site, *, check_pushes: bool = True) -> AsyncIterator[World]:
    """Nobody is there yet. At the end pushes are compared with pulls for everybody who is connected."""
    async with httpx.AsyncClient(base_url=server.address, timeout=PATIENCE_S, verify=False, trust_env=False) as http:
        here = World(server, http)
        try:
            yield here
            if check_pushes:
                await asyncio.gather(
                    *(assert_push_equals_pull(client) for client in here.clients if client.is_signed_in)
                )
        finally:
            await here.close()


@contextlib.asynccontextmanager
async def meet(server: Site, *names: str, check_pushes: bool = True) -> AsyncIterator[Sequence[Client]]:
    """New users with these names, each connected once."""
    async with world(server, check_pushes=check_pushes) as here:
        people = await here.people(*names)
        yield await asyncio.gather(*(person.connect() for person in people))


Match = Callable[[Frame], bool]


def is_early(frame: Frame) -> bool:
    """Two-phase: nothing is certain yet."""
    return frame.get("ackType") == "accepted" or bool(frame.get("provisional")) or frame["type"] == "MESSAGE_WITHDRAWN"


class Client:
    """One connection. Every frame is kept in `frames`; `expect` takes them one by one."""

    def __init__(self, me: Person) -> None:
        self.me = me
        self.frames: list[Frame] = []
        self.early: list[Frame] = []  # accepted, provisional, withdrawn: what comes before something is saved
        self.heard: list[Frame] = []  # all of both, in order
        self.replica = Replica(me.user_id)
        self.close_code: int | None = None
        self.close_reason = ""
        self.is_signed_in = False
        self._not_taken: list[Frame] = []
        self._changed = asyncio.Event()
        self._socket: ClientConnection
        self._reader: asyncio.Task[None]

    def __repr__(self) -> str:
        return f"<connection of {self.me.user_id}>"

    @property
    def user_id(self) -> str:
        return self.me.user_id

    # -- its life ------------------------------------------------------------------------------------------

    async def open(self, *, uri: str = "", headers: dict[str, str] | None = None, **options: Any) -> Self:
        self._socket = await connect(
            uri or self.me.world.server.ws_address,
            additional_headers=headers,
            **{
                "subprotocols": [SUBPROTOCOL],
                "compression": None,
                "ping_interval": None,
                "open_timeout": PATIENCE_S,
                "close_timeout": PATIENCE_S,
                "max_size": None,
                "proxy": None,
            }
            | options,
        )
        self._reader = asyncio.create_task(self._read())
        return self

    async def sign_in(
        self, tokens: Tokens | None = None, *, device_id: str | None = None, baselines: Any = None
    ) -> Frame:
        """AUTH, and everything that follows it; the AUTH_OK."""
        frame: Frame = {"type": "AUTH", "token": (tokens or self.me.tokens).access}
        if device_id is not None:
            frame["deviceId"] = device_id
        if baselines is not None:
            frame["baselines"] = baselines
        await self.send(frame)
        return await self.signed_in()

    async def signed_in(self) -> Frame:
        done = await self.expect("AUTH_OK")
        synced = await self.expect("SYNC")
        while synced["hasMore"]:
            await self.send({"type": "SYNC", "cursor": synced["cursor"]})
            synced = await self.expect("SYNC")
        await self.expect("RESEND_DONE")
        self.is_signed_in = True
        return done

    async def close(self) -> None:
        """Say goodbye, from this side."""
        self.is_signed_in = False
        await self._socket.close()
        await self._reader

    def cut(self) -> None:
        """The connection is gone, without a word."""
        self.is_signed_in = False
        self._socket.transport.abort()

    @property
    def socket(self) -> ClientConnection:
        return self._socket

    async def _read(self) -> None:
        try:
            async for data in self._socket:
                assert isinstance(data, str), "the server sends text"
                frame = json.loads(data)
                self.heard.append(frame)
                if is_early(frame):
                    self.early.append(frame)
                else:
                    self.frames.append(frame)
                    self._not_taken.append(frame)
                    self.replica.receives(frame)
                self._changed.set()
        except ConnectionClosed:
            pass
        finally:
            self.is_signed_in = False
            self.close_code, self.close_reason = self._socket.close_code, self._socket.close_reason or ""
            self._changed.set()

    # -- frames --------------------------------------------------------------------------------------------

    async def send(self, *frames: Frame) -> None:
        for frame in frames:
            self.replica.sends(frame)
            await self._socket.send(json.dumps(frame))

    async def send_at_once(self, *frames: Frame) -> None:
        """All of them in one write, so that the server reads them together."""
        for frame in frames:
            self.replica.sends(frame)
        protocol = self._socket.protocol
        for frame in frames:
            protocol.send_text(json.dumps(frame).encode())
        self._socket.transport.write(b"".join(protocol.data_to_send()))

    async def send_raw(self, data: str | bytes) -> None:
        await self._socket.send(data)

    async def expect(
        self, kind: str | None = None, *, where: Match | None = None, timeout_s: float = PATIENCE_S, **fields: Any
    ) -> Frame:
        """The first frame of that type with these fields that was not taken yet; waits for it."""
        deadline = time.monotonic() + timeout_s
        while True:
            for i, frame in enumerate(self._not_taken):
                if _matches(frame, kind, where, fields):
                    return self._not_taken.pop(i)
            self._changed.clear()
            wait_s = deadline - time.monotonic()
            ended = self._reader.done()
            if not ended and wait_s > 0:
                # not wait_for: before Python 3.12 it swallows a cancellation when something has just changed
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._changed.wait()
                continue
            what = f"closed {self.close_code} {self.close_reason!r}" if ended else "nothing more"
            raise AssertionError(
                f"{self} waits for {kind} {fields}; {what}; not taken: {self._not_taken[-10:]}; "
                f"last: {self.frames[-3:]}"
            )

    async def expect_error(self, reason: str, **fields: Any) -> Frame:
        return await self.expect("ERROR", reason=reason, **fields)

    async def expect_close(self, timeout_s: float = PATIENCE_S) -> int:
        """The close code, once the server has ended the connection (1006: without a word)."""
        await asyncio.wait_for(asyncio.shield(self._reader), timeout_s)
        assert self.close_code is not None
        return self.close_code

    def taken_back(self, kind: str, **fields: Any) -> list[Frame]:
        """Frames of that type that came and were not expected so far."""
        return [frame for frame in self._not_taken if _matches(frame, kind, None, fields)]

    def seen(self, kind: str, **fields: Any) -> list[Frame]:
        """Every frame of that type that ever came."""
        return [frame for frame in self.frames if _matches(frame, kind, None, fields)]

    async def settle(self) -> None:
        """Whatever was on its way to this connection has come: there was time for a look into the database."""
        for _ in range(2):
            await self.ask({"type": "SYNC", "conversations": []}, "SYNC", conversations=[])
            await self.ask({"type": "PING"}, "PONG")

    async def expect_nothing(self, kind: str, **fields: Any) -> None:
        await self.settle()
        assert self.taken_back(kind, **fields) == []

    async def ask(self, frame: Frame, kind: str, **fields: Any) -> Frame:
        await self.send(frame)
        return await self.expect(kind, **fields)

    # -- what people do ------------------------------------------------------------------------------------

    def message(self, to: Person | Client | str, body: Any, **fields: Any) -> Frame:
        """A SINGLE_CHAT, or a GROUP_CHAT when `to` is a group's id, under a new clientMsgId."""
        target = to if isinstance(to, str) else to.user_id
        kind, where = ("GROUP_CHAT", "groupId") if target.startswith("g_") else ("SINGLE_CHAT", "to")
        return {"type": kind, "clientMsgId": fresh_id(), where: target, "body": body} | fields

    async def say(self, to: Person | Client | str, body: Any = "hello", **fields: Any) -> Frame:
        """Send a message; its ACK saved."""
        frame = self.message(to, body, **fields)
        return await self.ask(frame, "ACK", ackType="saved", clientMsgId=frame["clientMsgId"])

    async def acknowledge(self, message: Frame, kind: str = "read") -> None:
        await self.send({"type": "ACK", "ackType": kind, "serverMsgId": message["serverMsgId"]})

    async def pull(self, conversation_id: str, begin_seq: int = 1, **fields: Any) -> Frame:
        frame = {"type": "PULL", "conversationId": conversation_id, "beginSeq": begin_seq} | fields
        return await self.ask(frame, "PULL_OK", conversationId=conversation_id)

    async def pull_all(self, conversation_id: str, begin_seq: int = 1) -> list[Frame]:
        found: list[Frame] = []
        while True:
            page = await self.pull(conversation_id, begin_seq)
            found += page["messages"]
            if not page["hasMore"]:
                return found
            begin_seq = page["nextSeq"]

    async def catch_up(self) -> None:
        """What a client does that was told of something it does not have."""
        while self.replica.must_sync:
            synced = await self.ask({"type": "SYNC"}, "SYNC")
            while synced["hasMore"]:
                synced = await self.ask({"type": "SYNC", "cursor": synced["cursor"]}, "SYNC")
        for name, begin_seq in self.replica.to_pull():
            await self.pull_all(name, begin_seq)


def _matches(frame: Frame, kind: str | None, where: Match | None, fields: dict[str, Any]) -> bool:
    if kind is not None and frame["type"] != kind:
        return False
    wanted = {"from" if name == "from_" else name: value for name, value in fields.items()}
    if any(name not in frame or frame[name] != value for name, value in wanted.items()):
        return False
    return where is None or where(frame)


# -- push equals pull ----------------------------------------------------------------------------------------


async def fetch(person: Person, group_receipts: bool = True) -> Fetched:
    """Everything that the server tells this user when asked."""
    entries: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await person.get("/conversation/list", **cursor)
        entries += page["conversations"]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}
    messages: dict[str, list[Frame]] = {}
    receipts: dict[str, dict[str, Any]] = {}

    async def fetch_one(entry: dict[str, Any]) -> None:
        name = entry["conversation_id"]
        found = messages[name] = [from_http(message) for message in await fetch_messages(person, name)]
        own = [message for message in found if is_own(message, person.user_id)]
        if entry["conversation_type"] == 2 and own and group_receipts:
            last = own[-1]["serverMsgId"]
            try:
                receipts[last] = await person.get("/msg/receipts", server_msg_id=last)
            except Refused as refused:
                if refused.name != "member_not_active":  # of a group that was left
                    raise

    for start in range(0, len(entries), AT_ONCE):
        await asyncio.gather(*map(fetch_one, entries[start : start + AT_ONCE]))
    return Fetched(entries, messages, receipts)


async def fetch_messages(person: Person, conversation_id: str) -> list[dict[str, Any]]:
    """All that this user may see of a conversation, page by page."""
    found: list[dict[str, Any]] = []
    begin_seq = 1
    while True:
        page = await person.get("/msg/pull", conversation_id=conversation_id, begin_seq=begin_seq)
        found += page["messages"]
        if not page["has_more"]:
            return found
        begin_seq = page["next_seq"]


async def assert_push_equals_pull(
    client: Client, *, group_receipts: bool = True, timeout_s: float = PATIENCE_S
) -> None:
    """What the client built from the frames it got is what a fresh fetch tells: messages, recalls, events,
    heads, cursors, unread and receipts. Pushes are on their way for a moment; then they must have come."""
    deadline = time.monotonic() + timeout_s
    while True:
        await client.catch_up()
        fetched = await fetch(client.me, group_receipts)
        found = differences(client.replica, fetched)
        if not found:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"{client}: push is not pull:\n" + "\n".join(found[:20]))
        client._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await client._changed.wait()
