"""The group committer: writes all waiting drafts in one transaction and answers each (docs/design/0004).

Order is kept by structure. `submit` puts a draft into one queue; one batch at a time is in progress (on SQLite a second
one waits behind the writer thread; it takes drafts when it starts, and none while the batch before it is not
committed). A conversation that another transaction holds, or that has to be created first, gets a lane: its drafts wait
there in order, apart from the queue, until the lane is empty.

An undecided draft is always in one of three places: the queue, the lane of its conversation, or the one batch that
holds drafts of its conversation. Drafts that a batch could not decide return to the queue or the lane by their number
of submission, so that both are in order at any moment. All drafts that were sent after a draft in a batch are found
there, to be refused with it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from functools import partial

import structlog

from nexo.background import Background
from nexo.core.model import Draft, Kind, Sent
from nexo.errors import NexoError
from nexo.ids import IdGenerator
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.sending import NOTED_MAX, SendMeter
from nexo.ports import Origin
from nexo.store.batch import HotSql, Outcome, SkipReason, Stored, write_batch, write_nothing
from nexo.store.conversations import create_singles
from nexo.store.engine import CommitUnknown, Conflict, Engine, Script, StoreError, Transient
from nexo.store.journal.recent import RecentBatches
from nexo.store.late_sends import LateSends
from nexo.store.pending import Answer, Bound, CommitterSettings, Lines, Pending, SenderKey, Waiter, call, split_late
from nexo.store.publish_seam import PublishSeam
from nexo.store.sql import Sql

log = structlog.get_logger()

SKIPS_BEFORE_LANE = 3
LOOK_FIRST_S = 2.0  # after a retry more retries are likely, and a batch that runs twice costs double
CREATED_AT_ONCE = 200  # single chats in one transaction: few, so that its locks are held briefly


class Committer:
    def __init__(
        self,
        engine: Engine,
        sql: Sql,
        hot_sql: HotSql,
        new_ids: IdGenerator,
        settings: CommitterSettings,
        seam: PublishSeam,
        background: Background,
    ) -> None:
        self._engine = engine
        self._background = background.branch()
        self._seam = seam
        self._sql = sql
        self._hot_sql = hot_sql
        self._settings = settings
        self._write_batch = partial(write_batch, hot_sql, new_ids, contacts_only=settings.contacts_only)
        self.meter = SendMeter()
        self.recent = RecentBatches()
        self._late = LateSends(self.meter)
        self._lines = Lines()
        self._waiting = self._lines.queue
        self._submitted = 0
        self._bound = Bound(settings.batch_max)
        self._open: _Batch | None = None  # has drafts and is not committed
        self._failed: _Batch | None = None  # still open when the next batch started: nothing may overtake it
        self._wake = asyncio.Event()
        self._lane_slots = asyncio.Semaphore(settings.lanes_max)
        self._loop: asyncio.AbstractEventLoop
        self._expiry: asyncio.TimerHandle | None = None
        self.look_first_until = 0.0
        self._ready = False  # a batch is ready and has no drafts yet
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    # -- callers ---------------------------------------------------------------------------

    def submit(self, draft: Draft, origin: Origin) -> None:
        """Queues a draft. The order of calls is the order in the conversation; `origin.decided` is called once, on the
        event loop, never from inside this call."""
        if self._under_way >= self._settings.queue_max:
            self.meter.queue_full += 1
            raise NexoError("server_busy", "Too many sends are waiting to be written", retry_after_ms=1000)
        if not self._under_way:
            self._idle.clear()
        self._under_way += 1
        self._submitted = number = self._submitted + 1
        self._waiting.append(Pending(draft, origin, time.monotonic(), number))
        if not self._ready:  # else the ready batch will take it
            self._wake.set()
        if self._expiry is None:
            self._expiry = asyncio.get_running_loop().call_later(self._settings.deadline_s, self._expire)

    async def send(self, draft: Draft) -> Sent:
        """As `submit`; returns the outcome. Cancelling the wait cancels neither the send nor its publication."""
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.submit(draft, Waiter(done))
        outcome = await done
        if isinstance(outcome, NexoError):
            raise outcome
        return outcome

    @property
    def under_way(self) -> int:
        """Returns the number of sends that are not answered yet."""
        return self._under_way

    def samples(self) -> Iterable[Sample]:
        yield from self.meter.samples()
        yield f.QUEUE(self._under_way, "sends")
        yield f.QUEUE_LIMIT(self._settings.queue_max, "sends")
        yield f.QUEUE(len(self._lines.lanes), "lanes")

    # -- start and stop ----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Two alternating batches keep SQLite's writer thread busy. On a server they could overtake each other.
        for _ in range(self._engine.batches_ready):
            self._background.serve("committer", self._work)

    async def stop(self, timeout_s: float = 10.0) -> None:
        """Answer the sends in progress, then stop."""
        try:
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        except TimeoutError:
            log.warning("committer_stopped_busy", under_way=self._under_way)
        if self._expiry is not None:
            self._expiry.cancel()
        self._late.stop()
        await self._background.stop()

    # -- the queue --------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            # a ready batch will take the drafts
            if self._ready or self._failed is not None or not self._waiting:
                self._wake.clear()
                continue
            self._ready = True
            batch = _Batch(self, self._bound)
            try:
                if self._settings.linger_s and len(self._waiting) < self._settings.batch_max:
                    await asyncio.sleep(self._settings.linger_s)
                await self._commit(batch)
            except Exception:  # not when cancelled: the batch may still be written then
                self._end(batch)
                raise
            self._end(batch)

    def _end(self, batch: _Batch) -> None:
        """Let the next batch take drafts, whatever has ended this one; drafts that are still in it are answered."""
        if not batch.taken:
            self._ready = False
        self._close(batch)
        if batch.items:
            self._answer_all(batch.hand_out(), _not_written())
        if self._waiting:
            self._wake.set()

    def _take(self, batch: _Batch) -> list[Pending]:
        """Returns waiting drafts, up to the bound; none while an earlier batch may have to run again."""
        with self._lines.lock:
            self._ready = False
            if self._open is not None:
                self._failed = self._open
                return []
            self._open = batch
            return self._lines.take(self._bound.now)

    def _close(self, batch: _Batch) -> None:
        """Let the next batch take drafts: this one is committed, or will never be."""
        with self._lines.lock:
            if self._open is batch:
                self._open = None
            if self._failed is batch:
                self._failed = None

    async def _commit(self, batch: _Batch) -> None:
        """Write a batch: each of its drafts is answered, or waits again in its place. Raises what is unexpected before
        it has taken drafts."""
        try:
            await self._write(batch)
        except Exception:  # a defect of this code must not cost more than one batch
            if not batch.taken:  # its drafts would be tried again at once, and without an end
                raise
            log.exception("batch_abandoned", size=len(batch.items))
            self.meter.troubles.add("abandoned")
            self._answer_all(batch.hand_out(), _not_written())

    async def _write(self, batch: _Batch) -> None:
        conflicts = 0
        pause_s = 0.005
        while True:
            started = time.monotonic()
            try:
                await self._engine.write_once(batch.script, committed=batch.committed)
            except CommitUnknown as error:
                log.warning("commit_unknown", error=str(error), size=len(batch.items))
                self._late.error = str(error)
                self.meter.troubles.add("unknown")
                for pending in batch.items:
                    pending.unknown_since = pending.unknown_since or started
            except (Transient, NexoError) as error:  # NexoError: the lease for ids has ended
                log.info("batch_again", error=str(error), size=len(batch.items))
                self.meter.troubles.add("again")
                self._late.error = str(error)
            except Conflict as error:
                # most likely a retry, or the same client_msg_id from another process: look for its row first
                conflicts += batch.look_first
                batch.look_first = True
                self.look_first_until = time.monotonic() + LOOK_FIRST_S
                self.meter.troubles.add("conflict")
                if conflicts > 2:
                    self._divide(batch, error)
                    return
                continue
            except Exception as error:
                if batch.taken:
                    self._divide(batch, error)
                    return
                log.error("batch_not_begun", error=f"{type(error).__name__}: {error}")
            else:
                self._settle(batch)
                if batch.only_locked:
                    await asyncio.sleep(0.002)
                return
            self._refuse_late(batch)
            if batch.taken and not batch.items:
                return
            await asyncio.sleep(random.uniform(0.5, 1) * pause_s)
            pause_s = min(0.25, pause_s * 2)

    def _divide(self, batch: _Batch, error: Exception) -> None:
        """Find the draft that cannot be written: all wait again, and batches shrink until one draft fails alone."""
        self.meter.troubles.add("divided")
        items = batch.hand_out()
        if len(items) > 1:
            batch.bound.shrink(len(items))
            batch.put_back = True
            self._lines.put_back(items)
            return
        for pending in items:
            draft = pending.draft
            log.error(
                "send_failed",
                error=f"{type(error).__name__}: {error}",
                conversation_id=draft.conversation_id,
                sender_id=draft.sender_id,
                client_msg_id=draft.client_msg_id,
                exc_info=None if isinstance(error, StoreError) else error,
            )
        self._answer_all(items, _not_written())

    def _put_back(self, skipped: list[tuple[Pending, SkipReason]]) -> None:
        """Return undecided drafts to the queue or a lane, before all drafts that were submitted after them."""
        lanes: dict[str, SkipReason] = {}  # opened by this call
        for pending, reason in skipped:
            conversation_id = pending.draft.conversation_id
            pending.skips += reason is SkipReason.LOCKED
            is_open = conversation_id in lanes or conversation_id in self._lines.lanes
            if not is_open and (reason is SkipReason.MISSING or pending.skips >= SKIPS_BEFORE_LANE):
                lanes[conversation_id] = reason
        self._lines.put_back([pending for pending, _ in skipped], lanes)
        missing = [conversation_id for conversation_id, reason in lanes.items() if reason is SkipReason.MISSING]
        if locked := lanes.keys() - missing:
            self._loop.call_soon_threadsafe(self._start_lanes, locked)
        for start in range(0, len(missing), CREATED_AT_ONCE):
            self._loop.call_soon_threadsafe(self._start_creating, missing[start : start + CREATED_AT_ONCE])

    def _settle(self, batch: _Batch) -> None:
        """Report a committed batch to the seam, which answers the senders."""
        items, outcomes = batch.hand_out(), batch.outcomes
        if not items:
            return
        if batch.bound.is_reduced:
            batch.bound.grow()
        self._late.error = ""
        meter = self.meter
        meter.committed_at = batch.committed_at
        self._seam.saved([pending.origin for pending in items], outcomes)
        self._done(len(outcomes))
        since = [pending.since for pending in items]
        meter.batches.append((since, batch.begun_at, batch.committed_at))
        fresh = [outcome.fresh for outcome in outcomes if isinstance(outcome, Sent)]
        saved = sum(fresh)
        meter.results["saved"] += saved
        meter.results["repeated"] += len(fresh) - saved
        meter.results["refused"] += len(outcomes) - len(fresh)
        # runs after the socket writes of these answers, which were put on the loop before
        self._loop.call_soon(self._handed_over, since, batch.committed_at)

    def _handed_over(self, since: list[float], committed_at: float) -> None:
        self.meter.answers.append((since, committed_at, time.monotonic()))
        if len(self.meter.batches) + len(self.meter.flushes) >= NOTED_MAX:
            self.meter.count()

    # -- lanes ---------------------------------------------------------------------------------------

    def _start_lanes(self, conversation_ids: Iterable[str]) -> None:
        for conversation_id in conversation_ids:
            self._background.start("committer_lane", self._work_lane(conversation_id), detached=True)

    def _start_creating(self, conversation_ids: list[str]) -> None:
        self._background.start("create_conversations", self._create(conversation_ids), detached=True)

    async def _create(self, conversation_ids: list[str]) -> None:
        """Create the single chats that a batch found missing in one transaction, and write the drafts that wait for
        them together. Where that fails, each conversation is worked on alone and gets its own error."""
        try:
            await self._engine.write_once(lambda: create_singles(self._sql, conversation_ids))
            is_written = await self._write_together(conversation_ids)
        except (StoreError, NexoError):
            is_written = False
        except Exception:
            self._start_lanes(conversation_ids)
            raise
        if not is_written:
            self._start_lanes(conversation_ids)

    async def _write_together(self, conversation_ids: list[str]) -> bool:
        """Write these lanes until they are empty and closed. Returns False as soon as a batch puts drafts back."""
        bound = Bound(self._settings.batch_max)
        while self._lines.any_in_lanes(conversation_ids):
            batch = _Batch(self, bound, lambda: self._lines.take_lanes(conversation_ids, bound.now))
            batch.wait = True
            await self._commit(batch)
            if batch.put_back:
                return False
        return True

    async def _work_lane(self, conversation_id: str) -> None:
        """Write one lane until it is empty and closed. An unexpected error closes it too: nothing may be left that
        later sends to this conversation would wait behind."""
        try:
            async with self._lane_slots:
                await self._empty_lane(conversation_id)
        except Exception:
            self._answer_all(self._lines.close_lane(conversation_id), _not_written())
            raise

    async def _empty_lane(self, conversation_id: str) -> None:
        """Create the conversation where needed, wait for its lock, write, until no draft is left."""
        bound = Bound(self._settings.batch_max)
        while first := self._lines.first_in_lane(conversation_id):
            if first.draft.kind == Kind.SINGLE and not await self._create_one(conversation_id):
                continue
            batch = _Batch(self, bound, lambda: self._lines.take_lanes([conversation_id], bound.now))
            batch.wait = True
            await self._commit(batch)

    async def _create_one(self, conversation_id: str) -> bool:
        """Returns False when it cannot be created; the drafts in its lane are answered then."""
        try:
            await self._engine.write_once(lambda: create_singles(self._sql, [conversation_id]))
            return True
        except (Transient, CommitUnknown, Conflict):
            await asyncio.sleep(0.02)  # another instance may have created it: the next batch finds out
            return True
        except NexoError as error:
            refusal = error
        except Exception as error:
            unexpected = None if isinstance(error, StoreError) else error
            log.error("create_conversation_failed", error=f"{type(error).__name__}: {error}", exc_info=unexpected)
            refusal = NexoError("internal_error", "The chat could not be created", retry_after_ms=1000)
        self._answer_all(self._lines.take_lanes([conversation_id], self._settings.queue_max), refusal)
        return False

    # -- refusals ------------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Refuse drafts that waited too long, and later drafts of the same sender to the same conversation: a retry
        must not be stored behind its successors."""
        self._expiry = None
        now = time.monotonic()
        late = self._lines.remove_late(now, self._settings.deadline_s, set())
        oldest = self._lines.oldest()
        if late:
            self._late.note(len(late))
            self._refuse(late)
        if self._under_way:
            delay = (now if oldest is None else oldest) + self._settings.deadline_s - now
            self._expiry = asyncio.get_running_loop().call_later(max(0.05, delay), self._expire)

    def _refuse_late(self, batch: _Batch) -> None:
        """Refuse late drafts between two attempts, while nothing of them is written."""
        now = time.monotonic()
        places: set[SenderKey] = set()
        batch.items, late = split_late(batch.items, now, self._settings.deadline_s, places)
        if late:
            late += self._lines.remove_late(now, self._settings.deadline_s, places)
            self._late.note(len(late))
            self._refuse(late)

    def _refuse(self, late: list[Pending]) -> None:
        self._late.refuse(late)
        self._done(len(late))

    def _answer_all(self, items: list[Pending], error: NexoError) -> None:
        """Answer drafts with an error. After an error that clients retry, later drafts of the same sender to the same
        conversation are refused too: they must not be stored before the retry."""
        followers: list[Pending] = []
        if items and error.row.retry:
            places = {pending.place for pending in items}
            followers = self._lines.remove_late(time.monotonic(), self._settings.deadline_s, places)
        for pending in items:
            call(pending, error)
        self._done(len(items))
        self.meter.results.add("failed" if error.row.retry else "refused", len(items))
        self._refuse(followers)

    def _done(self, count: int) -> None:
        self._under_way -= count
        if self._under_way == 0:
            self._idle.set()


