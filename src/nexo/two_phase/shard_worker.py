"""The worker of one shard, in the process that owns it: reads accepted entries and has them saved.

Entries are submitted to the group committer in the order of the stream, so seq, permission, filter and idempotency
are those of a direct send. An entry leaves its stream when its outcome is certain and published; after a crash the
next owner finds it there, and in the database what is saved already.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence

import structlog

from nexo.bus.redis_client import BusDown, NoGroup
from nexo.core.model import Draft
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.metrics.two_phase import SaveMeter
from nexo.ports import Permission
from nexo.two_phase.entries import BadEntry, StreamEntry, decode_entry
from nexo.two_phase.shard_reader import ShardReader
from nexo.two_phase.shard_saver import PAUSE_MAX_S, PAUSE_S, NotOwner, ShardSaver, Teller
from nexo.two_phase.streams import Raw, Stream, Streams

log = structlog.get_logger()

LOOK_S = 5.0  # how often to look for entries that an earlier owner has taken late

Handle = Callable[[Stream, list[Raw]], Awaitable[None]]
MaySend = Callable[[Sequence[Draft]], Awaitable[Sequence[Permission]]]


class ShardWorker:
    def __init__(
        self,
        shard: int,
        streams: Streams,
        reading: ShardReader,
        settling: ShardSaver,
        teller: Teller,
        meter: SaveMeter,
        may_send: MaySend,
        is_owner: Callable[[], bool],
    ) -> None:
        """`is_owner` returns whether this process surely still owns the shard."""
        self._shard = shard
        self._streams = streams
        self._settings = streams.settings
        self._reading = reading
        self._settling = settling
        self._teller = teller
        self._meter = meter
        self._may_send = may_send
        self._is_owner = is_owner
        self._accepted, self._to_save = streams.accepted(shard), streams.to_save(shard)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Finish what was taken, take nothing more."""
        self._stopping.set()
        self._settling.stop()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            settling = tasks.create_task(self._settling.run())
            await self._work()
            await self._settling.rest()
            settling.cancel()

    async def _work(self) -> None:
        handle = self._deliver if self._settings.deliver_before_saved else self._save
        pause_s = PAUSE_S
        has_caught_up = False
        look_at = 0.0
        while not self._stopping.is_set():
            try:
                if not self._is_owner():  # the present owner would never see entries that are taken here
                    raise NotOwner
                if not has_caught_up:
                    await self._settling.rest()
                    await self._catch_up(handle)
                    has_caught_up, look_at = True, time.monotonic() + LOOK_S
                elif time.monotonic() >= look_at:
                    has_caught_up = not await self._streams.has_strays((self._to_save, self._accepted))
                    look_at = time.monotonic() + LOOK_S
                else:
                    taken = await self._reading.next(self._accepted, self._is_owner)
                    if taken:
                        await handle(self._accepted, taken)
                pause_s = PAUSE_S
            except NoGroup:
                has_caught_up = False
                with contextlib.suppress(BusDown):
                    await self._streams.make_groups([self._to_save, self._accepted])
            except (BusDown, NotOwner):
                # Redis may have lost everything, or only the connection: catch up again
                has_caught_up = False
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause_s)
                pause_s = min(PAUSE_MAX_S, pause_s * 2)

    async def _catch_up(self, handle: Handle) -> None:
        """Save what earlier owners took and did not finish, and all entries that were delivered already, which are
        older than those only accepted. Once an entry is taken over, its earlier owner cannot move it any more."""
        size = self._settings.batch_size
        accepted = await self._streams.take_over(self._accepted)
        to_save = await self._streams.take_over(self._to_save)
        while to_save and not self._stopping.is_set():
            await self._save(self._to_save, to_save[:size])
            to_save = to_save[size:]
        is_more = True
        while is_more and not self._stopping.is_set():
            (to_save,) = await self._streams.read([self._to_save], size, None)
            await self._save(self._to_save, to_save)
            is_more = bool(to_save)
        while accepted and not self._stopping.is_set():
            await handle(self._accepted, accepted[:size])
            accepted = accepted[size:]

    async def _decode(self, stream: Stream, taken: list[Raw]) -> list[tuple[Raw, StreamEntry]]:
        """Returns the decoded entries. One that cannot be decoded is moved to the dead letters."""
        entries: list[tuple[Raw, StreamEntry]] = []
        for raw in taken:
            try:
                entries.append((raw, decode_entry(raw.entry_id, raw.fields)))
            except BadEntry as error:
                log.error("entry_unreadable", shard=self._shard, entry=raw.entry_id, error=str(error))
                self._meter.failures.add("save_fail")
                await self._streams.bury(stream, self._shard, raw, None, f"unreadable: {error}")
        return entries

    async def _save(self, stream: Stream, taken: list[Raw]) -> None:
        await self._settling.save(stream, await self._decode(stream, taken))

    async def _deliver(self, stream: Stream, taken: list[Raw]) -> None:
        """Push provisional copies to the receivers, then have the entries saved. Nothing is pushed for a sender that is
        not known to be allowed; the lock under which the message is saved decides."""
        entries = [entry for _, entry in await self._decode(stream, taken)]
        if not entries:
            return
        try:
            answers = await self._may_send([entry.draft for entry in entries])
        except NexoError:  # the database is slow or gone
            answers = [Permission(False, 0)] * len(entries)
        for entry, (is_allowed, member_epoch) in zip(entries, answers, strict=True):
            if is_allowed and not entry.draft.rejected:
                try:
                    self._teller.provisional(entry.provisional, member_epoch, entry.address)
                    entry.delivered_at = now_ms()
                except Exception:
                    self._meter.failures.add("deliver_fail")
                    log.exception("deliver_failed", server_msg_id=entry.draft.server_msg_id)
        if not self._is_owner():
            raise NotOwner
        await self._save(self._to_save, await self._streams.move(self._shard, entries))
