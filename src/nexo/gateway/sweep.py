"""One timer for all connections: heartbeats, closing of idle, expired and stuck connections, delayed notices."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

import structlog

from nexo.background import Background
from nexo.config import Config
from nexo.delivery.fanout import Fanout
from nexo.gateway.connection import Connection
from nexo.gateway.session_ends import SessionEnds
from nexo.gateway.state import State
from nexo.ids import now_ms

log = structlog.get_logger()

SWEEP_S = 0.5  # time for one round over all connections
PARTS = 10  # steps of a round: thousands of connections in one step would block the event loop


class Sweeper:
    def __init__(
        self,
        config: Config,
        connections: Collection[Connection],
        fanout: Fanout,
        sessions: SessionEnds,
        background: Background,
    ) -> None:
        self._connections = connections
        self._fanout = fanout
        self._sessions = sessions
        self._background = background
        self._heartbeat_s = config.gateway.heartbeat_s
        self._idle_s = config.gateway.idle_s
        self._auth_s = config.gateway.auth_timeout_s
        self._stuck_s = config.backpressure.close_after_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self._left: list[Connection] = []  # not checked yet in this round
        self._part = 0  # connections per step

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SWEEP_S / PARTS, self._sweep)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        self.start()  # first: a step that fails does not end the round
        now = time.monotonic()
        wall_ms = now_ms()
        to_check: list[Connection] = []
        if not self._left:
            self._left = list(self._connections)
            self._part = -(-len(self._left) // PARTS)
        part, self._left = self._left[: self._part], self._left[self._part :]
        for connection in part:
            if connection not in self._connections:  # closed meanwhile
                continue
            try:
                self._check(connection, now, wall_ms, to_check)
            except Exception:
                log.exception("sweep_failed", conn=connection.conn_id)
        if to_check:
            self._background.start("check_sessions", self._check_sessions(to_check))

    def _check(self, connection: Connection, now: float, wall_ms: int, to_check: list[Connection]) -> None:
        """Check one connection; one whose session has to be checked as well is added to `to_check`."""
        if connection.closing:
            return
        if connection.blocked_since:
            taken = connection.taken
            if taken > connection.blocked_taken:  # slow, but it drains
                connection.blocked_taken, connection.blocked_since = taken, now
            elif now - connection.blocked_since >= self._stuck_s:
                left = connection.socket.buffered()
                log.info("slow_consumer", conn=connection.conn_id, user=connection.user_id, buffered=left)
                connection.drop("slow_consumer")
            return
        if not connection.signed_in:
            if connection.state is State.NEW and now - connection.opened_at >= self._auth_s:
                if connection.queued:  # what was sent in time is decided; nothing more is read meanwhile
                    connection.socket.pause_reading()
                else:
                    connection.drop("auth_timeout")
            return
        if wall_ms >= connection.session.expires_at:
            connection.drop("token_expired")
            return
        if now - connection.last_seen >= self._idle_s:
            log.info("idle", conn=connection.conn_id, user=connection.user_id)
            connection.reset("idle")
            return
        if now - connection.last_ping >= self._heartbeat_s:
            connection.last_ping = now
            connection.socket.ping()
            to_check.append(connection)
        if connection.notices or connection.heads:
            self._fanout.notices.sweep(connection, now)
        connection.resync_if_due()

    async def _check_sessions(self, connections: list[Connection]) -> None:
        """Drop connections whose session has ended. Notices of other instances may have been lost: this is the
        latest moment to find out."""
        for connection in connections:
            await self._sessions.check(connection)
