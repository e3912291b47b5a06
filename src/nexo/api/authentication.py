"""Finds the user of a request by its bearer token."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.service.accounts import Accounts
from nexo.service.tokens import ACCESS_MAX_CHARS

MAX_TOKENS = 10_000


class Authentication:
    """Checking a signature costs as much as everything else about a request together (70 µs of 150), so the
    tokens that were genuine are remembered, the latest ones. Whether their session is still valid is asked
    each time: of the accounts' cache, and where it has nothing (more) to say, of the accounts themselves."""

    def __init__(self, accounts: Accounts, max_tokens: int = MAX_TOKENS) -> None:
        self._accounts = accounts
        self._max_tokens = max_tokens
        # By the hash of the token, in the order of use: a header as sent may be as long as a head.
        self._genuine: dict[bytes, Session] = {}

    def samples(self) -> Iterable[Sample]:
        yield f.CACHE(len(self._genuine), "tokens")
        yield f.CACHE_LIMIT(self._max_tokens, "tokens")

    async def session_of(self, authorization: bytes | None) -> Session:
        """The session of an `Authorization` header, or the reason why there is none."""
        scheme, _, token = (authorization or b"").partition(b" ")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token or len(token) > ACCESS_MAX_CHARS:
            raise NexoError("unauthorized")
        key = sha256(token).digest()
        session = self._genuine.pop(key, None)
        if session is None or not self._is_valid(session):
            session = await self._accounts.authenticate(token.decode("latin-1"))
        self._genuine[key] = session
        if len(self._genuine) > self._max_tokens:
            del self._genuine[next(iter(self._genuine))]
        return session

    def _is_valid(self, session: Session) -> bool:
        known = self._accounts.cache.get(session.sid)
        if known is None or session.expires_at <= now_ms():
            return False
        return known.version == session.version and known.issued_after == session.issued_after
