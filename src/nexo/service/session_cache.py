"""Sessions found valid, trusted for a few seconds without asking the database again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable

from nexo.core.model import Session
from nexo.metrics import families as f
from nexo.metrics.families import Sample

MAX_SESSIONS = 20_000


class SessionCache:
    """Holds a limited number of sessions; the least recently used are dropped first."""

    def __init__(
        self, ttl_s: float, max_sessions: int = MAX_SESSIONS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ttl_s = ttl_s
        self._max_sessions = max_sessions
        self._clock = clock
        self._found: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        self._of_user: dict[str, set[str]] = {}
        self._forgets = 0
        self.hits = 0
        self.misses = 0

    def samples(self) -> Iterable[Sample]:
        yield f.CACHE(len(self._found), "sessions")
        yield f.CACHE_LIMIT(self._max_sessions, "sessions")
        yield f.CACHE_LOOKUPS(self.hits, "sessions", "hit")
        yield f.CACHE_LOOKUPS(self.misses, "sessions", "miss")

    def __len__(self) -> int:
        return len(self._found)

    def get(self, sid: str) -> Session | None:
        entry = self._found.get(sid)
        if entry is None or entry[1] <= self._clock():
            self.misses += 1
            return None
        self.hits += 1
        self._found.move_to_end(sid)
        return entry[0]

    async def load(self, sid: str, read: Callable[[], Awaitable[Session | None]]) -> Session | None:
        """Reads a session and keeps a valid one; its time counts from the question, because the answer may be
        older than its arrival. An answer during which `forget` was called is not kept."""
        until, forgets = self._clock() + self._ttl_s, self._forgets
        session = await read()
        if session is None:
            self._drop(sid)
        elif forgets == self._forgets:
            self._keep(session, until)
        return session

    def forget(self, sid: str) -> None:
        self._forgets += 1
        self._drop(sid)

    def forget_all(self) -> None:
        self._forgets += 1
        self._found.clear()
        self._of_user.clear()

    def forget_user(self, user_id: str) -> None:
        self._forgets += 1
        for sid in list(self._of_user.get(user_id, ())):
            self._drop(sid)

    def _keep(self, session: Session, until: float) -> None:
        self._drop(session.sid)
        self._found[session.sid] = (session, until)
        self._of_user.setdefault(session.user_id, set()).add(session.sid)
        while len(self._found) > self._max_sessions:
            self._drop(next(iter(self._found)))

    def _drop(self, sid: str) -> None:
        entry = self._found.pop(sid, None)
        if entry is None:
            return
        user_id = entry[0].user_id
        sids = self._of_user[user_id]
        sids.discard(sid)
        if not sids:
            del self._of_user[user_id]
