"""The few HTTP calls that a run needs: users, groups, histories. Kept-alive connections, at most so many at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from nexo.bench.websocket import Address

T = TypeVar("T")
TRIES = 5
_encode = msgspec.json.Encoder().encode


class Answer(msgspec.Struct):
    err_code: int
    err_msg: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    detail: str = ""


class Refused(Exception):
    """The server said no; the text says to what, and why."""

    def __init__(self, what: str, status: int, reason: str, detail: str = "") -> None:
        super().__init__(f"{what}: {status} {reason}{f' ({detail})' if detail else ''}")
        self.reason = reason


_decode = msgspec.json.Decoder(Answer).decode


class Caller:
    def __init__(self, addresses: Sequence[Address], at_once: int = 16) -> None:
        self._addresses = addresses
        self._turn = 0
        self._slots = asyncio.Semaphore(at_once)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call(self, method: str, path: str, token: str = "", body: object = None, **query: object) -> bytes:
        """The `data` of the answer, still encoded. What failed on the way, and what may be tried again later, is."""
        target = f"{path}?{urlencode(query)}" if query else path
        pause_s = 0.2
        for tried in range(1, TRIES + 1):
            try:
                async with self._slots:
                    status, retry_after_s, content = await self._exchange(method, target, token, body)
            except (OSError, EOFError, asyncio.IncompleteReadError):
                if tried == TRIES:
                    raise
            else:
                if status == 200:
                    return bytes(_decode(content).data)
                if tried == TRIES or status not in (429, 503):
                    raise self._refusal(f"{method} {path}", status, content)
                pause_s = max(pause_s, retry_after_s)
            await asyncio.sleep(pause_s)
            pause_s *= 2
        raise AssertionError("the last try returns or raises")

    async def _exchange(self, method: str, target: str, token: str, body: object) -> tuple[int, float, bytes]:
        async with self._connection() as (reader, writer, address):
            content = b"" if body is None else _encode(body)
            bearer = f"Authorization: Bearer {token}\r\n" if token else ""
            head = (
                f"{method} {address.prefix}{target} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n{bearer}"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            writer.write(head.encode() + content)
            status_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            answer = await reader.readexactly(int(headers.get("content-length", 0)))
            retry_after = headers.get("retry-after", "0")
            return int(status_line.split()[1]), float(retry_after) if retry_after.isdigit() else 0.0, answer

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, Address]]:
        self._turn += 1
        address = self._addresses[self._turn % len(self._addresses)]
        if self._idle and len(self._addresses) == 1:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection(address.host, address.port, ssl=address.tls, limit=1 << 22)
        try:
            yield reader, writer, address
        except BaseException:
            writer.close()
            # the others are as old: a server closes those that were not used for some seconds
            for _, other in self._idle:
                other.close()
            self._idle.clear()
            raise
        if len(self._addresses) == 1:
            self._idle.append((reader, writer))
        else:
            writer.close()

    def _refusal(self, what: str, status: int, content: bytes) -> Refused:
        try:
            answer = _decode(content)
        except msgspec.DecodeError:
            return Refused(what, status, content[:200].decode(errors="replace"))
        return Refused(what, status, answer.err_msg, answer.detail)

    async def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        self._idle.clear()


async def few_at_a_time(work: Callable[[T], Awaitable[Any]], items: Sequence[T], at_once: int = 16) -> None:
    """The first failure ends all of it."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(worker())
