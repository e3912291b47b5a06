"""One timer for all connections: heartbeats, idle and expired ones, those that do not drain, late notices."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from typing import Any

import structlog

from nexo.config import Config
from nexo.errors import NexoError
from nexo.gateway.connection import Connection
from nexo.gateway.pushing import Pushing
from nexo.ids import now_ms
from nexo.service.accounts import Accounts

log = structlog.get_logger()

SWEEP_S = 0.5  # for all of them
PARTS = 10  # to look at thousands at once would keep everybody else waiting


class Sweeper:
    def __init__(
        self,
        config: Config,
        connections: Collection[Connection],
        pushing: Pushing,
        accounts: Accounts,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._connections = connections
        self._pushing = pushing
        self._accounts = accounts
        self._spawn = spawn
        self._heartbeat_s = config.gateway.heartbeat_s
        self._idle_s = config.gateway.idle_s
        self._auth_s = config.gateway.auth_timeout_s
        self._stuck_s = config.backpressure.close_after_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self._left: list[Connection] = []  # to be looked at in this round
        self._part = 0  # how many of them at once

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SWEEP_S / PARTS, self._sweep)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        now = time.monotonic()
        wall_ms = now_ms()
        to_check: list[Connection] = []
        if not self._left:
            self._left = list(self._connections)
            self._part = -(-len(self._left) // PARTS)
        part, self._left = self._left[: self._part], self._left[self._part :]
        for connection in part:
            if connection not in self._connections:  # it went meanwhile
                continue
            try:
                self._look_at(connection, now, wall_ms, to_check)
            except Exception:
                log.exception("sweep_failed", conn=connection.conn_id)
        if to_check:
            self._spawn(self._check_sessions(to_check))
        self.start()

    def _look_at(self, connection: Connection, now: float, wall_ms: int, to_check: list[Connection]) -> None:
        if connection.closing:
            return
        if connection.blocked_since:
            taken = connection.taken
            if taken > connection.blocked_taken:  # slow, but it drains
                connection.blocked_taken, connection.blocked_since = taken, now
            elif now - connection.blocked_since >= self._stuck_s:
                left = connection.link.buffered()
                log.info("slow_consumer", conn=connection.conn_id, user=connection.user_id, buffered=left)
                connection.drop("slow_consumer")
            return
        if not connection.signed_in:
            if not connection.signing_in and now - connection.opened_at >= self._auth_s:
                connection.drop("auth_timeout")
            return
        if wall_ms >= connection.session.expires_at:
            connection.drop("token_expired")
            return
        if now - connection.last_seen >= self._idle_s:
            log.info("idle", conn=connection.conn_id, user=connection.user_id)
            connection.closing = True
            connection.ended = "idle"
            connection.link.abort()
            return
        if now - connection.last_ping >= self._heartbeat_s:
            connection.last_ping = now
            connection.link.ping()
            to_check.append(connection)
        if connection.notices or connection.heads:
            self._pushing.sweep(connection, now)
        connection.resync_if_due()

    async def _check_sessions(self, connections: list[Connection]) -> None:
        """A session that was ended elsewhere is noticed here at the latest."""
        for connection in connections:
            if connection.closing:
                continue
            try:
                await self._accounts.check_session(connection.session)
            except NexoError as error:
                if error.name == "session_invalid":
                    connection.drop("session_invalid")
