"""Member lists for pushing, cached by conversation and used only at the epoch of the message or newer.

What is pushed in one conversation keeps its order: while a list is loaded, everything behind it waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable

import structlog

from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports import Audience, GroupStore

log = structlog.get_logger()

CACHED_MEMBERS_MAX = 500_000
WAITING_MAX = 10_000

Deliver = Callable[[Audience], None]
Waiting = tuple[int, Deliver, Callable[[], Awaitable[None]] | None]


class Audiences:
    def __init__(
        self,
        groups: GroupStore,
        ttl_s: float,
        lost: Callable[[str], None],
        introduce: Callable[[str, Audience, float], Awaitable[None]],
    ) -> None:
        """`lost` is told of a conversation whose members could not be found out: those here must resync.
        `introduce` is called with every list that has newcomers in it, and the time when it was read, before
        anything is delivered by it: the news of their coming may still be on its way."""
        self._groups = groups
        self._ttl_s = ttl_s
        self._lost = lost
        self._introduce = introduce
        self._cached: OrderedDict[str, tuple[float, Audience]] = OrderedDict()
        self._size = 0
        self._forgets = 0
        self._waiting: dict[str, deque[Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def with_audience(
        self, conversation_id: str, epoch: int, deliver: Deliver, before: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Call `deliver` with the members at `epoch` or later: now, or in turn once they are known and what
        has to happen `before` is done."""
        waiting = self._waiting.get(conversation_id)
        if waiting is None:
            audience = self.peek(conversation_id, epoch)
            if audience is not None and before is None:
                deliver(audience)
                return
            self._waiting[conversation_id] = waiting = deque()
            task = asyncio.get_running_loop().create_task(self._load(conversation_id, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if len(waiting) >= WAITING_MAX:
            self._lost(conversation_id)
            return
        waiting.append((epoch, deliver, before))

    def at_once(self, conversation_id: str, epoch: int) -> Audience | None:
        """The members at `epoch` or later, if they are known and nothing in this conversation waits."""
        return None if conversation_id in self._waiting else self.peek(conversation_id, epoch)

    def samples(self) -> Iterable[Sample]:
        yield f.CACHE(self._size, "audiences")
        yield f.CACHE_LIMIT(CACHED_MEMBERS_MAX, "audiences")
        yield f.QUEUE(sum(map(len, self._waiting.values())), "audiences")

    def peek(self, conversation_id: str, epoch: int = 0) -> Audience | None:
        entry = self._cached.get(conversation_id)
        if entry is None or entry[1].epoch < epoch or time.monotonic() > entry[0]:
            return None
        return entry[1]

    async def load(self, conversation_id: str) -> Audience:
        """The members, from the cache or the database."""
        audience = self.peek(conversation_id)
        if audience is None:
            forgets = self._forgets
            audience = await self._groups.audience(conversation_id)
            if not audience.newcomers:
                self._keep(conversation_id, audience, forgets)
        return audience

    def forget(self, conversation_id: str) -> None:
        self._forgets += 1
        self._drop(conversation_id)

    def forget_all(self) -> None:
        self._forgets += 1
        self._cached.clear()
        self._size = 0

    def _drop(self, conversation_id: str) -> None:
        entry = self._cached.pop(conversation_id, None)
        if entry is not None:
            self._size -= len(entry[1].listeners) + 1

    async def _fetch(self, conversation_id: str) -> Audience:
        forgets, asked_at = self._forgets, time.monotonic()
        audience = await self._groups.audience(conversation_id)
        if audience.newcomers:
            await self._introduce(conversation_id, audience, asked_at)
        self._keep(conversation_id, audience, forgets)
        return audience

    def _keep(self, conversation_id: str, audience: Audience, forgets: int) -> None:
        self._drop(conversation_id)
        if forgets != self._forgets:  # it may have been read before what was to be forgotten; good for this once
            return
        self._cached[conversation_id] = (time.monotonic() + self._ttl_s, audience)
        self._size += len(audience.listeners) + 1
        while self._size > CACHED_MEMBERS_MAX and len(self._cached) > 1:
            _, (_, dropped) = self._cached.popitem(last=False)
            self._size -= len(dropped.listeners) + 1

    async def _load(self, conversation_id: str, waiting: deque[Waiting]) -> None:
        try:
            while waiting:
                epoch, deliver, before = waiting[0]
                if before is not None:
                    await before()
                audience = self.peek(conversation_id, epoch) or await self._fetch(conversation_id)
                waiting.popleft()
                deliver(audience)
        except NexoError as error:
            log.warning("push_audience_unknown", conversation_id=conversation_id, error=error.name)
            self._lost(conversation_id)
        except Exception:
            log.exception("push_failed", conversation_id=conversation_id)
            self._lost(conversation_id)
        finally:
            del self._waiting[conversation_id]
