"""Ended and renewed sessions: connections of an ended one get `session_invalid` or another reason and are closed, on
every instance.

A change of password renews the session through which it was made: connections that were opened with an older token of
it have a few seconds for REAUTH. Ends and renewals are announced on the bus; the database is asked for them as well,
because commands have no bus, and announcements can be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import structs

from nexo.background import Background
from nexo.core.model import Session
from nexo.delivery.delivery import Delivery
from nexo.delivery.outputs import Output
from nexo.delivery.remote import Remote
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.service.accounts import Accounts

REAUTH_MS = 10_000
WATCH_S = 0.5
WATCH_FAILED_S = 3.0
# A transaction takes its time before it commits, and waits for a lock two seconds at most.
LOOK_BACK_MS = 10_000
_NEVER_MS = 1 << 62


class SessionEnds:
    """`cluster.listener.SessionEvents`."""

    def __init__(self, accounts: Accounts, delivery: Delivery, remote: Remote | None) -> None:
        self._accounts = accounts
        self._delivery = delivery
        self._remote = remote
        self._leaving: set[Output] = set()

    def start(self, background: Background) -> None:
        background.serve("session_watch", self._watch)

    def ended(self, sids: list[str], reason: str = "session_invalid") -> None:
        """Close the connections of sessions that this instance has ended, and notify the other instances."""
        self._close(sids, reason)
        if self._remote is not None:
            self._remote.sessions_ended(sids, reason)

    def ended_elsewhere(self, sids: list[str], reason: str) -> None:
        for sid in sids:
            self._accounts.forget(sid)
        self._close(sids, reason)

    def renewed(self, session: Session) -> None:
        """Let connections with older tokens of this session expire, unless they are renewed."""
        for connection in self._delivery.hub.of(session.user_id):
            if connection.session.sid == session.sid:
                _expire(connection, session)

    async def check(self, connection: Output) -> None:
        """Drop a connection whose session has ended; one whose session has a newer version expires."""
        if connection.closing or connection in self._leaving:
            return
        try:
            session = await self._accounts.check_session(connection.session)
        except NexoError as error:
            if error.row.closes:
                connection.drop(error.name)
        else:
            if session.sid == connection.session.sid:
                _expire(connection, session)

    def forget_sessions(self) -> None:
        self._accounts.forget_all()

    @contextmanager
    def leaving(self, connection: Output) -> Iterator[None]:
        """Exempt a connection that logs out: it gets its answer before it is closed."""
        self._leaving.add(connection)
        try:
            yield
        finally:
            self._leaving.discard(connection)

    def _close(self, sids: list[str], reason: str) -> None:
        for connection in self._delivery.hub.of_sessions(set(sids)):
            if connection not in self._leaving:
                connection.drop(reason)

    async def _watch(self) -> None:
        since_ms, seen = _NEVER_MS, dict[str, int]()
        while True:
            try:
                at_ms, changes = await self._accounts.changed_since(since_ms)
            except NexoError:  # the store has logged it; sockets are checked on heartbeat as well
                await asyncio.sleep(WATCH_FAILED_S)
                continue
            for user_id, number in changes:
                if seen.get(user_id) != number:
                    await self._check_user(user_id)
            since_ms, seen = at_ms - LOOK_BACK_MS, dict(changes)
            await asyncio.sleep(WATCH_S)

    async def _check_user(self, user_id: str) -> None:
        self._accounts.forget_user(user_id)
        for connection in list(self._delivery.hub.of(user_id)):
            await self.check(connection)


def _expire(connection: Output, session: Session) -> None:
    """Shorten the life of a connection whose token is older than its session; a token of the new version extends it."""
    own = connection.session
    if own.version < session.version:
        connection.session = structs.replace(own, expires_at=min(own.expires_at, now_ms() + REAUTH_MS))
