"""The second WebSocket implementation: frames are parsed by the sans-I/O protocol of `websockets`.

Slower than picows, and pure Python where its C extension is missing. The library only parses here: what it would
send by itself is discarded, because `Endpoint` sends the same for both implementations.
"""

from __future__ import annotations

import asyncio

from uvicorn.config import Config
from uvicorn.server import ServerState
from websockets.frames import Frame
from websockets.protocol import Protocol, Side, State

from nexo.transport.endpoint import CLOSE, NO_CODE, PROTOCOL_ERROR, Endpoint
from nexo.transport.upgrade import Upgrade
from nexo.transport.websocket import Gate, Peer, SocketLimits

# The library's limit also counts control frames between fragments, so it gets room for one; the limit
# itself is kept by `Endpoint`.
CONTROL_FRAME_MAX_BYTES = 125


class WebsocketsEndpoint(Endpoint, asyncio.Protocol):
    def __init__(self, transport: asyncio.Transport, peer: Peer, limits: SocketLimits) -> None:
        Endpoint.__init__(self, transport, peer, limits)
        max_size = limits.message_bytes + CONTROL_FRAME_MAX_BYTES
        self._parser = Protocol(Side.SERVER, state=State.OPEN, max_size=max_size)

    def data_received(self, data: bytes) -> None:
        if self.ended:
            return
        self.bytes_in += len(data)
        if self.deaf:
            self.wait_through(len(data))
            if self.ended:
                return
        parser = self._parser
        parser.receive_data(data)
        for event in parser.events_received():
            if isinstance(event, Frame):
                self.frame(event.opcode, event.fin, bytes(event.data))
        if parser.parser_exc is not None:
            self._parser_stopped()
        parser.data_to_send()
        self.read_end()

    def _parser_stopped(self) -> None:
        parser = self._parser
        if parser.close_rcvd is not None:
            # It fails a close frame between two fragments, which RFC 6455 allows; there was no event for it.
            code = parser.close_rcvd.code
            self.frame(CLOSE, True, b"" if code == NO_CODE else code.to_bytes(2, "big"))
        elif parser.close_sent is not None:
            self.parser_failed(parser.close_sent.code, parser.close_sent.reason)
        else:
            self.parser_failed(PROTOCOL_ERROR, "")


def open_link(transport: asyncio.Transport, peer: Peer, limits: SocketLimits) -> Endpoint:
    link = WebsocketsEndpoint(transport, peer, limits)
    transport.set_protocol(link)
    link.open()
    return link


def make_protocol(gate: Gate, limits: SocketLimits) -> type[asyncio.Protocol]:
    """The class for uvicorn's `Config(ws=…)`."""

    class WebsocketsUpgrade(Upgrade):
        def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, object]) -> None:
            super().__init__(gate, limits, open_link, server_state)

    return WebsocketsUpgrade
