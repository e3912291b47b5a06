"""A network that can fail: a TCP proxy in front of a database server, in the event loop of the test.

Everything passes until it is told otherwise. `cut` breaks the open connections; `cut_at` waits for a statement
and breaks the one connection that carries it, before the server sees it or after the server has answered, or
on the near side only, so that the server goes on waiting; `stall` keeps all connections open and lets nothing
through until `flow`; `refuse` lets no client connect until `flow`. In front of Redis `stall` may be for one kind of
connection only: those that listen to channels, or those that send commands.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from urllib.parse import urlsplit

CHUNK_BYTES = 1 << 16
GREETINGS = (b"CLIENT\r\n", b"HELLO\r\n", b"AUTH\r\n", b"SELECT\r\n")  # sent on every new connection to Redis


class Only(Enum):
    LISTENING = "connections that have subscribed to a channel"
    COMMANDS = "all other connections"


class Moment(Enum):
    BEFORE = "the server never sees it"
    AFTER = "the server has done it, and its answer is lost"
    LATE = "the server still holds its locks, and sees it when `deliver` is called"


class _Trap:
    def __init__(self, text: bytes, moment: Moment, times: int) -> None:
        self.text = text
        self.moment = moment
        self.times = times
        self.sprung = asyncio.Event()  # as often as it was asked for


class _Link:
    """One connection through the proxy."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.near = near
        self.far = far
        self.mute = False  # the next answer is the last thing this link hears
        self.listens = False  # it has subscribed to a channel
        self.is_dead = False  # open on both sides, and nothing will ever pass

    def cut(self) -> None:
        for writer in (self.near, self.far):
            writer.transport.abort()


class Proxy:
    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._traps: list[_Trap] = []
        self._open = asyncio.Event()
        self._open.set()
        self._only: Only | None = None
        self._refusing = False
        self._port = 0
        self._late: list[tuple[_Link, bytes]] = []
        self.connections = 0  # so far
        self.held = 0  # requests and new connections that a stall holds back now

    @property
    def url(self) -> str:
        """The database's URL by way of this proxy."""
        account = self._target.netloc.rpartition("@")[0]
        return self._target._replace(netloc=f"{account}@127.0.0.1:{self._port}").geturl()

    def cut(self) -> None:
        for link in list(self._links):
            link.cut()

    def cut_at(self, text: str, moment: Moment, times: int = 1) -> asyncio.Event:
        """Cut the connections of the next `times` statements that contain `text`; the event tells that all were."""
        trap = _Trap(text.encode(), moment, times)
        self._traps.append(trap)
        return trap.sprung

    def stall(self, only: Only | None = None) -> None:
        self._only = only
        self._open.clear()

    def kill_quietly(self) -> None:
        """Open connections never carry anything again, without a sign to either side; new ones do."""
        for link in self._links:
            link.is_dead = True

    def refuse(self) -> None:
        self._refusing = True

    def flow(self) -> None:
        self._refusing = False
        self._open.set()

    def deliver(self) -> None:
        """What was caught at Moment.LATE reaches the server now, if it is still listening."""
        for link, chunk in self._late:
            if not link.far.is_closing():
                link.far.write(chunk)

    async def _serve(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        if self._only is None:
            await self._let_through()
        if self._refusing:
            near.transport.abort()
            return
        try:
            far_reader, far = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:  # the server is down
            near.transport.abort()
            return
        link = _Link(near, far)
        self._links.add(link)
        self.connections += 1
        pumps = [
            asyncio.create_task(self._pump_requests(link, reader)),
            asyncio.create_task(self._pump_answers(link, far_reader)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._links.discard(link)
            link.cut()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _let_through(self) -> None:
        self.held += 1
        try:
            await self._open.wait()
        finally:
            self.held -= 1

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pump_requests(self, link: _Link, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                await self._wait_for_way(link, chunk)
                trap = self._trap_for(chunk)
                if trap is not None and trap.moment is Moment.LATE:
                    self._late.append((link, chunk))
                    self._spring(trap)
                    link.near.transport.abort()
                    await asyncio.Event().wait()  # the far side stays as it is
                elif trap is not None and trap.moment is Moment.BEFORE:
                    link.cut()
                elif trap is not None:
                    link.mute = True
                if not link.far.is_closing():
                    link.far.write(chunk)
                    await link.far.drain()
                self._spring(trap)

    async def _pump_answers(self, link: _Link, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                await self._wait_for_way(link)
                if link.mute:
                    link.cut()
                    return
                link.near.write(chunk)
                await link.near.drain()

    async def _wait_for_way(self, link: _Link, request: bytes | None = None) -> None:
        if request is not None:
            link.listens = link.listens or b"SUBSCRIBE\r\n" in request.upper()
        while not self._open.is_set() and self._concerns(link, request):
            await self._let_through()
        if link.is_dead:
            await asyncio.Event().wait()

    def _concerns(self, link: _Link, request: bytes | None) -> bool:
        if self._only is None:
            return True
        if self._only is Only.LISTENING:
            return link.listens
        is_greeting = request is not None and any(word in request for word in GREETINGS)
        return not link.listens and not is_greeting

    def _trap_for(self, chunk: bytes) -> _Trap | None:
        return next((trap for trap in self._traps if trap.times and trap.text in chunk), None)

    def _spring(self, trap: _Trap | None) -> None:
        if trap is not None:
            trap.times -= 1
            if not trap.times:
                self._traps.remove(trap)
                trap.sprung.set()

    async def _close(self) -> None:
        self._open.set()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxy_to(url: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(url)
    server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
    proxy._port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy._close()
        await server.wait_closed()
