"""A receiver of webhooks in this process: notes what it gets, and answers as a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from harness.api import serve
from nexo.api.asgi import Receive, Scope, Send

Event = dict[str, Any]
Decide = Callable[[list[Event]], Awaitable[int]]


class Received(NamedTuple):
    headers: dict[str, str]
    body: bytes
    events: list[Event]
    status: int


async def take_all(events: list[Event]) -> int:
    return 200


class Receiver:
    """`decide` returns the status of the answer to these events; `taken` has the events that were answered with 2xx, in
    the order of the answers."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.taken: list[Event] = []
        self.decide: Decide = take_all
        self.body = b"{}"
        self.headers: list[tuple[bytes, bytes]] = []
        self.url = ""
        self._news = asyncio.Condition()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        decoded = msgspec.json.decode(body)
        events = decoded.get("events", [decoded])
        status = await self.decide(events)
        answer = self.body
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        async with self._news:
            self.requests.append(Received(headers, body, events, status))
            if 200 <= status < 300:
                self.taken += events
            self._news.notify_all()
        await send({"type": "http.response.start", "status": status, "headers": self.headers})
        await send({"type": "http.response.body", "body": answer})

    async def until(self, is_there: Callable[[], bool], timeout_s: float = 30) -> None:
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(is_there)

    async def until_taken(self, count: int) -> None:
        await self.until(lambda: len(self.taken) >= count)

    def contents(self) -> list[Any]:
        """Returns the contents of the messages that were taken."""
        return [event["data"]["content"] for event in self.taken if event["type"] == "message.saved"]


@asynccontextmanager
async def receiving(receiver: Receiver | None = None) -> AsyncIterator[Receiver]:
    """Yields a receiver that listens."""
    receiver = receiver or Receiver()
    async with serve(receiver) as address:
        receiver.url = f"{address}/hook"
        yield receiver
