"""The WebSocket implementations by the name they have in `gateway.websocket`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from nexo.transport import picows_endpoint, websockets_endpoint
from nexo.transport.websocket import Gate, SocketLimits

MAKERS: Mapping[str, Callable[[Gate, SocketLimits], type[asyncio.Protocol]]] = {
    "picows": picows_endpoint.make_protocol,
    "websockets": websockets_endpoint.make_protocol,
}


def make_protocol(name: str, gate: Gate, limits: SocketLimits) -> type[asyncio.Protocol]:
    """The class for uvicorn's `Config(ws=…)`, which hands it every request to upgrade."""
    return MAKERS[name](gate, limits)
