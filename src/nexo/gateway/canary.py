"""The canary of /readyz: a message that takes the whole path, from the queue of the committer to a connection.

It is always the same message, so it is stored once and found again each time. A small committed update beside it
shows that the database takes writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nexo.core.model import Sent, Session
from nexo.delivery.delivery import Delivery
from nexo.errors import NexoError
from nexo.gateway.connection import Connection
from nexo.gateway.host import Host
from nexo.ids import CANARY_IDS
from nexo.service.send import Sending
from nexo.wire.registry import DIALECTS

CLIENT_MSG_ID = "canary"
CLIENT_MSG_IDS = 5  # tried one after the other


class ProbeSocket:
    """A `transport.websocket.Socket` without a network connection; `arrived` is set by the first write."""

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
    def __init__(
        self, host: Host[Connection], delivery: Delivery, sending: Sending, beat: Callable[[], Awaitable[None]]
    ) -> None:
        self._delivery = delivery
        self._sending = sending
        self._beat = beat
        self._socket = ProbeSocket()
        dialect = next(iter(DIALECTS.values()))
        self._probe = Connection(host, dialect, "canary", "")
        self._probe.become(Session("canary", CANARY_IDS[1], 10, "", 0))
        self._probe.socket = self._socket  # not `opened`: it is not counted, timed out or closed

    async def __call__(self) -> None:
        await self._beat()
        sent = await self._send()
        self._socket.arrived.clear()
        self._delivery.hub.add(self._probe)
        try:
            self._delivery.fanout.saved(Sent(sent.message, True, member_epoch=sent.member_epoch), None, None)
            await self._socket.arrived.wait()
        finally:
            self._delivery.hub.remove(self._probe)

    async def _send(self) -> Sent:
        """Returns the stored message. A client that had registered the canary's user before its id was reserved may
        have used a client_msg_id for another message."""
        for number in range(CLIENT_MSG_IDS):
            client_msg_id = f"{CLIENT_MSG_ID}{number or ''}"
            try:
                return await self._sending.send_again(
                    CANARY_IDS[0], client_msg_id=client_msg_id, recv_id=CANARY_IDS[1], content="canary"
                )
            except NexoError as error:
                if error.name != "client_msg_id_reused":
                    raise
        raise NexoError("client_msg_id_reused")
