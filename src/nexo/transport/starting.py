"""The port while a start waits: `/healthz` answers, every other path reports what the start waits for.

It speaks plain HTTP without the API, which needs the database: supervisors and operators have to see the reason at
once.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import msgspec

AT_ONCE_MAX = 64  # connections; more are closed without an answer
HEAD_MAX_BYTES = 8192
REQUEST_S = 5.0


class StartingServer:
    def __init__(self, busy_number: int) -> None:
        """`busy_number` is that of the error `server_busy`."""
        self._awaited = "The server starts"
        self._busy_number = busy_number
        self._server: asyncio.Server | None = None
        self._open = 0

    def awaits(self, sentence: str) -> None:
        """Say from now on what the start waits for."""
        self._awaited = sentence

    async def start(self, listener: socket.socket) -> None:
        """Answer on a copy of the listening socket, which stays open afterwards."""
        self._server = await asyncio.start_server(self._answer, sock=listener.dup(), limit=HEAD_MAX_BYTES)

    async def stop(self) -> None:
        """Leave the port to the server."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= AT_ONCE_MAX:
                async with asyncio.timeout(REQUEST_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._reply(head))
                    await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _reply(self, head: bytes) -> bytes:
        words = head.split(b" ", 2)
        if len(words) > 1 and words[1].partition(b"?")[0] == b"/healthz":
            return _response("200 OK", {"err_code": 0, "err_msg": "", "data": {}})
        reply = {"err_code": self._busy_number, "err_msg": "server_busy", "data": None, "detail": self._awaited}
        return _response("503 Service Unavailable", reply)


@contextlib.asynccontextmanager
async def answering(server: StartingServer, listener: socket.socket) -> AsyncIterator[None]:
    """Answer on the port until `stop`, and not after the block."""
    await server.start(listener)
    try:
        yield
    finally:
        await server.stop()


def _response(status: str, reply: dict[str, object]) -> bytes:
    body = msgspec.json.encode(reply)
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Retry-After: 1\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
