"""Member lists for pushing, cached by conversation and used only at the epoch of the message or newer.

Pushes of one conversation keep their order: while a list is loaded, later pushes wait behind it.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import structlog

from nexo.background import Background
from nexo.errors import NexoError
from nexo.ids import peers_of
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports import Audience, GroupStore

log = structlog.get_logger()

CACHED_MEMBERS_MAX = 500_000
WAITING_MAX = 10_000

Deliver = Callable[[Audience], None]


class Waiting(NamedTuple):
    epoch: int
    deliver: Deliver
    before: Callable[[], Awaitable[None]] | None
    also: Sequence[str]  # users it concerns besides the members
    heard: bool  # received from another instance, which has notified all instances
    fleeting: bool  # not worth a RESYNC: when it cannot be delivered it is dropped


Lost = Callable[[str, Collection[str] | None, bool], None]


class Audiences:
    def __init__(
        self,
        groups: GroupStore,
        ttl_s: float,
        lost: Lost,
        introduce: Callable[[str, Audience, float], Awaitable[None]],
        background: Background,
    ) -> None:
        """`lost` is called with a conversation whose members could not be read: connected users must resync. Its other
        arguments are the users concerned (None: unknown) and whether other instances have been notified.
        `introduce` is called with every list that has newcomers, and the time when it was read, before anything is
        delivered by it: the event that announces them may arrive later."""
        self._groups = groups
        self._ttl_s = ttl_s
        self._lost = lost
        self._introduce = introduce
        self._cached: OrderedDict[str, tuple[float, Audience]] = OrderedDict()
        self._size = 0
        self._forgets = 0
        self._waiting: dict[str, deque[Waiting]] = {}
        self._background = background

    def with_audience(
        self,
        conversation_id: str,
        epoch: int,
        deliver: Deliver,
        before: Callable[[], Awaitable[None]] | None = None,
        *,
        also: Sequence[str] = (),
        heard: bool = False,
        fleeting: bool = False,
    ) -> None:
        """Call `deliver` with the members at `epoch` or later: now, or in order once they are loaded and `before` is
        done. For `also`, `heard` and `fleeting` see `Waiting`."""
        waiting = self._waiting.get(conversation_id)
        if waiting is None:
            audience = self.peek(conversation_id, epoch)
            if audience is not None and before is None:
                deliver(audience)
                return
            self._waiting[conversation_id] = waiting = deque()
            self._background.start("audience", self._load(conversation_id, waiting))
        item = Waiting(epoch, deliver, before, also, heard, fleeting)
        if len(waiting) >= WAITING_MAX:
            self._lose(conversation_id, [item])
            return
        waiting.append(item)

    def at_once(self, conversation_id: str, epoch: int) -> Audience | None:
        """Returns the members at `epoch` or later if they are cached and nothing in this conversation waits."""
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
        """Returns the members, from the cache or the database."""
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
        if forgets != self._forgets:  # possibly read before the change that made it invalid: used once, not cached
            return
        if not audience.listeners:  # a chat that does not exist: there are as many of them as names
            return
        self._cached[conversation_id] = (time.monotonic() + self._ttl_s, audience)
        self._size += len(audience.listeners) + 1
        while self._size > CACHED_MEMBERS_MAX and len(self._cached) > 1:
            _, (_, dropped) = self._cached.popitem(last=False)
            self._size -= len(dropped.listeners) + 1

    async def _load(self, conversation_id: str, waiting: deque[Waiting]) -> None:
        item = waiting[0]
        try:
            while waiting:
                item = waiting[0]
                if item.before is not None:
                    await item.before()
                audience = self.peek(conversation_id, item.epoch)
                if audience is None:
                    audience = await self._fetch_for(item, conversation_id)
                waiting.popleft()
                if audience is not None:
                    item.deliver(audience)
        except NexoError as error:
            log.warning("push_audience_unknown", conversation_id=conversation_id, error=error.name)
            self._lose(conversation_id, [item, *waiting])
        except Exception:
            log.exception("push_failed", conversation_id=conversation_id)
            self._lose(conversation_id, [item, *waiting])
        finally:
            del self._waiting[conversation_id]

    async def _fetch_for(self, item: Waiting, conversation_id: str) -> Audience | None:
        """Returns the members, or None when they cannot be read and the push is not worth a RESYNC."""
        try:
            return await self._fetch(conversation_id)
        except Exception as error:
            if not item.fleeting:
                raise
            log.info("push_dropped", conversation_id=conversation_id, error=str(error))
            return None

    def _lose(self, conversation_id: str, items: Sequence[Waiting]) -> None:
        """Report pushes that cannot be delivered. The members of a chat of two are in its id; of a group a cached list
        counts if its epoch is recent enough."""
        items = [item for item in items if not item.fleeting]
        if not items:
            return
        entry = self._cached.get(conversation_id)
        known: set[str] | None = None
        if (peers := peers_of(conversation_id)) is not None:
            known = set(peers)
        elif entry is not None and entry[1].epoch >= max(item.epoch for item in items):
            known = {*entry[1].listeners, *(user_id for item in items for user_id in item.also)}
        self._lost(conversation_id, known, all(item.heard for item in items))
