"""The gateway: admits connections, signs them in and runs their commands.

It is the `Gate` of the WebSocket implementation and the `Host` of every connection. Pushes are made by `delivery`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from nexo.background import Background
from nexo.cluster.session_policy import SessionPolicy
from nexo.config import Config
from nexo.core import commands, events
from nexo.core.model import Session
from nexo.delivery.delivery import Delivery
from nexo.errors import NexoError
from nexo.gateway.admission import Admission
from nexo.gateway.command_handlers import CallHandlers, CommandHandlers, OpenimSide
from nexo.gateway.connection import Connection
from nexo.gateway.measures import GatewayMeasures
from nexo.gateway.rate_limits import ConnectionRules
from nexo.gateway.session_ends import SessionEnds
from nexo.gateway.sign_in import SignIn
from nexo.gateway.sweep import Sweeper
from nexo.metrics.sending import SendMeter
from nexo.ports import Bus
from nexo.service.actions import Actions
from nexo.transport.websocket import Accept, Refuse, UpgradeRequest

log = structlog.get_logger()

_DONE = events.Done()
QUEUED_FACTOR = 8  # without `backpressure.drop_when_unwritable`, in terms of `high_water_bytes`


class Gateway:
    def __init__(
        self,
        config: Config,
        actions: Actions,
        delivery: Delivery,
        *,
        sends: SendMeter,
        bus: Bus,
        background: Background,
        sessions: SessionEnds,
        calls: CallHandlers,
        policy: SessionPolicy | None = None,
        instance: str = "",
        openim: OpenimSide | None = None,
    ) -> None:
        """`sends` is the meter of the committer: writing frames out is the last stage of a send. `policy` is None with
        a single instance. `instance` is the name used in logs. Without `openim` its clients are not admitted."""
        self._openim = openim
        self._config = config
        self._delivery = delivery
        self._background = background
        self._policy = policy
        self._sends = sends
        self._receipts = delivery.receipts
        self.sending = actions.sending
        self._last_seen = actions.people.last_seen
        self.send_limits = actions.limits.sends
        self.rules = ConnectionRules(
            config.limits.frames_per_s,
            config.limits.frames_burst,
            config.limits.acks_per_s,
            config.limits.inflight_sends,
            config.backpressure.high_water_bytes,
            config.gateway.heartbeat_s * 1000,
            0 if config.backpressure.drop_when_unwritable else QUEUED_FACTOR * config.backpressure.high_water_bytes,
        )
        self.connections: set[Connection] = set()
        self.measures = GatewayMeasures(config, self.connections)
        self.traffic = self.measures.traffic
        self._admission = Admission(config, self, actions.accounts, None if openim is None else openim.name)
        self._sign_in = SignIn(
            config, actions, delivery.hub, delivery.deletions, self.traffic, instance, bus, policy, calls
        )
        self._handlers = CommandHandlers(actions, delivery, self._sign_in, sessions, calls, openim)
        self._sweeper = Sweeper(config, self.connections, delivery.fanout, sessions, background)
        self.touched: list[Connection] = []
        self._is_over = asyncio.Event()  # stopping, and no connection is left

    def start(self) -> None:
        self._sweeper.start()

    def decide(self, request: UpgradeRequest) -> Accept | Refuse | Coroutine[Any, Any, Accept | Refuse]:
        return self._admission.decide(request)

    # -- for its connections (`host.Host`) -------------------------------------------------------------------

    def schedule_flush(self) -> None:
        asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Write out the frames of this turn of the event loop."""
        touched, self.touched = self.touched, []
        for connection in touched:
            connection.flush()
        sends = self._sends
        if sends.pushed:
            sends.flushes.append((sends.pushed, time.monotonic()))
            sends.pushed = []

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._background.start(name, work)

    def arrived(self, connection: Connection) -> None:
        self.connections.add(connection)
        self.measures.count_opened(connection)

    def gone(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.measures.count_closed(connection)
        if connection.signed_in:
            self._delivery.hub.remove(connection)
            self._last_seen.note(connection.session, connection.remote)
            if self._policy is not None:
                self._policy.left(connection)
            if self.sending.acceptor is not None:
                self.sending.acceptor.gone(connection.conn_id)
        self._check_over()

    async def sign_in(self, connection: Connection, command: commands.Auth | commands.Login, ref: Any) -> None:
        await self._sign_in.sign_in(connection, command, ref)

    async def admit(self, connection: Connection, session: Session) -> None:
        await self._sign_in.let_in(connection, session)

    async def renew(self, connection: Connection, token: str) -> events.SignedIn:
        return await self._sign_in.renew(connection, token)

    def acknowledge(self, connection: Connection, command: commands.Ack, ref: Any) -> None:
        try:
            if command.server_msg_id is not None and self._receipts.acknowledge_known(
                connection, command.ack_type, command.server_msg_id
            ):
                if connection.dialect.confirms:
                    connection.reply(_DONE, ref)
                return
        except NexoError as error:
            connection.fail(error, ref)
            return
        self._background.start("acknowledge", self._acknowledge(connection, command, ref))

    async def _acknowledge(self, connection: Connection, command: commands.Ack, ref: Any) -> None:
        connection.name_request(ref)
        try:
            await self._receipts.acknowledge(connection, command)
        except NexoError as error:
            connection.fail(error, ref)
        except Exception:
            connection.fail(NexoError("internal_error"), ref)
            raise  # the background logs and counts it
        else:
            connection.reply(_DONE, ref)

    def typing(self, connection: Connection, command: commands.Typing, ref: Any) -> None:
        try:
            self._handlers.typing(connection, command)
        except NexoError as error:
            connection.fail(error, ref)
        else:
            connection.reply(_DONE, ref)

    def complete(self, connection: Connection, event: events.Event) -> bool:
        return self._openim is not None and self._openim.complete(connection, event)

    async def perform(self, connection: Connection, command: commands.Command, ref: Any) -> None:
        await self._handlers.perform(connection, command, ref)

    # -- the end ---------------------------------------------------------------------------------------------

    async def say_goodbye(self, timeout_s: float) -> None:
        """Accept no more connections, finish the sends that are under way, and close all connections with hints
        when to reconnect that are spread over time."""
        self._admission.is_stopping = True
        for connection in self.connections:
            connection.socket.pause_reading()
        deadline = time.monotonic() + timeout_s / 2
        while any(connection.inflight for connection in self.connections) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # polling here is cheaper than counting all answers at all times
        self.send_away("server_shutdown")
        self._check_over()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_over.wait(), timeout_s)
        self._sweeper.stop()
        for connection in list(self.connections):
            connection.socket.abort()

    def drain(self, reason: str) -> None:
        """Close all connections with a hint when to reconnect, and refuse new ones until `take_clients`. Called again
        while the reason lasts, for connections that were being opened."""
        if not self._admission.draining:
            log.warning("clients_sent_away", connections=len(self.connections), reason=reason)
        self._admission.draining = reason
        self.send_away("server_shutdown", detail=reason)

    def take_clients(self) -> None:
        """End `drain`."""
        if self._admission.draining:
            log.info("clients_taken_again", after=self._admission.draining)
        self._admission.draining = ""

    def send_away(
        self,
        reason: str,
        choose: Callable[[Connection], bool] = lambda connection: True,
        detail: str | None = None,
    ) -> None:
        """Close the chosen connections with this error and hints when to reconnect, spread over time."""
        connections = [connection for connection in self.connections if choose(connection)]
        spread_ms = min(10_000, 200 + 2 * len(connections))
        for i, connection in enumerate(connections):
            connection.drop(reason, detail, retry_after_ms=100 + i * spread_ms // max(1, len(connections)))

    def _check_over(self) -> None:
        if self._admission.is_stopping and not self.connections:
            self._is_over.set()
