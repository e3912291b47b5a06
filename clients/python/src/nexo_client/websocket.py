"""One WebSocket connection: JSON frames in and out. No other module uses the `websockets` library."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from nexo_client.errors import ClientError

_FRAME_MAX_BYTES = 4 << 20
_CLOSE_TIMEOUT_S = 1.0
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Socket:
    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._waiting: list[bytes] = []
        self._more = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._sender = asyncio.get_running_loop().create_task(self._send_all())

    @classmethod
    async def open(cls, url: str, timeout_s: float) -> Socket:
        try:
            connection = await connect(
                url,
                subprotocols=[Subprotocol("nexo.envelope.v1")],
                open_timeout=timeout_s,
                close_timeout=_CLOSE_TIMEOUT_S,
                ping_interval=None,  # the engine sends PING frames
                max_size=_FRAME_MAX_BYTES,
            )
        except InvalidStatus as error:
            raise ClientError(_reason_in(error.response.body), status=error.response.status_code) from None
        except TimeoutError:
            raise ClientError("timeout") from None
        except (OSError, EOFError, WebSocketException) as error:
            raise ClientError("network", str(error)) from None
        return cls(connection)

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
                        await self._connection.send(frame, text=True)
                self._idle.set()
                self._more.clear()
                await self._more.wait()

    async def read_all(self, received: Callable[[dict[str, Any]], None]) -> tuple[int, str]:
        """Passes every frame on until the connection ends; returns the close code and reason."""
        try:
            async for text in self._connection:
                try:
                    frame = _decode(text)
                except (msgspec.DecodeError, ValueError):
                    continue  # not sent by a Nexo server
                received(frame)
        except ConnectionClosed:
            pass
        finally:
            self._sender.cancel()
            self._connection.transport.abort()
        return self._connection.close_code or 1006, self._connection.close_reason or ""

    def drop(self) -> None:
        """Ends the connection without a close frame: the server does not answer."""
        self._connection.transport.abort()

    async def close(self) -> None:
        """Sends what is waiting, and then the close frame."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _CLOSE_TIMEOUT_S)
        self._sender.cancel()
        await self._connection.close()


def _reason_in(body: bytes | bytearray | None) -> str:
    """Returns the name of the error in the answer to a refused upgrade."""
    try:
        return str(_decode(body or b"").get("err_msg") or "network")
    except (msgspec.DecodeError, ValueError):
        return "network"
