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

from nexo.core.accounts import TokenHash
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.ids import now_ms

_ALGORITHM = "HS256"
ACCESS_MAX_CHARS = 4096  # a device_id of 128 emoji makes about 2,500
_REFRESH_MAX_CHARS = 128
_CODE_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # without those that look alike: 79 bits in 16
_DOT = "."  # between the family of a refresh token and the rest
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


class TokenSession(Struct, frozen=True):
    """Answer to a login. Its printed form shows no token."""

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

    def sign(self, session: Session, issued_ms: int, ttl_s: int | None = None) -> tuple[str, int]:
        """The token and when it expires, in milliseconds. The claims count whole seconds: rounded down, since
        other readers may refuse a token that was issued in the future."""
        issued_s = issued_ms // 1000
        claims = Claims(
            session.user_id,
            session.platform_id,
            session.device_id,
            session.sid,
            session.version,
            issued_s + (ttl_s or self._ttl_s),
            issued_s,
        )
        return jwt.encode(msgspec.structs.asdict(claims), self._secret, _ALGORITHM), claims.exp * 1000

    def read(self, token: str) -> Claims:
        """Returns the claims of a genuine token that has not expired; its session may have ended nevertheless."""
        if not token.isascii() or len(token) > ACCESS_MAX_CHARS:
            raise NexoError("unauthorized")
        try:
            payload = jwt.decode(token, self._secret, algorithms=[_ALGORITHM], options=_OPTIONS)
            claims = msgspec.convert(payload, Claims)
        # The head is JSON that any client may write, also a thousand brackets deep.
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise NexoError("unauthorized") from None
        if claims.exp * 1000 <= self._clock():
            raise NexoError("token_expired")
        return claims


def new_refresh_token(predecessor: str = "") -> str:
    """Returns a token of a new family, or of the family of its predecessor."""
    family, dot, _ = predecessor.partition(_DOT)
    return f"{family if dot else secrets.token_urlsafe(16)}{_DOT}{secrets.token_urlsafe(32)}"


def hash_refresh_token(token: str) -> TokenHash:
    """Returns the stored form. Random tokens need no salt and no slow hash: there are too many to try."""
    if not token.isascii() or len(token) > _REFRESH_MAX_CHARS:
        raise NexoError("session_invalid")
    family, dot, _ = token.partition(_DOT)
    return TokenHash(_sha256(token), _sha256(family) if dot else "")


def new_code() -> str:
    """Returns a code that allows to register, short enough to be typed."""
    return "-".join("".join(secrets.choice(_CODE_LETTERS) for _ in range(4)) for _ in range(4))


def hash_code(code: str) -> str:
    return _sha256(code.strip().lower())


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
