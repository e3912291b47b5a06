"""A user's own sessions: list them, end one or all others; and whether a user has signed in a moment ago."""

from __future__ import annotations

from typing import Protocol

import structlog

from nexo.core.model import Session
from nexo.core.people import OwnSession
from nexo.errors import NexoError
from nexo.service.accounts import Accounts

log = structlog.get_logger()

SESSION_ID_MAX_CHARS = 64


class SessionStore(Protocol):
    async def sessions(self, user_id: str) -> list[OwnSession]:
        """Returns sessions that have not ended, oldest first."""

    async def started_at(self, sid: str) -> tuple[int, int]:
        """Returns when a session was opened (0: not stored), and the time now, by the database's clock."""

    async def revoke(self, user_id: str, sid: str) -> None:
        """End one session of this user; or `session_not_found`."""

    async def revoke_others(self, user_id: str, keep_sid: str) -> list[str]:
        """End all sessions of this user but one. Returns them."""


class OwnSessions:
    def __init__(self, store: SessionStore, accounts: Accounts, fresh_s: int) -> None:
        self._store = store
        self._accounts = accounts
        self._fresh_ms = fresh_s * 1000

    async def sessions(self, user_id: str) -> list[OwnSession]:
        return await self._store.sessions(user_id)

    async def revoke(self, session: Session, session_id: str) -> int:
        """Ends one session. Returns how many have ended."""
        if not session_id or len(session_id) > SESSION_ID_MAX_CHARS:
            raise NexoError("bad_session_id", "session_id is as /session/list gives it")
        await self._store.revoke(session.user_id, session_id)
        self._accounts.end_sessions(session.user_id, [session_id])
        log.info("session_revoked", user_id=session.user_id, sid=session_id)
        return 1

    async def revoke_others(self, session: Session) -> int:
        """Ends all sessions of the user but the caller's. Returns how many have ended."""
        ended = await self._store.revoke_others(session.user_id, session.sid)
        self._accounts.end_sessions(session.user_id, ended)
        log.info("sessions_revoked", user_id=session.user_id, sessions=len(ended))
        return len(ended)

    async def check_fresh(self, session: Session, password: str | None, address: str) -> None:
        """Raises unless the user gives the password, or has signed in a moment ago: what follows cannot be undone, and
        an access token may have been stolen."""
        if password is not None:
            await self._accounts.check_password(session.user_id, password, address)
            return
        started_at, now_ms = await self._store.started_at(session.sid)
        if now_ms - started_at > self._fresh_ms:
            raise NexoError("missing_password", "Give the password, or sign in again first")