class _Batch:
    """The drafts of one transaction. They are taken when it begins, and kept for further attempts."""

    def __init__(self, committer: Committer, bound: Bound, take: Callable[[], list[Pending]] | None = None) -> None:
        self._committer = committer
        self._take = take
        self.bound = bound
        self.taken = False  # before that there is nothing to answer: the database was unreachable
        self.items: list[Pending] = []  # neither answered nor put back
        self.put_back = False  # some drafts were put back
        self.only_locked = False  # every draft was skipped because of a lock
        self.wait = False
        self.look_first = False  # look for retries before writing
        self.outcomes: list[Answer] = []  # of `items`, once they are committed
        self.begun_at = self.committed_at = 0.0
        self._stored: list[Stored] = []  # by the last attempt

    def hand_out(self) -> list[Pending]:
        """Returns the drafts, to answer or requeue them, and keeps none."""
        items, self.items = self.items, []
        return items

    def script(self) -> Script[list[Outcome]]:
        """Returns the script of the transaction, without a generator around it that every statement would pass."""
        if not self.taken:
            self.items = self._committer._take(self) if self._take is None else self._take()
            self.taken = True
        if not self.items:
            return write_nothing()
        self.begun_at = time.monotonic()
        self._stored = []
        committer = self._committer
        drafts = [pending.draft for pending in self.items]
        uncertain = {i for i, pending in enumerate(self.items) if pending.unknown_since is not None}
        if uncertain or time.monotonic() < committer.look_first_until:
            self.look_first = True
        return committer._write_batch(
            drafts, self._stored, wait=self.wait, uncertain=uncertain, look_first=self.look_first
        )

    def committed(self, outcomes: list[Outcome]) -> None:
        """Put undecided drafts back. Called on the thread of the commit, before the next batch begins, so that they
        are in their places when it takes drafts."""
        self.committed_at = time.monotonic()
        for stored in self._stored:
            self._committer.recent.add(*stored)
        items: list[Pending] = []
        answers = self.outcomes
        skipped: list[tuple[Pending, SkipReason]] = []
        for pending, outcome in zip(self.items, outcomes, strict=True):
            if isinstance(outcome, SkipReason):
                skipped.append((pending, outcome))
            else:
                items.append(pending)
                answers.append(outcome)
        if skipped:
            self.items = items
            self.put_back = True
            self.only_locked = not items and all(reason is SkipReason.LOCKED for _, reason in skipped)
            self._committer._put_back(skipped)
        self._committer._close(self)


def _not_written() -> NexoError:
    return NexoError("internal_error", "The message could not be written", retry_after_ms=1000)
