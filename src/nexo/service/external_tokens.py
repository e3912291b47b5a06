"""A product's own tokens (JWT), checked: signature, issuer, audience, times, user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jwt

from nexo.config import Config
from nexo.core.accounts import EXTERNAL_AGE_MS
from nexo.core.content import check_text
from nexo.errors import NexoError
from nexo.ids import check_new_user_id, now_ms
from nexo.service.external_keys import ExternalKeys

TOKEN_MAX_CHARS = 8192
SKEW_MS = 10_000  # a product's clock may be ahead by this
PLATFORM_WEB = 5
DEVICE_ID_MAX_CHARS = 128

# Times are judged here, by a clock that can be given; the user has an error of its own.
_OPTIONS: Any = {
    **dict.fromkeys(("verify_exp", "verify_iat", "verify_nbf", "verify_sub", "verify_jti"), False),
    "require": ["exp", "iat", "aud", "iss"],
}


class ExternalClaims(NamedTuple):
    user_id: str
    platform_id: int
    device_id: str
    issued_at: int  # milliseconds
    expires_at: int


class ExternalTokens:
    def __init__(self, config: Config, keys: ExternalKeys, clock: Callable[[], int] = now_ms) -> None:
        self._settings = config.auth.external
        self._algorithms = set(self._settings.algorithms) or {"HS256", "RS256", "ES256", "EdDSA"}
        self._keys = keys
        self._clock = clock

    async def read(self, token: str) -> ExternalClaims:
        """Returns the claims of a genuine token that has not expired. Raises `unauthorized`, `token_expired`,
        `bad_user_id`."""
        payload = await self._verify(token)
        now = self._clock()
        issued_at, expires_at = _time(payload, "iat"), _time(payload, "exp")
        starts_at = _time(payload, "nbf") if "nbf" in payload else issued_at
        if max(issued_at, starts_at) > now + SKEW_MS:
            raise NexoError("unauthorized", "The token is of the future: compare the clocks")
        # An ended session is remembered for so long; an older token could open it again.
        if expires_at <= now or issued_at <= now - EXTERNAL_AGE_MS:
            raise NexoError("token_expired")
        user_id = payload.get(self._settings.user_claim)
        if not isinstance(user_id, str):
            raise NexoError("bad_user_id", f"The token has no text in its claim {self._settings.user_claim}")
        check_new_user_id(user_id)
        return ExternalClaims(user_id, _platform(payload), _device(payload), issued_at, expires_at)

    async def _verify(self, token: str) -> dict[str, Any]:
        if not token.isascii() or len(token) > TOKEN_MAX_CHARS:
            raise NexoError("unauthorized")
        try:
            head = jwt.get_unverified_header(token)
        # The head is JSON that any client may write, also a thousand brackets deep.
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise NexoError("unauthorized") from None
        algorithm, key_id = head.get("alg"), head.get("kid")
        if not isinstance(algorithm, str) or not isinstance(key_id, str | None) or "crit" in head:
            raise NexoError("unauthorized")
        if algorithm not in self._algorithms:
            raise NexoError("unauthorized")
        for key in await self._keys.find(key_id, algorithm):
            try:
                payload = jwt.decode(
                    token,
                    key.key,
                    algorithms=[key.algorithm],
                    audience=self._settings.audience,
                    issuer=self._settings.issuer,
                    options=_OPTIONS,
                )
            except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
                continue
            return dict(payload)
        raise NexoError("unauthorized")


def _time(payload: dict[str, Any], claim: str) -> int:
    """Returns a claim, which counts seconds, in milliseconds."""
    value = payload.get(claim)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 40:
        raise NexoError("unauthorized", f"The claim {claim} is a time in seconds")
    return int(value * 1000)


def _platform(payload: dict[str, Any]) -> int:
    value = payload.get("platform_id", PLATFORM_WEB)
    if type(value) is not int or not 1 <= value <= 10:
        raise NexoError("unauthorized", "The claim platform_id is a number from 1 to 10")
    return value


def _device(payload: dict[str, Any]) -> str:
    value = payload.get("device_id", "")
    try:
        return check_text(value, "device_id", DEVICE_ID_MAX_CHARS)
    except NexoError as error:
        raise NexoError("unauthorized", f"The claim device_id: {error.detail}") from None
