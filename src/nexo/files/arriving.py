"""A body that is being received, and the right to work on its upload."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from nexo.errors import NexoError
from nexo.files.ports import DirectSource
from nexo.files.spool import Spool, storage_error


class BodyCut(Exception):
    """The client has left before the end of the body."""


class HandedOver(BodyCut):
    """Another request continues the upload."""


class Body(Protocol):
    async def fill(self, spool: Spool, goal: int, size_max: int, timeout_s: float) -> bool:
        """Move bytes to a spool until it has `goal` bytes, for this time. Returns whether the body is over. Raises
        BodyCut; what has arrived before is in the spool. Raises `bad_request` before it would get more than
        `size_max` bytes."""

    def hand_over(self) -> None:
        """Have `fill` end with HandedOver, as soon as it waits for the client."""


class PiecesBody:
    """A body that the event loop reads."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._is_wanted = False
        self._reading: asyncio.Timeout | None = None

    def hand_over(self) -> None:
        self._is_wanted = True
        if self._reading is not None:
            self._reading.reschedule(asyncio.get_running_loop().time())

    async def fill(self, spool: Spool, goal: int, size_max: int, timeout_s: float) -> bool:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + timeout_s
        while spool.size < goal and loop.time() < ends_at:
            try:
                if self._is_wanted:
                    raise HandedOver
                async with asyncio.timeout(None) as self._reading:
                    data = await anext(self._pieces)
            except StopAsyncIteration:
                return True
            except TimeoutError:
                raise HandedOver from None
            finally:
                self._reading = None
            check_size(spool.size + len(data), size_max)
            await spool.add(data)
        return False


class DirectBody:
    """A body that a thread moves from its socket to a file."""

    def __init__(self, source: DirectSource) -> None:
        self._source = source
        self._is_wanted = False

    def hand_over(self) -> None:
        self._is_wanted = True
        self._source.stop()

    async def fill(self, spool: Spool, goal: int, size_max: int, timeout_s: float) -> bool:
        check_size(spool.size + self._source.left, size_max)
        if self._is_wanted:
            raise HandedOver
        try:
            await self._source.take(spool.write, goal - spool.size, timeout_s)
        except ConnectionError:
            raise BodyCut from None
        except OSError as error:
            raise storage_error(error) from error
        if self._is_wanted and self._source.left:
            raise HandedOver
        return not self._source.left


def check_size(size: int, size_max: int) -> None:
    if size > size_max:
        raise NexoError("bad_request", "The body is longer than what was announced of the upload")


class Turn:
    """The right to work on an upload. A request that waits for it makes the one that has it stop receiving: most likely
    its connection is lost, and the same client continues over another one."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._is_wanted = False
        self._body: Body | None = None

    def want(self) -> None:
        self._is_wanted = True
        if self._body is not None:
            self._body.hand_over()

    def receive(self, body: Body) -> None:
        """Note what is received with this right."""
        self._body = body
        if self._is_wanted:
            body.hand_over()
