"""The requests of one connection that need the database: few run at a time, later ones wait in order."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

import structlog

from nexo.core import commands, events
from nexo.errors import NexoError
from nexo.gateway.host import Host
from nexo.logs import delivery_lines, request_fields
from nexo.wire.dialect import Dialect

log = structlog.get_logger()

REQUESTS_MAX = 4  # under way; each may be answered with up to 256 KiB, also above the high-water mark
QUEUED_MAX = 256  # waiting for those
# Changes of messages, done one after the other: the last of two edits or of two reactions is the one that stays.
IN_ORDER = (commands.Edit, commands.React, commands.Pin, commands.Recall)


class Requester(Protocol):
    """The connection, as its requests need it."""

    host: Host[Any]
    dialect: Dialect
    conn_id: str
    user_id: str | None
    blocked_since: float

    @property
    def closing(self) -> bool: ...

    @property
    def signed_in(self) -> bool: ...

    def prolong(self) -> None:
        """Begin the time to sign in anew, after credentials that were valid."""

    def reply(self, event: events.Event, ref: Any = None) -> None: ...

    def fail(self, error: NexoError, ref: Any = None) -> None: ...

    def refuse_token(self, error: NexoError, ref: Any) -> None:
        """Close a connection whose newer token was refused."""


def name_request(connection: Requester, ref: Any) -> None:
    """Name the request in every line that the current task logs."""
    request_fields.set({"conn": connection.conn_id, **connection.dialect.log_fields(ref)})


class ConnectionRequests:
    __slots__ = ("_connection", "_order", "_under_way", "_waiting")

    def __init__(self, connection: Requester) -> None:
        self._connection = connection
        self._order: asyncio.Lock | None = None  # few connections ever need one
        self._under_way = 0
        self._waiting: deque[tuple[commands.Command, Any]] | None = None  # an empty one is half a kilobyte

    @property
    def count(self) -> int:
        """Requests under way or waiting."""
        return self._under_way + len(self._waiting or ())

    def add(self, command: commands.Command, ref: Any) -> None:
        if self._waiting is None:
            self._waiting = deque()
        elif len(self._waiting) >= QUEUED_MAX:
            self._connection.host.traffic.refusals.add("queued_requests")
            busy = NexoError("server_busy", "Too many requests of this connection are under way", retry_after_ms=200)
            self._connection.fail(busy, ref)
            return
        self._waiting.append((command, ref))
        self.start_waiting()

    def start_waiting(self) -> None:
        """Start what may run now. Nothing is started while earlier answers are not taken: they would pile up."""
        connection = self._connection
        while self._waiting and self._under_way < REQUESTS_MAX:
            if connection.blocked_since or connection.closing:
                return
            self._under_way += 1
            connection.host.spawn("request", self._perform(*self._waiting.popleft()))
        if not self._waiting:
            self._waiting = None

    def _place_of(self, command: commands.Command) -> AbstractAsyncContextManager[None]:
        if not isinstance(command, IN_ORDER):
            return nullcontext()
        if self._order is None:
            self._order = asyncio.Lock()  # lets waiters in by the order of their arrival
        return self._order

    async def _perform(self, command: commands.Command, ref: Any) -> None:
        connection = self._connection
        host = connection.host
        name_request(connection, ref)
        started, result = time.monotonic(), "done"
        host.traffic.requests.add(type(command).__name__)
        try:
            if isinstance(command, commands.Reauth):
                connection.reply(await host.renew(connection, command.token), ref)
            else:
                async with self._place_of(command):
                    await host.perform(connection, command, ref)
                if not connection.signed_in:
                    connection.prolong()
        except NexoError as error:
            result = error.name
            if isinstance(command, commands.Reauth) and not error.row.retry:
                connection.refuse_token(error, ref)
            else:
                connection.fail(error, ref)
        except Exception:
            result = "internal_error"
            log.exception("request_failed", conn=connection.conn_id, command=type(command).__name__)
            connection.fail(NexoError("internal_error"), ref)
        finally:
            self._under_way -= 1
            if delivery_lines.is_on:
                ms = round((time.monotonic() - started) * 1000, 2)
                name = type(command).__name__
                delivery_lines.write("socket_request", connection.user_id, None, command=name, result=result, ms=ms)
            self.start_waiting()
