"""When users were connected last: noted in memory, written in batches, shown to viewers that may see it.

A session counts as seen when it signs in over a socket, when that socket closes, and when it makes an HTTP request; the
latter at most once in `AGAIN_MS`. What is noted and not written is lost in a crash: a time is then a little older.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

import structlog

from nexo.core.model import Session
from nexo.core.people import LAST_SEEN_VALUES, LastSeenFor, SeenSession
from nexo.errors import NexoError
from nexo.ids import CANARY_IDS, now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample

log = structlog.get_logger()

FLUSH_S = 2.0
AGAIN_MS = 60_000
WAITING_MAX = 50_000
AT_ONCE = 500  # rows of one transaction
ADDRESS_MAX = 64


class SeenStore(Protocol):
    async def write_seen(self, seen: Sequence[SeenSession], clock_ms: int) -> None:
        """Write times that are newer than the stored ones. They are those of a clock that shows `clock_ms` now."""

    async def last_seen(self, viewer_id: str, user_ids: Sequence[str]) -> dict[str, int]:
        """Returns when these users were connected last, of those that the viewer may see; 0 if that is not known."""

    async def privacy(self, user_id: str) -> LastSeenFor: ...

    async def set_privacy(self, user_id: str, last_seen: LastSeenFor) -> None: ...


class LastSeen:
    def __init__(self, store: SeenStore) -> None:
        self._store = store
        self._waiting: dict[str, SeenSession] = {}  # by session
        self._users: dict[str, int] = {}  # when the users of those were seen
        self._noted: dict[str, int] = {}  # when a session was noted last, the oldest first

    def samples(self) -> Iterable[Sample]:
        yield f.CACHE(len(self._waiting) + len(self._noted), "last_seen")
        yield f.CACHE_LIMIT(2 * WAITING_MAX, "last_seen")

    def note(self, session: Session, address: str, *, always: bool = True) -> None:
        """Note that a session is in use; unless `always`, not again within a minute."""
        sid, at = session.sid, now_ms()
        if session.user_id in CANARY_IDS or sid.startswith("key:"):
            return
        if not always and at - self._noted.get(sid, 0) < AGAIN_MS:
            return
        if len(self._waiting) >= WAITING_MAX and sid not in self._waiting:
            return  # written no faster: the time of this session stays as it is
        self._noted.pop(sid, None)
        self._noted[sid] = at
        if len(self._noted) > WAITING_MAX:
            del self._noted[next(iter(self._noted))]
        self._waiting[sid] = SeenSession(sid, session.user_id, address[:ADDRESS_MAX], at)
        self._users[session.user_id] = at

    async def run(self) -> None:
        """Write what was noted, again and again. Never returns."""
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        for _ in range(-(-len(self._waiting) // AT_ONCE)):
            chosen = list(self._waiting)[:AT_ONCE]
            batch = [self._waiting.pop(sid) for sid in chosen]
            try:
                await self._store.write_seen(batch, now_ms())
            except NexoError as error:
                log.warning("last_seen_not_written", sessions=len(batch), error=error.name)
                return
            finally:
                for one in batch:
                    if self._users.get(one.user_id, 0) <= one.at:
                        self._users.pop(one.user_id, None)

    async def of(self, viewer_id: str, user_ids: Sequence[str]) -> dict[str, int]:
        """Returns when these users were connected last, of those that the viewer may see and where it is known."""
        stored = await self._store.last_seen(viewer_id, user_ids)
        times = {user_id: max(at, self._users.get(user_id, 0)) for user_id, at in stored.items()}
        return {user_id: at for user_id, at in times.items() if at}

    async def privacy(self, user_id: str) -> LastSeenFor:
        return await self._store.privacy(user_id)

    async def set_privacy(self, user_id: str, last_seen: str) -> None:
        value = LAST_SEEN_VALUES.get(last_seen)
        if value is None:
            raise NexoError("bad_privacy", f"last_seen is one of {', '.join(LAST_SEEN_VALUES)}")
        await self._store.set_privacy(user_id, value)
