"""The HTTP requests of a run besides its load: users, groups, histories. Over kept-alive connections, a few at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from nexo.bench.http import BenchHttpConnection, ServerAddress, decode_answer, header, with_body

T = TypeVar("T")
TRIES = 5
TRIES_OVER_RESTARTS = 25
PAUSE_MAX_S = 3.2
_encode = msgspec.json.Encoder().encode


class Refused(Exception):
    """The server refused a call; the text states which, and why."""

    def __init__(self, what: str, status: int, reason: str, detail: str = "") -> None:
        super().__init__(f"{what}: {status} {reason}{f' ({detail})' if detail else ''}")
        self.reason = reason


_Exchanged = tuple[int, bytes, bytes]  # status, head, body


class HttpCaller:
    def __init__(self, addresses: Sequence[ServerAddress], at_once: int = 16, tries: int = TRIES) -> None:
        self._tries = tries
        self._addresses = addresses
        self._turn = 0
        self._slots = asyncio.Semaphore(at_once)
        self._idle: dict[ServerAddress, list[BenchHttpConnection]] = {address: [] for address in addresses}

    async def call(self, method: str, path: str, token: str = "", body: object = None, **query: object) -> bytes:
        """Returns the `data` of the answer, still encoded. A request without an answer, or answered with 429 or 503,
        is sent again."""
        target = f"{path}?{urlencode(query)}" if query else path
        content = b"" if body is None else _encode(body)
        pause_s = 0.2
        for tried in range(1, self._tries + 1):
            try:
                status, head, answer = await self._exchange(method, target, token, content)
            except OSError:
                if tried == self._tries:
                    raise
            else:
                if status == 200:
                    return bytes(decode_answer(answer).data)
                if tried == self._tries or status not in (429, 503):
                    raise self._refusal(f"{method} {path}", status, answer)
                retry_after = header(head, b"retry-after")
                pause_s = max(pause_s, float(retry_after) if retry_after.isdigit() else 0.0)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)
        raise AssertionError("the last try returns or raises")

    async def fetch(self, path: str) -> bytes:
        """A page that is no call, once."""
        status, _, content = await self._exchange("GET", path, "", b"")
        if status != 200:
            raise Refused(f"GET {path}", status, content[:200].decode(errors="replace"))
        return content

    async def _exchange(self, method: str, target: str, token: str, content: bytes) -> _Exchanged:
        async with self._slots:
            self._turn += 1
            address = self._addresses[self._turn % len(self._addresses)]
            connection = await self._connection(address)
            waiting: asyncio.Future[_Exchanged] = asyncio.get_running_loop().create_future()

            def answered(*answer: Any) -> None:
                if not waiting.done():
                    waiting.set_result(answer)

            def lost() -> None:
                if not waiting.done():
                    waiting.set_exception(ConnectionError(f"{address} closed the connection"))

            connection.on_answer, connection.on_lost = answered, lost
            connection.send(with_body(address.request_head(method, target, token), content))
            try:
                answer = await waiting
            except BaseException:
                connection.cut()
                # other connections are as old: a server closes those that were not used for some seconds
                self.close()
                raise
            self._idle[address].append(connection)
            return answer

    async def _connection(self, address: ServerAddress) -> BenchHttpConnection:
        idle = self._idle[address]
        while idle:
            connection = idle.pop()
            if connection.open:
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_unused, address.host, address.port, ssl=address.tls)
        return connection

    def _refusal(self, what: str, status: int, content: bytes) -> Refused:
        try:
            answer = decode_answer(content)
        except msgspec.DecodeError:
            return Refused(what, status, content[:200].decode(errors="replace"))
        return Refused(what, status, answer.err_msg, answer.detail)

    def close(self) -> None:
        for idle in self._idle.values():
            for connection in idle:
                connection.cut()
            idle.clear()


def _unused() -> BenchHttpConnection:
    return BenchHttpConnection(lambda *_: None, lambda: None)


async def few_at_a_time(work: Callable[[T], Awaitable[Any]], items: Sequence[T], at_once: int = 16) -> None:
    """The first failure ends all of it."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(worker())
