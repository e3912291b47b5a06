"""Who a request is from: the bearer of its token."""

from __future__ import annotations

from collections.abc import Iterable

from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.service.accounts import Accounts

MAX_TOKENS = 10_000


class Authentication:
    """Checking a signature costs as much as everything else about a request together (70 µs of 150), so the
    tokens that were genuine are remembered, the latest ones. Whether their session goes on is still asked
    each time: of the accounts' cache, and where it has nothing (more) to say, of the accounts themselves."""

    def __init__(self, accounts: Accounts, max_tokens: int = MAX_TOKENS) -> None:
        self._accounts = accounts
        self._max_tokens = max_tokens
        self._genuine: dict[bytes, Session] = {}  # in the order of use

    def samples(self) -> Iterable[Sample]:
        yield f.CACHE(len(self._genuine), "tokens")
        yield f.CACHE_LIMIT(self._max_tokens, "tokens")

    async def session_of(self, authorization: bytes | None) -> Session:
        """The session of an `Authorization` header, or the reason why there is none."""
        scheme, _, token = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not token:
            raise NexoError("unauthorized")
        session = self._genuine.pop(token, None)
        if session is None or not self._goes_on(session):
            session = await self._accounts.authenticate(token.strip().decode("latin-1"))
        self._genuine[token] = session
        if len(self._genuine) > self._max_tokens:
            del self._genuine[next(iter(self._genuine))]
        return session

    def _goes_on(self, session: Session) -> bool:
        known = self._accounts.cache.get(session.sid)
        return known is not None and known.version == session.version and session.expires_at > now_ms()
