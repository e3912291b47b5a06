"""uvicorn's HTTP connection with the two bounds that it leaves to a proxy: how large the head of a request may be,
and how long a request may take to arrive. Without them anybody could fill the memory, or hold sockets for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nexo.gateway.endpoint import hang_up
from nexo.gateway.upgrade import refusal
from nexo.gateway.websocket import Refuse

HEAD_MAX_BYTES = 64 * 1024
ARRIVAL_S = 60.0
TOO_LARGE = Refuse(431, b"The head of a request has at most %d bytes" % HEAD_MAX_BYTES, "text/plain")


class HttpLink(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._arriving = True  # the first request is awaited from the start
        self._refused = False
        self._head_bytes = 0
        self._read_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._bound_the_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arriving = False
        self._bound_the_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:  # thrown away, until the client has read why, or the time is over
            return
        self._read_bytes = len(data)
        super().data_received(data)
        self._bound_the_wait()
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX_BYTES and not self.transport.is_closing():
                self._refused = True
                self.transport.write(refusal(TOO_LARGE, self.server_state.default_headers))
                hang_up(self.transport)

    def on_message_begin(self) -> None:
        self._in_head = self._arriving = True
        # what the same read brought before it is not known: that read counts for nothing
        self._head_bytes = -self._read_bytes
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._arriving = False
        super().on_message_complete()

    def _bound_the_wait(self) -> None:
        """Only those that do not come in one piece cost a timer. Between two requests uvicorn has its own."""
        if self._arriving:
            if self._timer is None:
                self._timer = self.loop.call_later(ARRIVAL_S, self.transport.close)
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None
