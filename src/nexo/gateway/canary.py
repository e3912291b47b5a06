"""The canary of /readyz: a message that goes the whole way, from the queue to a connection.

It is always the same message, so it is stored once and found again each time; that the database takes
writes is shown by a small committed update beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nexo.core.model import Sent, Session
from nexo.gateway.connection import Connection
from nexo.gateway.gateway import Gateway
from nexo.ids import CANARY_IDS
from nexo.service.send import Sending
from nexo.wire.registry import DIALECTS

CLIENT_MSG_ID = "canary"


class ProbeLink:
    """A connection's end that is no socket: it notices that something was written."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.frames_in = self.bytes_in = self.extra_frames = 0

    def write(self, frames: bytes) -> None:
        self.arrived.set()

    def ping(self) -> None: ...

    def close(self, code: int, reason: str = "") -> None: ...

    def abort(self) -> None: ...

    def buffered(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Canary:
    def __init__(self, gateway: Gateway, sending: Sending, beat: Callable[[], Awaitable[None]]) -> None:
        self._gateway = gateway
        self._sending = sending
        self._beat = beat
        self._link = ProbeLink()
        dialect = next(iter(DIALECTS.values()))
        self._probe = Connection(gateway, dialect, "canary", "")
        self._probe.become(Session("canary", CANARY_IDS[1], 10, "", 0))
        self._probe.link = self._link  # not `opened`: it is nobody who could be counted, timed out or told to go

    async def __call__(self) -> None:
        await self._beat()
        sent = await self._sending.send_again(
            CANARY_IDS[0], client_msg_id=CLIENT_MSG_ID, recv_id=CANARY_IDS[1], content="canary"
        )
        self._link.arrived.clear()
        self._gateway.hub.add(self._probe)
        try:
            self._gateway.pushing.saved(Sent(sent.message, True, member_epoch=sent.member_epoch), None)
            await self._link.arrived.wait()
        finally:
            self._gateway.hub.remove(self._probe)
