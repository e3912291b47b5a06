"""One shard's way from accepted to saved, by its present owner.

Entries are handed to the group committer in the order of the stream, so seq, permission, filter and idempotency
are those of a direct send. An entry leaves its stream when its outcome is certain and was told; whoever owns the
shard after a crash finds it there, and in the database what was saved already.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence

import structlog

from nexo.bus.redis_link import BusDown, NoGroup
from nexo.core.model import Draft
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.metrics.pipeline import SaveMeter
from nexo.pipeline.entries import BadEntry, Entry, decode_entry
from nexo.pipeline.reading import Reading
from nexo.pipeline.settling import PAUSE_MAX_S, PAUSE_S, NotOwner, Settling, Teller
from nexo.pipeline.streams import Raw, Stream, Streams
from nexo.ports import Permission

log = structlog.get_logger()

LOOK_S = 5.0  # for entries that an earlier owner took after all

Handle = Callable[[Stream, list[Raw]], Awaitable[None]]
MaySend = Callable[[Sequence[Draft]], Awaitable[Sequence[Permission]]]


class ShardWorker:
    def __init__(
        self,
        shard: int,
        streams: Streams,
        reading: Reading,
        settling: Settling,
        teller: Teller,
        meter: SaveMeter,
        may_send: MaySend,
        is_owner: Callable[[], bool],
    ) -> None:
        """`is_owner`: whether the shard is surely still this process's."""
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
                if not self._is_owner():  # the present one would never see what is taken here
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
                # Redis may have lost everything, or only the connection: look again at what is there
                has_caught_up = False
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause_s)
                pause_s = min(PAUSE_MAX_S, pause_s * 2)

    async def _catch_up(self, handle: Handle) -> None:
        """What others took and did not finish, and all of what was delivered already, which is older than anything
        that is only accepted. Whoever had the latter in hand cannot move it on any more, once it is taken over."""
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

    async def _decode(self, stream: Stream, taken: list[Raw]) -> list[tuple[Raw, Entry]]:
        """What cannot be read can neither be saved nor answered: it is kept aside."""
        entries: list[tuple[Raw, Entry]] = []
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
        """Provisional copies to the receivers, then on to be saved. Who may not send delivers nothing; whether
        that is so is decided under the lock, when it is saved."""
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
                    self._teller.message_provisional(entry.provisional, member_epoch, entry.address)
                    entry.delivered_at = now_ms()
                except Exception:
                    self._meter.failures.add("deliver_fail")
                    log.exception("deliver_failed", server_msg_id=entry.draft.server_msg_id)
        if not self._is_owner():
            raise NotOwner
        await self._save(self._to_save, await self._streams.move(self._shard, entries))
