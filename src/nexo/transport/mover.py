"""A thread that moves the bytes of large bodies from sockets to files, so that they cost the event loop nothing.

One thread, one buffer, one connection after the other: what limits it is the processor, and messages come first, since
it waits for the interpreter's lock after each piece.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

PIECE_BYTES = 256 * 1024
NICENESS = 5  # messages first
PIECES = 4  # of one connection before the next one has its turn

Sink = Callable[[memoryview], object]


class Move:
    """Hands at most `limit` bytes of a connection to `sink`. `done` gets how many, or the exception that ended it."""

    def __init__(self, connected: socket.socket, sink: Sink, limit: int) -> None:
        self.connected = connected
        self.left = limit
        self.moved = 0
        self.done: Future[int] = Future()
        self._sink = sink
        self._error: Exception | None = None

    def halt(self) -> None:
        """Have it end with what it has moved so far."""
        MOVER.stop(self)

    def is_over(self, buffer: memoryview) -> bool:
        """Move some pieces. Returns whether there is nothing more to do."""
        try:
            for _ in range(PIECES):
                size = self.connected.recv_into(buffer, min(len(buffer), self.left))
                if not size:
                    raise ConnectionResetError("the client has left")
                self._sink(buffer[:size])
                self.moved += size
                self.left -= size
                if not self.left:
                    return True
        except BlockingIOError:
            return False
        except Exception as error:
            self._error = error
            return True
        return False

    def finish(self) -> None:
        if self._error is not None:
            self.done.set_exception(self._error)
        else:
            self.done.set_result(self.moved)


class Mover:
    """All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: deque[tuple[str, Move]] = deque()
        self._wake = -1

    def begin(self, job: Move) -> None:
        self._ask("begin", job)

    def stop(self, job: Move) -> None:
        """Have a job end with what it has moved so far; its sink is not called any more once it is done."""
        self._ask("stop", job)

    def _ask(self, what: str, job: Move) -> None:
        with self._lock:
            if self._wake < 0:
                self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                threading.Thread(target=self._run, name="mover", daemon=True).start()
            self._asked.append((what, job))
        os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)  # of this thread alone
        poll = select.epoll()
        poll.register(self._wake, select.EPOLLIN)
        jobs: dict[int, Move] = {}
        buffer = memoryview(bytearray(PIECE_BYTES))
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._wake:
                    self._hear(poll, jobs)
                elif descriptor in jobs and jobs[descriptor].is_over(buffer):
                    self._end(poll, jobs, descriptor)

    def _end(self, poll: select.epoll, jobs: dict[int, Move], descriptor: int) -> None:
        poll.unregister(descriptor)  # before the job is done: then its owner closes the descriptor
        jobs.pop(descriptor).finish()

    def _hear(self, poll: select.epoll, jobs: dict[int, Move]) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        while self._asked:
            what, job = self._asked.popleft()
            descriptor = job.connected.fileno()
            if what == "begin":
                try:
                    poll.register(descriptor, select.EPOLLIN)
                except (OSError, ValueError) as error:  # of this connection alone
                    job.done.set_exception(error)
                else:
                    jobs[descriptor] = job
            elif jobs.get(descriptor) is job:
                self._end(poll, jobs, descriptor)


MOVER = Mover()


async def moved(job: Move, timeout_s: float | None = None) -> int:
    """Returns how much a job has moved: all, or what it could in this time or before it was stopped. Nothing of it
    continues after this function has ended, however it ends."""
    done = asyncio.wrap_future(job.done)
    MOVER.begin(job)
    try:
        await asyncio.wait({done}, timeout=timeout_s)
    finally:
        if not done.done():
            MOVER.stop(job)
            await asyncio.wait({done})
    return done.result()
