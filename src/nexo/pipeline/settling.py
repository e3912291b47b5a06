"""From the entries of a shard to their outcomes: handed to the group committer in the order of the stream, told to
everybody once they are certain, then let go.

Nobody waits for a commit before handing over the next entries, as senders of the direct way do not. Where one has to
be tried again, nothing more is handed over until everything under way is decided; then it goes first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog
from msgspec import Struct

from nexo.bus.redis_link import BusDown
from nexo.core import events
from nexo.core.model import Message, Sent
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.metrics.pipeline import SaveMeter
from nexo.pipeline.accepting import outcome_event
from nexo.pipeline.entries import Entry
from nexo.pipeline.streams import Raw, Stream, Streams
from nexo.ports import Address, MessageStore

log = structlog.get_logger()

PAUSE_S = 0.05
PAUSE_MAX_S = 1.0
BATCHES_UNDER_WAY = 2  # full ones; a batch is as much as is read at once


class NotOwner(Exception):
    """This process stood still for so long that another one may have the shard, and may have decided otherwise
    and told that. Nothing is told that is not in the database."""


class Teller(Protocol):
    """The gateway, as those who save need it: it reaches connections on every instance."""

    def message_saved(self, sent: Sent, origin: object | None) -> None: ...  # `ports.Publisher`

    def message_provisional(self, message: Message, member_epoch: int, origin: Address | None) -> None: ...

    def message_withdrawn(self, message: Message, reason: str) -> None: ...

    def tell_connection(self, address: Address, event: events.Event) -> None: ...

    def flush(self) -> None: ...  # write out what connections here were told, before anything else is done


class Work(Struct, eq=False):
    number: int  # in the order of the stream
    stream: Stream
    raw: Raw
    entry: Entry
    outcome: Sent | NexoError | None = None  # the last one
    tries: int = 0

    @property
    def place(self) -> tuple[str, str]:
        return self.entry.draft.sender_id, self.entry.draft.conversation_id


class Settling:
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
        self._again: list[Work] = []  # those it has no final answer for
        self._passed: dict[tuple[str, str], int] = {}  # the last one saved in each place, among those under way
        self._certain: list[Work] = []  # told, and still in their stream
        self._is_finishing = False
        self._is_lost = False
        self._pause_s = PAUSE_S
        self._stopping = False
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()

    # -- for those who read ----------------------------------------------------------------------------------

    async def save(self, stream: Stream, entries: Sequence[tuple[Raw, Entry]]) -> None:
        """Returns when they are with the committer. Raises NotOwner, about these or earlier ones."""
        await self._until(lambda: not self._again and self._under_way < self._room)
        if self._is_lost:
            self._is_lost = False
            raise NotOwner
        if not self._stopping:
            works = []
            for raw, entry in entries:
                self._count += 1
                entry.draft.fence = self._fence
                works.append(Work(self._count, stream, raw, entry))
            self._hand_over(works)

    async def rest(self) -> None:
        """Until nothing is under way and Redis knows of everything. What had to be tried again is left in its
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
                self._messages.submit(work.entry.draft, self._decide(work))
            except NexoError as full:
                for left in works[i:]:
                    left.outcome = full
                self._again += works[i:]
                self._note_change()
                return
            self._under_way += 1
            self._meter.under_way += 1

    def _decide(self, work: Work) -> Callable[[Sent | NexoError], None]:
        def decide(outcome: Sent | NexoError) -> None:
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

        return decide

    def _refuse(self, work: Work) -> None:
        if self._is_owner():
            self._conclude(work)
        else:
            self._is_lost = True

    async def run(self) -> None:
        """Beside whoever reads, until cancelled."""
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
        # Something about this message, or about the database. Never after something that was sent behind it.
        work.tries += 1
        if work.tries < self._settings.max_tries and self._passed.get(work.place, 0) < work.number:
            return True
        self._refuse(work)
        return False

    # -- telling ---------------------------------------------------------------------------------------------

    def _conclude(self, work: Work) -> None:
        """Tell everybody, then let the entry go. Told twice is harmless, not told at all is not."""
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
                self._teller.tell_connection(entry.address, outcome_event(draft, outcome))
            if isinstance(outcome, NexoError):
                self._meter.failures.add("save_fail")
                reason = outcome.name
            elif outcome.message.server_msg_id != draft.server_msg_id:
                self._meter.failures.add("dup_db")
                reason = "duplicate"
            else:
                self._teller.message_saved(outcome, entry.address)
                return
            if entry.delivered_at:
                self._teller.message_withdrawn(entry.provisional, reason)
        except Exception:
            self._meter.failures.add("publish_fail")
            log.exception("publish_failed", server_msg_id=draft.server_msg_id)

    async def _finish(self, works: list[Work]) -> None:
        """Until Redis knows. Gone for good, or told to stop: the next owner finds the entries and, in the
        database, what became of them."""
        pause_s = PAUSE_S
        while works:
            try:
                addresses = await self._let_go(works)
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
                self._teller.tell_connection(address, outcome_event(work.entry.draft, work.outcome))

    async def _let_go(self, works: list[Work]) -> list[Address | None]:
        """Who is to be told of each."""
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
            told = await self._streams.finish(stream, [(work.entry, state, why) for work, state, why in certain])
            found.update((work.number, address) for (work, _, _), address in zip(certain, told, strict=True))
        return [found[work.number] for work in works]
