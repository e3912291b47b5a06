"""Access tokens (signed, read without a database) and refresh tokens (random, stored as a hash).

Tokens never appear in an exception, a log or the printed form of a value.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from typing import Any

import jwt
import msgspec
from msgspec import Struct

from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.ids import now_ms

_ALGORITHM = "HS256"
_ACCESS_MAX_CHARS = 4096  # a device_id of 128 emoji makes about 2,500
_REFRESH_MAX_CHARS = 128
# Expiry is judged here, by a clock that can be given; a token from an instance whose clock is ahead of
# this one's must not be refused as coming from the future.
_OPTIONS: Any = {"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False}


class Claims(Struct, frozen=True):
    user_id: str
    platform_id: int
    device_id: str
    sid: str
    sv: int
    exp: int
    iat: int


class SignedIn(Struct, frozen=True):
    """What a login answers. Its printed form shows no token."""

    user_id: str
    access_token: str
    refresh_token: str
    expires_at: int
    platform_id: int
    device_id: str

    def __repr__(self) -> str:
        return f"SignedIn(user_id={self.user_id!r}, platform_id={self.platform_id}, expires_at={self.expires_at})"


class AccessTokens:
    def __init__(self, secret: str, ttl_s: int, clock: Callable[[], int] = now_ms) -> None:
        self._secret = secret
        self._ttl_s = ttl_s
        self._clock = clock

    def sign(self, session: Session, issued_ms: int) -> tuple[str, int]:
        """The token and when it expires, in milliseconds. The claims count whole seconds: rounded down, since
        others who read it may refuse what was issued in the future."""
        issued_s = issued_ms // 1000
        claims = Claims(
            session.user_id,
            session.platform_id,
            session.device_id,
            session.sid,
            session.version,
            issued_s + self._ttl_s,
            issued_s,
        )
        return jwt.encode(msgspec.structs.asdict(claims), self._secret, _ALGORITHM), claims.exp * 1000

    def read(self, token: str) -> Claims:
        """What a genuine token that has not expired says; its session may have ended all the same."""
        if not token.isascii() or len(token) > _ACCESS_MAX_CHARS:
            raise NexoError("unauthorized")
        try:
            payload = jwt.decode(token, self._secret, algorithms=[_ALGORITHM], options=_OPTIONS)
            claims = msgspec.convert(payload, Claims)
        # The head is JSON that anybody may write, also a thousand brackets deep.
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise NexoError("unauthorized") from None
        if claims.exp * 1000 <= self._clock():
            raise NexoError("token_expired")
        return claims


def new_refresh_token() -> str:
    return secrets.token_urlsafe(32)


def hash_refresh_token(token: str) -> str:
    """Random tokens need no salt and no slow hash: nobody can try them all."""
    if not token.isascii() or len(token) > _REFRESH_MAX_CHARS:
        raise NexoError("session_invalid")
    return hashlib.sha256(token.encode()).hexdigest()
