"""The body of a request, taken from its socket by the mover and not by the event loop.

The parser has seen the head, and the part of the body that arrived with it. The rest goes past it: a new parser begins
behind the body. A body that is not taken to its end leaves nothing that could be parsed: its connection ends with the
answer.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

from nexo.transport.mover import Move, Sink, moved

LEAST_BYTES = 256 * 1024  # smaller bodies are parsed: that is cheaper than to hand them over


class SocketBody:
    """`first` has arrived already. `end` is called once all has been taken."""

    def __init__(self, transport: asyncio.Transport, first: bytes, left: int, end: Any) -> None:
        self._first = first
        self._end = end
        self._job: Move | None = None
        self._connected: socket.socket | None = socket.socket(
            fileno=os.dup(transport.get_extra_info("socket").fileno())
        )
        self._rest = left - len(first)
        self._received = 0
        self._is_cut = False

    @property
    def left(self) -> int:
        return len(self._first) + self._rest

    @property
    def received(self) -> int:
        """How much has come from the socket."""
        return self._received + (self._job.moved if self._job is not None else 0)

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for the client, and not for the server."""
        return self._job is not None

    async def take(self, sink: Sink, limit: int, timeout_s: float | None = None) -> int:
        """Hand at most `limit` bytes to `sink`, in another thread, until they are there, the time is over or `stop` is
        called. Returns how many. Raises ConnectionError when the client leaves, and what `sink` raises."""
        size = min(limit, len(self._first))
        if size:
            await asyncio.to_thread(sink, memoryview(self._first)[:size])
            self._first = self._first[size:]
        if size < limit and self._rest:
            if self._connected is None:
                raise ConnectionResetError("the connection has ended")
            job = self._job = Move(self._connected, sink, min(limit - size, self._rest))
            try:
                await moved(job, timeout_s)
            finally:
                self._job = None
                self._received += job.moved
                self._rest -= job.moved
                if self._is_cut:
                    self.close()
            if self._is_cut:
                raise ConnectionResetError("the connection has ended")
            size += job.moved
        if not self.left:
            self.close()
            self._end()
        return size

    def stop(self) -> None:
        """Have `take` return with what it has."""
        if self._job is not None:
            self._job.halt()

    def cut(self) -> None:
        """The connection has ended."""
        self._is_cut = True
        self.stop()
        if self._job is None:
            self.close()

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None
