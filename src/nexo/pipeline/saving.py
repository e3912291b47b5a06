"""One shard's way from accepted to saved, by its present owner.

Entries are handed to the group committer in the order of the stream, so seq, permission, filter and idempotency
are those of a direct send. An entry leaves its stream when its outcome is certain and was told; whoever owns the
shard after a crash finds it there, and in the database what was saved already.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from nexo.bus.redis_link import BusDown, NoGroup
from nexo.core import events
from nexo.core.model import Message, Sent
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.metrics.pipeline import SaveMeter
from nexo.pipeline.accepting import outcome_event
from nexo.pipeline.entries import BadEntry, Entry, decode_entry
from nexo.pipeline.streams import Raw, Stream, Streams
from nexo.ports import Address, MessageStore, Permission

log = structlog.get_logger()

PAUSE_S = 0.05
PAUSE_MAX_S = 1.0
UNTOLD = NexoError("server_busy")

Handle = Callable[[Stream, list[Raw]], Awaitable[None]]


class NotOwner(Exception):
    """This process stood still for so long that another one may have the shard, and may have decided otherwise
    and told that. Nothing is told that is not in the database."""


class Teller(Protocol):
    """The gateway, as those who save need it: it reaches connections on every instance."""

    def message_saved(self, sent: Sent, origin: object | None) -> None: ...  # `ports.Publisher`

    def message_provisional(self, message: Message, member_epoch: int, origin: Address | None) -> None: ...

    def message_withdrawn(self, message: Message, reason: str) -> None: ...

    def tell_connection(self, address: Address, event: events.Event) -> None: ...


class ShardWorker:
    def __init__(
        self,
        shard: int,
        epoch: int,
        streams: Streams,
        messages: MessageStore,
        teller: Teller,
        meter: SaveMeter,
        is_owner: Callable[[], bool],
    ) -> None:
        """`is_owner`: whether the shard is surely still this process's."""
        self._shard = shard
        self._fence = (shard, epoch)
        self._streams = streams
        self._settings = streams.settings
        self._messages = messages
        self._teller = teller
        self._meter = meter
        self._is_owner = is_owner
        self._tries: dict[str, int] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Finish what was taken, take nothing more."""
        self._stopping.set()

    async def run(self) -> None:
        accepted, to_save = self._streams.accepted(self._shard), self._streams.to_save(self._shard)
        if self._settings.deliver_before_saved:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._work((accepted, self._deliver)))
                tasks.create_task(self._work((to_save, self._save)))
        else:
            # what was delivered before, when that was switched on, is older than all that is only accepted
            await self._work((to_save, self._save), (accepted, self._save))

    async def _work(self, *sources: tuple[Stream, Handle]) -> None:
        """Take from streams in order."""
        streams = [stream for stream, _ in sources]
        size = self._settings.batch_size
        pause_s = PAUSE_S
        has_caught_up = False
        while not self._stopping.is_set():
            try:
                if not has_caught_up:
                    for stream, handle in sources:
                        await self._catch_up(stream, handle)
                    has_caught_up = True
                    continue
                found = await self._streams.read(streams, size, self._settings.block_ms)
                for (stream, handle), taken in zip(sources, found, strict=True):
                    if taken:
                        await handle(stream, taken)
                pause_s = PAUSE_S
            except NoGroup:
                has_caught_up = False
                with contextlib.suppress(BusDown):
                    await self._streams.make_groups(streams)
            except (BusDown, NotOwner):
                # Redis may have lost everything, or only the connection: look again at what is there
                has_caught_up = False
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause_s)
                pause_s = min(PAUSE_MAX_S, pause_s * 2)

    async def _catch_up(self, stream: Stream, handle: Handle) -> None:
        """First what others took and did not finish, then all that is there."""
        size = self._settings.batch_size
        taken = await self._streams.take_over(stream)
        while taken and not self._stopping.is_set():
            await handle(stream, taken[:size])
            taken = taken[size:]
            if not taken:
                (taken,) = await self._streams.read([stream], size, None)

    async def _decode(self, stream: Stream, taken: list[Raw]) -> list[Entry]:
        """What cannot be read can neither be saved nor answered: it is kept aside."""
        entries: list[Entry] = []
        for raw in taken:
            try:
                entries.append(decode_entry(raw.entry_id, raw.fields))
            except BadEntry as error:
                log.error("entry_unreadable", shard=self._shard, entry=raw.entry_id, error=str(error))
                self._meter.failures.add("save_fail")
                await self._streams.bury(stream, self._shard, raw, None, f"unreadable: {error}")
        return entries

    # -- delivering ------------------------------------------------------------------------------------------

    async def _deliver(self, stream: Stream, taken: list[Raw]) -> None:
        """Provisional copies to the receivers, then on to be saved. Who may not send delivers nothing; whether
        that is so is decided under the lock, when it is saved."""
        entries = await self._decode(stream, taken)
        try:
            answers = await self._messages.may_send([entry.draft for entry in entries])
        except NexoError:  # the database is slow or gone
            answers = [Permission(False, 0)] * len(entries)
        for entry, (is_allowed, member_epoch) in zip(entries, answers, strict=True):
            if is_allowed and not entry.draft.rejected:
                try:
                    self._teller.message_provisional(entry.provisional, member_epoch, entry.address)
                    entry.delivered_at = now_ms()
                except Exception:
                    self._meter.failures.add("deliver_fail")
                    log.exception("deliver_failed", server_msg_id=entry.draft.server_msg_id)
        await self._streams.move(self._shard, entries)

    # -- saving ----------------------------------------------------------------------------------------------

    async def _save(self, stream: Stream, taken: list[Raw]) -> None:
        left = await self._decode(stream, taken)
        raws = {raw.entry_id: raw for raw in taken}
        pause_s = PAUSE_S
        while left:
            outcomes = await self._submit(left)
            decided = list(zip(left, outcomes, strict=True))
            left = [entry for i, (entry, _) in enumerate(decided) if self._may_try_again(i, decided)]
            again = {entry.entry_id for entry in left}
            certain = [(entry, outcome) for entry, outcome in decided if entry.entry_id not in again]
            if not self._is_owner() and any(isinstance(outcome, NexoError) for _, outcome in certain):
                raise NotOwner
            await self._settle(stream, certain, raws)
            if left:
                if self._stopping.is_set():
                    return  # the next owner finds them
                await asyncio.sleep(pause_s)
                pause_s = min(PAUSE_MAX_S, pause_s * 2)

    async def _submit(self, entries: list[Entry]) -> list[Sent | NexoError]:
        """All of them to the committer, in order; whatever it has no room for comes again."""
        outcomes: list[Sent | NexoError] = [UNTOLD] * len(entries)
        waiting = 0
        done = asyncio.Event()

        def answer(i: int) -> Callable[[Sent | NexoError], None]:
            def note(outcome: Sent | NexoError) -> None:
                nonlocal waiting
                outcomes[i] = outcome
                waiting -= 1
                if not waiting:
                    done.set()

            return note

        for i, entry in enumerate(entries):
            entry.draft.fence = self._fence
            try:
                self._messages.submit(entry.draft, answer(i))
            except NexoError:
                break
            waiting += 1
        if waiting:
            await done.wait()
        return outcomes

    def _may_try_again(self, i: int, decided: Sequence[tuple[Entry, Sent | NexoError]]) -> bool:
        entry, outcome = decided[i]
        if isinstance(outcome, Sent):
            return False
        if outcome.name != "internal_error":
            return outcome.row.retry
        # Something about this message, or about the database. Never after something that was sent behind it.
        tries = self._tries[entry.entry_id] = self._tries.get(entry.entry_id, 0) + 1
        overtaken = any(
            isinstance(end, Sent)
            and other.draft.sender_id == entry.draft.sender_id
            and other.draft.conversation_id == entry.draft.conversation_id
            for other, end in decided[i + 1 :]
        )
        if tries < self._settings.max_tries and not overtaken:
            return True
        del self._tries[entry.entry_id]
        return False

    async def _settle(
        self, stream: Stream, certain: list[tuple[Entry, Sent | NexoError]], raws: dict[str, Raw]
    ) -> None:
        """Tell everybody, then let the entries go. Told twice is harmless, not told at all is not."""
        if not certain:
            return
        now = now_ms()
        states: list[tuple[Entry, str, str]] = []
        buried: list[tuple[Entry, str]] = []
        for entry, outcome in certain:
            self._publish(entry, outcome)
            self._meter.lag.observe(max(0, now - entry.accepted_at) / 1000)
            if not isinstance(outcome, NexoError):
                states.append((entry, "saved", ""))
            elif outcome.name == "internal_error":
                buried.append((entry, outcome.detail or outcome.name))
            else:
                states.append((entry, "refused", outcome.name))
        addresses: dict[str, Address | None] = {}

        async def finish() -> None:
            found = await self._streams.finish(stream, states)
            addresses.update((entry.entry_id, address) for (entry, _, _), address in zip(states, found, strict=True))
            for entry, reason in buried:
                raw = raws[entry.entry_id]
                addresses[entry.entry_id] = await self._streams.bury(stream, self._shard, raw, entry.draft, reason)

        await self._until_told(finish)
        for entry, outcome in certain:
            address = addresses[entry.entry_id]
            if address is not None and address != entry.address:  # it was sent again, from another connection
                self._teller.tell_connection(address, outcome_event(entry.draft, outcome))

    def _publish(self, entry: Entry, outcome: Sent | NexoError) -> None:
        draft = entry.draft
        assert draft.server_msg_id is not None
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

    async def _until_told(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Redis has to know before anything else of this shard is done. Gone for good, or told to stop: the next
        owner finds the entry and, in the database, what became of it."""
        pause_s = PAUSE_S
        while True:
            try:
                await tell()
                return
            except BusDown:
                self._meter.failures.add("publish_fail")
                if self._stopping.is_set():
                    raise
                await asyncio.sleep(pause_s)
                pause_s = min(PAUSE_MAX_S, pause_s * 2)
