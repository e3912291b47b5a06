"""Connections to a database server, at most so many of one kind; the one that was used last is handed out first.

The pools of the drivers hide which host a connection leads to, and ask a server that may be silent before they drop
one. This one drops at once: when a connection is lost, those that wait beside it are closed, and when the database has
moved to another host, all that lead to the old one are.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from nexo.store.engines.hosts import Hosts, Open, Place

IDLE_S = 300.0  # after that a connection is opened anew: something on the way may have forgotten it
CLOSE_S = 5.0


class ConnectionPool:
    def __init__(
        self,
        hosts: Hosts,
        size: int,
        open_at: Open,
        is_usable: Callable[[Any], bool],
        abort: Callable[[Any], None],
    ) -> None:
        """`abort` closes a connection at once, without a message to the server."""
        self._hosts = hosts
        self._size = size
        self._open_at = open_at
        self._is_usable = is_usable
        self._abort = abort
        self._idle: list[tuple[float, Any]] = []
        self._places: dict[Any, Place] = {}  # of all connections
        self._count = 0  # with those that are being opened
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    async def acquire(self) -> Any:
        while True:
            connection = self._take_idle()
            if connection is not None:
                return connection
            if self._count < self._size:
                return await self._open()
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._wake()  # it was its turn: the next one's now
                raise

    def _take_idle(self) -> Any:
        oldest = time.monotonic() - IDLE_S
        while self._idle:
            since, connection = self._idle.pop()
            if since > oldest and self._is_usable(connection):
                return connection
            self._forget(connection)
        return None

    async def _open(self) -> Any:
        self._count += 1
        try:
            connection, place = await self._hosts.connect(self._open_at, self._abort)
        except BaseException:
            self._count -= 1
            self._wake()
            raise
        self._places[connection] = place
        return connection

    def release(self, connection: Any) -> None:
        if not self._closed and connection in self._places and self._is_usable(connection):
            self._idle.append((time.monotonic(), connection))
        else:
            self._forget(connection)
        self._wake()

    def _forget(self, connection: Any) -> None:
        """Close a connection, and let another one be opened instead."""
        self._abort(connection)
        if self._places.pop(connection, None) is not None:
            self._count -= 1

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def drop_idle(self) -> None:
        """Close the connections that wait."""
        while self._idle:
            self._forget(self._idle.pop()[1])
        self._wake()

    def keep_only(self, place: Place) -> None:
        """Close all connections to other hosts, also those in use: their server is not the database any more. Those in
        use are released by their users, who get an error."""
        moved = [(since, connection) for since, connection in self._idle if self._places[connection] != place]
        self._idle = [item for item in self._idle if self._places[item[1]] == place]
        for _, connection in moved:
            self._forget(connection)
        for connection, where in list(self._places.items()):
            if where != place:
                self._abort(connection)

    async def close(self, end: Callable[[Any], Any]) -> None:
        """Close everything; `end` closes one connection in an orderly way. Those in use are aborted."""
        self._closed = True
        idle, self._idle = [connection for _, connection in self._idle], []
        try:
            async with asyncio.timeout(CLOSE_S):
                for connection in idle:
                    await end(connection)
        except Exception:  # whatever keeps it from saying goodbye
            pass
        for connection in list(self._places):
            self._abort(connection)
        self._places.clear()
