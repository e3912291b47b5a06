"""One WebSocket connection: the only file that knows the library."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from nexo.client.failures import ClientError

_ANSWER_MAX_BYTES = 4 << 20
_CLOSE_S = 1.0  # for the server's part of closing
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Link:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._waiting: list[bytes] = []
        self._more = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._sender = asyncio.get_running_loop().create_task(self._send_all())

    @classmethod
    async def open(cls, url: str, timeout_s: float) -> Link:
        try:
            socket = await connect(
                url,
                subprotocols=[Subprotocol("nexo.envelope.v1")],
                open_timeout=timeout_s,
                close_timeout=_CLOSE_S,
                ping_interval=None,  # the core asks by itself
                max_size=_ANSWER_MAX_BYTES,
            )
        except InvalidStatus as error:
            raise ClientError(_reason_in(error.response.body), status=error.response.status_code) from None
        except TimeoutError:
            raise ClientError("timeout") from None
        except (OSError, EOFError, WebSocketException) as error:
            raise ClientError("network", str(error)) from None
        return cls(socket)

    def send(self, frames: list[dict[str, Any]]) -> None:
        self._waiting += [_encode(frame) for frame in frames]
        self._idle.clear()
        self._more.set()

    async def _send_all(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                while self._waiting:
                    waiting, self._waiting = self._waiting, []
                    for frame in waiting:
                        await self._socket.send(frame, text=True)
                self._idle.set()
                self._more.clear()
                await self._more.wait()

    async def follow(self, received: Callable[[dict[str, Any]], None]) -> tuple[int, str]:
        """Every frame until the end; its code and reason."""
        try:
            async for text in self._socket:
                try:
                    frame = _decode(text)
                except (msgspec.DecodeError, ValueError):
                    continue  # no server of ours says that
                received(frame)
        except ConnectionClosed:
            pass
        finally:
            self._sender.cancel()
            self._socket.transport.abort()
        return self._socket.close_code or 1006, self._socket.close_reason or ""

    def drop(self) -> None:
        """Without a word: the other side does not answer anyway."""
        self._socket.transport.abort()

    async def close(self) -> None:
        """What was to be said is said, and then goodbye."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _CLOSE_S)
        self._sender.cancel()
        await self._socket.close()


def _reason_in(body: bytes | bytearray | None) -> str:
    """The error's name in a refused upgrade."""
    try:
        return str(_decode(body or b"").get("err_msg") or "network")
    except (msgspec.DecodeError, ValueError):
        return "network"
