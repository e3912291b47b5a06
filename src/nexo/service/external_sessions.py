"""Sessions that a product's own tokens open: one per user and device, made at the first use of a token."""

from __future__ import annotations

import hashlib
from typing import Protocol

from msgspec import structs

from nexo.core.model import Session, SessionOrigin
from nexo.errors import NexoError
from nexo.service.external_tokens import ExternalTokens
from nexo.service.session_cache import SessionCache


class ExternalSessionStore(Protocol):
    async def open_external(self, session: Session, issued_at: int, ttl_ms: int, *, create_user: bool) -> Session:
        """Returns the session as it is now: made, or opened again, if the token was issued after its end. Raises
        `session_invalid` otherwise; `user_not_found` (unless the user is to be created), `user_disabled`,
        `user_deleted`."""


class ExternalSessions:
    def __init__(self, tokens: ExternalTokens, store: ExternalSessionStore, ttl_ms: int, *, create_users: bool) -> None:
        self._tokens = tokens
        self._store = store
        self._ttl_ms = ttl_ms
        self._create_users = create_users

    async def authenticate(self, token: str, cache: SessionCache) -> Session:
        claims = await self._tokens.read(token)
        sid = _sid(claims.user_id, claims.platform_id, claims.device_id)
        session = cache.get(sid)
        if session is None:
            wanted = Session(
                sid, claims.user_id, claims.platform_id, claims.device_id, 0, origin=SessionOrigin.EXTERNAL
            )
            session = await cache.load(
                sid,
                lambda: self._store.open_external(
                    wanted, claims.issued_at, self._ttl_ms, create_user=self._create_users
                ),
            )
        if session is None or claims.issued_at <= session.issued_after:
            raise NexoError("session_invalid")
        return structs.replace(session, expires_at=claims.expires_at)


def _sid(user_id: str, platform_id: int, device_id: str) -> str:
    """Returns the same for each token of a user and device. No session by a password has such a long one."""
    text = f"{user_id}\n{platform_id}\n{device_id}"
    return f"x_{hashlib.sha256(text.encode()).hexdigest()[:48]}"
