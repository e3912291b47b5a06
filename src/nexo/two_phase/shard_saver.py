"""Saves the entries of a shard: submits them to the group committer in the order of the stream, publishes their
outcomes once they are certain, then removes them from the stream.

The next entries are submitted without waiting for a commit, as with direct sends. When an entry has to be tried again,
nothing more is submitted until everything under way is decided; then it is first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog
from msgspec import Struct

from nexo.bus.redis_client import BusDown
from nexo.core import events
from nexo.core.model import Message, Sent
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.metrics.two_phase import SaveMeter
from nexo.ports import Address, MessageStore, Outcome
from nexo.two_phase.entries import StreamEntry
from nexo.two_phase.send_items import outcome_event
from nexo.two_phase.streams import Raw, Stream, Streams

log = structlog.get_logger()

PAUSE_S = 0.05
PAUSE_MAX_S = 1.0
BATCHES_UNDER_WAY = 2  # full ones; a batch is as much as is read at once


class NotOwner(Exception):
    """The lease may have expired while this process was stopped: another owner may have published another outcome, so
    this process publishes none that is not in the database."""


class Teller(Protocol):
    """Delivery, as workers need it: it reaches connections on every instance. Saved messages are published by the
    store itself."""

    def provisional(self, message: Message, member_epoch: int, origin: Address | None) -> None: ...

    def withdrawn(self, message: Message, reason: str) -> None: ...

    def outcome(self, address: Address, event: events.Event) -> None:
        """Hand the outcome of an accepted send to the instance that accepted it."""


class Work(Struct, eq=False):
    """An entry on its way into the database (`ports.Origin`)."""

    saver: ShardSaver
    number: int  # in the order of the stream
    stream: Stream
    raw: Raw
    entry: StreamEntry
    outcome: Sent | NexoError | None = None  # the last one
    tries: int = 0

    @property
    def place(self) -> tuple[str, str]:
        return self.entry.draft.sender_id, self.entry.draft.conversation_id

    @property
    def output(self) -> object | None:
        return None

    @property
    def address(self) -> Address | None:
        return self.entry.address

    def decided(self, outcome: Outcome) -> None:
        assert not isinstance(outcome, events.Accepted)
        self.saver.decided(self, outcome)


class ShardSaver:
    def __init__(
        self,
        fence: tuple[int, int],
        streams: Streams,
        messages: MessageStore,
        teller: Teller,
        meter: SaveMeter,
        is_owner: Callable[[], bool],
    ) -> None:
        """`fence`: shard and epoch. `is_owner`: whether the shard is surely still this process's."""
        self._fence = fence
        self._streams = streams
        self._settings = streams.settings
        self._messages = messages
        self._teller = teller
        self._meter = meter
        self._is_owner = is_owner
        self._room = BATCHES_UNDER_WAY * streams.settings.batch_size
        self._count = 0
        self._under_way = 0  # with the committer
        self._again: list[Work] = []  # to be tried again
        self._passed: dict[tuple[str, str], int] = {}  # the last number saved per sender and conversation
        self._certain: list[Work] = []  # published, and still in their stream
        self._is_finishing = False
        self._is_lost = False
        self._pause_s = PAUSE_S
        self._stopping = False
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()

    # -- for the worker --------------------------------------------------------------------------------------

    async def save(self, stream: Stream, entries: Sequence[tuple[Raw, StreamEntry]]) -> None:
        """Submit entries to the committer, when it has room. Raises NotOwner, about these or earlier ones."""
        await self._until(lambda: not self._again and self._under_way < self._room)
        if self._is_lost:
            self._is_lost = False
            raise NotOwner
        if not self._stopping:
            works = []
            for raw, entry in entries:
                self._count += 1
                entry.draft.fence = self._fence
                works.append(Work(self, self._count, stream, raw, entry))
            self._hand_over(works)

    async def rest(self) -> None:
        """Wait until nothing is under way and Redis has all outcomes. Entries to be tried again stay in their
        stream."""
        await self._until(lambda: not self._under_way)
        self._again.clear()
        self._passed.clear()
        while self._certain or self._is_finishing:
            self._changed.clear()
            await self._changed.wait()

    def stop(self) -> None:
        """Finish what is under way; the next owner finds the rest."""
        self._stopping = True
        self._note_change()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so() and not (self._stopping and not self._under_way):
            self._changed.clear()
            await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._wake.set()

    # -- the committer ---------------------------------------------------------------------------------------

    def _hand_over(self, works: Sequence[Work]) -> None:
        for i, work in enumerate(works):
            try:
                self._messages.submit(work.entry.draft, work)
            except NexoError as full:
                for left in works[i:]:
                    left.outcome = full
                self._again += works[i:]
                self._note_change()
                return
            self._under_way += 1
            self._meter.under_way += 1

    def decided(self, work: Work, outcome: Sent | NexoError) -> None:
        self._under_way -= 1
        self._meter.under_way -= 1
        self._note_change()
        work.outcome = outcome
        if isinstance(outcome, Sent):
            self._pause_s = PAUSE_S
            self._passed[work.place] = work.number
            self._conclude(work)
        elif outcome.row.retry:
            self._again.append(work)
        else:
            self._refuse(work)
        if not self._under_way and not self._again:
            self._passed.clear()

    def _refuse(self, work: Work) -> None:
        if self._is_owner():
            self._conclude(work)
        else:
            self._is_lost = True

    async def run(self) -> None:
        """Finish decided entries and try others again, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._certain:
                works, self._certain = self._certain, []
                self._is_finishing = True
                await self._finish(works)
                self._is_finishing = False
                self._note_change()
            if self._again and not self._under_way and not self._stopping:
                await self._try_again()

    async def _try_again(self) -> None:
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(PAUSE_MAX_S, self._pause_s * 2)
        if self._under_way or self._stopping:
            return
        works = sorted(self._again, key=lambda work: work.number)
        self._again.clear()
        left = [work for work in works if self._may_try_again(work)]
        self._passed.clear()
        self._hand_over(left)
        self._note_change()

    def _may_try_again(self, work: Work) -> bool:
        assert isinstance(work.outcome, NexoError)
        if work.outcome.name != "internal_error":
            return True
        # The cause is this message or the database. Never save it after a later send of the same sender.
        work.tries += 1
        if work.tries < self._settings.max_tries and self._passed.get(work.place, 0) < work.number:
            return True
        self._refuse(work)
        return False

    # -- publishing outcomes ---------------------------------------------------------------------------------

    def _conclude(self, work: Work) -> None:
        """Publish the outcome, then remove the entry: published twice is harmless, not published is not."""
        self._publish(work)
        self._meter.lag.observe(max(0, now_ms() - work.entry.accepted_at) / 1000)
        self._certain.append(work)
        self._wake.set()

    def _publish(self, work: Work) -> None:
        entry, outcome = work.entry, work.outcome
        draft = entry.draft
        assert outcome is not None
        try:
            if entry.address is not None:
                self._teller.outcome(entry.address, outcome_event(draft, outcome))
            if isinstance(outcome, NexoError):
                self._meter.failures.add("save_fail")
                reason = outcome.name
            elif outcome.message.server_msg_id != draft.server_msg_id:
                self._meter.failures.add("dup_db")
                reason = "duplicate"
            else:
                return
            if entry.delivered_at:
                self._teller.withdrawn(entry.provisional, reason)
        except Exception:
            self._meter.failures.add("publish_fail")
            log.exception("publish_failed", server_msg_id=draft.server_msg_id)

    async def _finish(self, works: list[Work]) -> None:
        """Remove entries from their stream, and retry until Redis answers. After a crash or a stop the next owner finds
        the entries, and their outcome in the database."""
        pause_s = PAUSE_S
        while works:
            try:
                addresses = await self._remove(works)
                break
            except BusDown:
                self._meter.failures.add("publish_fail")
                if self._stopping:
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(PAUSE_MAX_S, pause_s * 2)
        for work, address in zip(works, addresses, strict=True):
            if address is not None and address != work.entry.address:  # it was sent again, from another connection
                assert work.outcome is not None
                self._teller.outcome(address, outcome_event(work.entry.draft, work.outcome))

    async def _remove(self, works: list[Work]) -> list[Address | None]:
        """Remove entries from their stream. Returns the connection that waits for each outcome."""
        found: dict[int, Address | None] = {}
        states: dict[Stream, list[tuple[Work, str, str]]] = {}
        for work in works:
            outcome = work.outcome
            if not isinstance(outcome, NexoError):
                states.setdefault(work.stream, []).append((work, "saved", ""))
            elif outcome.name == "internal_error":
                reason = outcome.detail or outcome.name
                bury = self._streams.bury(work.stream, self._fence[0], work.raw, work.entry.draft, reason)
                found[work.number] = await bury
            else:
                states.setdefault(work.stream, []).append((work, "refused", outcome.name))
        for stream, certain in states.items():
            waiting = await self._streams.finish(stream, [(work.entry, state, why) for work, state, why in certain])
            found.update((work.number, address) for (work, _, _), address in zip(certain, waiting, strict=True))
        return [found[work.number] for work in works]
