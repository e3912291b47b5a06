"""The backlog of all shards, their lengths and ages, as seen by every instance, whether it saves or not.

A shard is stalled when its oldest entry stays the same for `two_phase.stall_s`: nothing is saved. That is a reason
not to be ready. While the database answers, nothing more is accepted into the shard, and unsaved sends of this
instance's connections are saved directly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

import structlog
from msgspec import Struct

from nexo.bus.redis_client import BusDown, NoGroup
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports import OwnerStore
from nexo.two_phase.streams import Streams

log = structlog.get_logger()

LOOK_S = 1.0
IDLE_LOOK_S = 5.0  # while two-phase is switched off: entries may be left
LOG_AGAIN_S = 60.0


class Oldest(Struct):
    entry_id: str = ""
    since: float = 0.0  # when it was first seen to be the oldest
    age_s: float = 0.0


class Backlog:
    def __init__(
        self, streams: Streams, owners: OwnerStore, stop_accepting: Callable[[frozenset[int]], None], is_enabled: bool
    ) -> None:
        """`stop_accepting` is called after each look with the shards that are stalled while the database answers."""
        self._streams = streams
        self._owners = owners
        self._stop_accepting = stop_accepting
        self.is_enabled = is_enabled
        self._stall_s = streams.settings.stall_s
        self._lengths = {"accepted": 0, "to_save": 0, "dead": 0}
        self._most_dead = 0
        self._oldest = {shard: Oldest() for shard in range(streams.settings.shards)}
        self._stalled: frozenset[int] = frozenset()
        self._unowned: frozenset[int] = frozenset()
        self._logged_at = 0.0

    async def run(self) -> None:
        """Look at the shards until cancelled."""
        while True:
            started = time.monotonic()
            await self._look()
            await asyncio.sleep(max(0.05, started + (LOOK_S if self.is_enabled else IDLE_LOOK_S) - time.monotonic()))

    @property
    def reason(self) -> str:
        """Why this instance is not ready; empty while everything is saved in time."""
        if not self._stalled:
            return ""
        shard = max(self._stalled, key=lambda shard: self._oldest[shard].age_s)
        who = "no worker holds it" if shard in self._unowned else "its worker makes no progress"
        return f"Accepted messages are not saved: shard {shard}, for {self._oldest[shard].age_s:.0f} s, {who}"

    def samples(self) -> Iterable[Sample]:
        yield from f.STREAM_LENGTH.each(self._lengths)
        yield f.DEAD_LETTERS_FILL(self._most_dead / self._streams.settings.dead_max)
        for shard, oldest in self._oldest.items():
            yield f.UNSAVED_OLDEST(oldest.age_s, str(shard))

    async def _look(self) -> None:
        try:
            found = await self._streams.backlog()
        except (BusDown, NoGroup):  # nothing is accepted or saved through this Redis; the bus reports that
            self._note(frozenset(), frozenset())
            self._stop_accepting(frozenset())
            return
        now = time.monotonic()
        for name in self._lengths:
            self._lengths[name] = sum(getattr(one, name) for one in found)
        self._most_dead = max(one.dead for one in found)
        for shard, one in enumerate(found):
            oldest = self._oldest[shard]
            if one.oldest_id != oldest.entry_id:
                oldest.entry_id, oldest.since = one.oldest_id, now
            oldest.age_s = one.oldest_age_ms / 1000
        stalled = frozenset(
            shard
            for shard, oldest in self._oldest.items()
            if oldest.entry_id and min(oldest.age_s, now - oldest.since) >= self._stall_s
        )
        unowned: frozenset[int] = frozenset()
        are_saved_directly = False
        if stalled:
            try:
                unowned = stalled.intersection(await self._owners.free(len(self._oldest)))
                are_saved_directly = True
            except NexoError:  # the database does not answer: accepted messages are saved when it does
                pass
        self._note(stalled, unowned)
        self._stop_accepting(stalled if are_saved_directly else frozenset())

    def _note(self, stalled: frozenset[int], unowned: frozenset[int]) -> None:
        now = time.monotonic()
        if stalled and (stalled - self._stalled or now - self._logged_at >= LOG_AGAIN_S):
            self._logged_at = now
            oldest_s = max(self._oldest[shard].age_s for shard in stalled)
            log.error("unsaved_stalled", shards=sorted(stalled), unowned=sorted(unowned), oldest_s=round(oldest_s, 1))
        elif self._stalled and not stalled:
            log.info("unsaved_moving", shards=sorted(self._stalled))
        self._stalled, self._unowned = stalled, unowned
