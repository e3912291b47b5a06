"""The WebSocket implementations by the name they have in `gateway.websocket`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from nexo.gateway import picows_link, websockets_link
from nexo.gateway.websocket import Gate, Limits

MAKERS: Mapping[str, Callable[[Gate, Limits], type[asyncio.Protocol]]] = {
    "picows": picows_link.make_protocol,
    "websockets": websockets_link.make_protocol,
}


def make_protocol(name: str, gate: Gate, limits: Limits) -> type[asyncio.Protocol]:
    """The class for uvicorn's `Config(ws=…)`, which hands it every request to upgrade."""
    return MAKERS[name](gate, limits)
