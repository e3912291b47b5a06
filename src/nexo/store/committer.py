"""The group committer: whatever waits is written in one transaction, and everybody gets an answer.

Order is kept by structure. `submit` puts a draft into one queue, at once; one batch at a time is under way
(on SQLite a second one stands ready behind the writer thread, and takes what waits when its turn comes, but
nothing while the one before it is not committed). A conversation that somebody else holds, or that has to be
created first, gets a lane: its drafts wait there in order, away from the others, until the lane is empty.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable

import structlog
from msgspec import Struct

from nexo.core.model import Draft, Kind, Sent
from nexo.errors import NexoError
from nexo.ids import IdGenerator
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.sending import SendMeter
from nexo.store.batch import HotSql, Outcome, Skipped, write_batch
from nexo.store.conversations import create_singles
from nexo.store.engine import UNKNOWN_GIVE_UP_S, CommitUnknown, Conflict, Engine, Script, StoreError, Transient
from nexo.store.sql import Sql

log = structlog.get_logger()

Answer = Sent | NexoError
Place = tuple[str, str]  # sender, conversation
SKIPS_BEFORE_LANE = 3
LOOK_FIRST_S = 2.0  # after a retry more of them are likely: a batch that has to come again costs double
CREATED_AT_ONCE = 200  # single chats in one transaction: it holds no lock that others wait for long


class Pending(Struct, eq=False):
    draft: Draft
    answer: Callable[[Answer], None]
    since: float
    skips: int = 0
    unknown_since: float | None = None  # a transaction with it may have been committed unheard

    def is_late(self, now: float, deadline_s: float) -> bool:
        if self.draft.fence is not None:  # it was accepted: nobody waits at the door, and nobody sends it again
            return False
        if self.unknown_since is not None:  # not to be refused: it may be stored
            return now - self.unknown_since >= UNKNOWN_GIVE_UP_S
        return now - self.since >= deadline_s


class Settings(Struct, frozen=True):
    batch_max: int = 1024
    queue_max: int = 20_000
    deadline_s: float = 3.0
    linger_s: float = 0.0
    lanes_max: int = 4  # blocked conversations that are tried at the same time


class Committer:
    def __init__(
        self,
        engine: Engine,
        sql: Sql,
        hot_sql: HotSql,
        new_ids: IdGenerator,
        settings: Settings,
    ) -> None:
        self._engine = engine
        self._sql = sql
        self._hot_sql = hot_sql
        self._ids = new_ids
        self._settings = settings
        self.meter = SendMeter()
        self._waiting: deque[Pending] = deque()
        self._lanes: dict[str, deque[Pending]] = {}
        self._lock = threading.Lock()  # SQLite's writer thread takes from the queue and puts back, too
        self._open: _Batch | None = None  # has taken drafts and is not committed
        self._failed: _Batch | None = None  # was found open when its turn was over: nothing may overtake it
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lane_slots = asyncio.Semaphore(settings.lanes_max)
        self._loop: asyncio.AbstractEventLoop
        self._expiry: asyncio.TimerHandle | None = None
        self.look_first_until = 0.0
        self._ready = False  # a batch stands ready and has not taken anything yet
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    # -- the callers' side ---------------------------------------------------------------------------

    def submit(self, draft: Draft, answer: Callable[[Answer], None]) -> None:
        """Queue a draft. The order of calls is the order in the conversation; `answer` is called once,
        on the event loop, never from inside this call."""
        if self._under_way >= self._settings.queue_max:
            self.meter.queue_full += 1
            raise NexoError("server_busy", "Too many sends are waiting to be written", retry_after_ms=1000)
        if not self._under_way:
            self._idle.clear()
        self._under_way += 1
        self._waiting.append(Pending(draft, answer, time.monotonic()))
        if not self._ready:  # else a batch that has not begun yet will take it
            self._wake.set()
        if self._expiry is None:
            self._expiry = asyncio.get_running_loop().call_later(self._settings.deadline_s, self._expire)

    async def send(self, draft: Draft) -> Sent:
        """As `submit`, for one who wants to wait. Giving up waiting does not take the send back."""
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(outcome: Answer) -> None:
            if not done.done():
                done.set_result(outcome)

        self.submit(draft, answer)
        outcome = await done
        if isinstance(outcome, NexoError):
            raise outcome
        return outcome

    @property
    def under_way(self) -> int:
        """Sends that were taken and not answered yet."""
        return self._under_way

    def samples(self) -> Iterable[Sample]:
        yield from self.meter.samples()
        yield f.QUEUE(self._under_way, "sends")
        yield f.QUEUE_LIMIT(self._settings.queue_max, "sends")
        yield f.QUEUE(len(self._lanes), "lanes")

    # -- life ----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Two batches in turn keep SQLite's writer thread busy. On a server they could overtake each other.
        for _ in range(2 if self._engine.name == "sqlite" else 1):
            self._spawn(self._work())

    async def stop(self, timeout_s: float = 10.0) -> None:
        """Answer what is under way, then end."""
        try:
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        except TimeoutError:
            log.warning("committer_stopped_busy", under_way=self._under_way)
        if self._expiry is not None:
            self._expiry.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- the main way --------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            # a batch that has not begun yet will take it
            if self._ready or self._failed is not None or not self._waiting:
                self._wake.clear()
                continue
            self._ready = True
            if self._settings.linger_s and len(self._waiting) < self._settings.batch_max:
                await asyncio.sleep(self._settings.linger_s)
            batch = _Batch(self)
            await self._commit(batch)
            self._close(batch)
            if self._waiting:
                self._wake.set()

    def _take(self, batch: _Batch) -> list[Pending]:
        """What waits, up to the bound; nothing while an earlier batch may have to come again."""
        with self._lock:
            self._ready = False
            if self._open is not None:
                self._failed = self._open
                return []
            self._open = batch
            waiting = self._waiting
            # one by one: `submit` may add at the other end meanwhile
            taken = [waiting.popleft() for _ in range(min(self._settings.batch_max, len(waiting)))]
            return self._divert(taken) if self._lanes else taken

    def _close(self, batch: _Batch) -> None:
        """It is committed, or will never be: the next one may take."""
        with self._lock:
            if self._open is batch:
                self._open = None
            if self._failed is batch:
                self._failed = None

    def _divert(self, items: list[Pending]) -> list[Pending]:
        """Drafts of a conversation in a lane go there; the others come back. Call with the lock held."""
        kept = []
        for pending in items:
            lane = self._lanes.get(pending.draft.conversation_id)
            if lane is None:
                kept.append(pending)
            else:
                lane.append(pending)
        return kept

    async def _commit(self, batch: _Batch) -> None:
        """See a batch through to an answer for each of its drafts."""
        conflicts = 0
        pause_s = 0.005
        while True:
            started = time.monotonic()
            try:
                outcomes = await self._engine.write_once(batch.script, committed=batch.committed)
            except CommitUnknown as error:
                log.warning("commit_unknown", error=str(error), size=len(batch.items))
                self.meter.troubles.add("unknown")
                for pending in batch.items:
                    pending.unknown_since = pending.unknown_since or started
            except (Transient, NexoError) as error:  # the latter: there are no ids for a moment
                log.info("batch_again", error=str(error), size=len(batch.items))
                self.meter.troubles.add("again")
                batch.error = str(error)
            except Conflict as error:
                # most likely a retry, or the same client_msg_id from another process: a look finds its row
                conflicts += batch.look_first
                batch.look_first = True
                self.look_first_until = time.monotonic() + LOOK_FIRST_S
                self.meter.troubles.add("conflict")
                if conflicts > 2:
                    await self._divide(batch, error)
                    return
                continue
            except Exception as error:
                if batch.taken:
                    await self._divide(batch, error)
                    return
                log.error("batch_not_begun", error=f"{type(error).__name__}: {error}")
            else:
                self._settle(batch, outcomes)
                if batch.only_locked:
                    await asyncio.sleep(0.002)
                return
            self._refuse_late(batch)
            if batch.taken and not batch.items:
                return
            await asyncio.sleep(random.uniform(0.5, 1) * pause_s)
            pause_s = min(0.25, pause_s * 2)

    async def _divide(self, batch: _Batch, error: Exception) -> None:
        """Something in this batch cannot be written: find it, so that its neighbours are."""
        items = batch.items
        self.meter.troubles.add("divided")
        if len(items) == 1:
            draft = items[0].draft
            log.error(
                "send_failed",
                error=f"{type(error).__name__}: {error}",
                conversation_id=draft.conversation_id,
                sender_id=draft.sender_id,
                client_msg_id=draft.client_msg_id,
                exc_info=None if isinstance(error, StoreError) else error,
            )
            self._answer_all(items, "internal_error", "The message could not be written")
            return
        middle = len(items) // 2
        for part in (items[:middle], items[middle:]):
            with self._lock:
                left = self._divert(part)
            half = _Batch(self, items=left)
            half.look_first = True
            half.wait = True  # nothing may be skipped here: its successors are in the other half
            await self._commit(half)

    def _put_back(self, skipped: list[tuple[Pending, Skipped]]) -> None:
        """What a batch could not decide waits again, before anything that was submitted after it."""
        again: list[Pending] = []
        missing: list[str] = []
        with self._lock:
            for pending, reason in skipped:
                pending.skips += 1
                name = pending.draft.conversation_id
                locked_briefly = reason is Skipped.LOCKED and pending.skips < SKIPS_BEFORE_LANE
                if name in self._lanes:
                    self._lanes[name].append(pending)
                elif reason is Skipped.AGAIN or locked_briefly:
                    again.append(pending)
                else:
                    self._lanes[name] = deque([pending])
                    if reason is Skipped.MISSING:
                        missing.append(name)
                    else:
                        self._loop.call_soon_threadsafe(self._start_lane, name)
            self._waiting.extendleft(reversed(again))
        for start in range(0, len(missing), CREATED_AT_ONCE):
            self._loop.call_soon_threadsafe(self._start_creating, missing[start : start + CREATED_AT_ONCE])

    def _settle(self, batch: _Batch, outcomes: list[Answer]) -> None:
        if not batch.items:
            return
        meter = self.meter
        meter.committed_at = batch.committed_at
        for pending, outcome in zip(batch.items, outcomes, strict=True):
            try:  # as `_call` does it: one more call for each message counts here
                pending.answer(outcome)
            except Exception:
                log.exception("answer_failed", client_msg_id=pending.draft.client_msg_id)
        self._done(len(outcomes))
        since = [pending.since for pending in batch.items]
        meter.decided(since, batch.begun_at, batch.committed_at)
        fresh = [outcome.fresh for outcome in outcomes if isinstance(outcome, Sent)]
        saved = sum(fresh)
        meter.results["saved"] += saved
        meter.results["repeated"] += len(fresh) - saved
        meter.results["refused"] += len(outcomes) - len(fresh)
        # what the answers led to is written before this: it was put on the loop before
        self._loop.call_soon(self._handed_over, since, batch.committed_at)

    def _handed_over(self, since: list[float], committed_at: float) -> None:
        self.meter.answered(since, committed_at, time.monotonic())

    # -- lanes ---------------------------------------------------------------------------------------

    def _start_lane(self, name: str) -> None:
        self._spawn(self._work_lane(name))

    def _start_creating(self, names: list[str]) -> None:
        self._spawn(self._create(names))

    async def _create(self, names: list[str]) -> None:
        """Make the single chats that a batch found missing, all in one transaction, and write what waits for
        them together. Where that fails, each goes on by itself and learns its own reason."""
        try:
            await self._engine.write_once(lambda: create_singles(self._sql, names))
        except (StoreError, NexoError):
            for name in names:
                self._start_lane(name)
            return
        while self._any_in_lanes(names):
            batch = _Batch(self, lambda: self._empty_lanes(names))
            batch.wait = True
            await self._commit(batch)

    def _any_in_lanes(self, names: list[str]) -> bool:
        """False closes the lanes."""
        with self._lock:
            if any(self._lanes[name] for name in names):
                return True
            for name in names:
                del self._lanes[name]
            return False

    def _empty_lanes(self, names: list[str]) -> list[Pending]:
        items: list[Pending] = []
        with self._lock:
            for name in names:
                if len(items) < self._settings.batch_max:
                    items += self._lanes[name]
                    self._lanes[name].clear()
        return items

    async def _work_lane(self, name: str) -> None:
        """One conversation by itself: create it where needed, wait for its lock, write, until empty."""
        async with self._lane_slots:
            while first := self._first_in_lane(name):
                if first.draft.kind == Kind.SINGLE:
                    try:
                        await self._engine.write_once(lambda: create_singles(self._sql, [name]))
                    except (Transient, CommitUnknown, Conflict):
                        await asyncio.sleep(0.02)
                    except StoreError as error:
                        log.error("create_conversation_failed", error=str(error))
                        self._answer_all(self._empty_lane(name), "internal_error", "The chat could not be created")
                        continue
                    except NexoError as error:
                        for pending in self._empty_lane(name):
                            _call(pending, error)
                            self._done(1)
                            self.meter.results.add("refused")
                        continue
                batch = _Batch(self, lambda: self._empty_lane(name))
                batch.wait = True
                await self._commit(batch)

    def _first_in_lane(self, name: str) -> Pending | None:
        """None closes the lane."""
        with self._lock:
            if lane := self._lanes[name]:
                return lane[0]
            del self._lanes[name]
            return None

    def _empty_lane(self, name: str) -> list[Pending]:
        with self._lock:
            items = list(self._lanes[name])
            self._lanes[name].clear()
        return items

    # -- refusals ------------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Refuse what waited too long, and with it what the same sender sent after it to the same place:
        a retry must not end up behind its successors."""
        self._expiry = None
        now = time.monotonic()
        late = self._remove_late(now, set())
        with self._lock:
            oldest = min((items[0].since for items in (self._waiting, *self._lanes.values()) if items), default=None)
        self._refuse(late)
        if self._under_way:
            delay = (now if oldest is None else oldest) + self._settings.deadline_s - now
            self._expiry = asyncio.get_running_loop().call_later(max(0.05, delay), self._expire)

    def _remove_late(self, now: float, places: set[Place]) -> list[Pending]:
        """Take what is late, or waits for one of these places, out of the queues."""
        deadline_s = self._settings.deadline_s
        late: list[Pending] = []
        with self._lock:
            # lanes first: what is in the main queue for the same place came later
            queues = (*self._lanes.values(), self._waiting)
            if places or any(items and now - items[0].since >= deadline_s for items in queues):
                for items in queues:
                    kept, refused = _split_late(items, now, deadline_s, places)
                    if refused:
                        items.clear()
                        items.extend(kept)
                        late += refused
        return late

    def _refuse_late(self, batch: _Batch) -> None:
        """Between two attempts nothing is written: late drafts can still be refused."""
        now = time.monotonic()
        places: set[Place] = set()
        batch.items, late = _split_late(batch.items, now, self._settings.deadline_s, places)
        if late:
            log.warning("sends_refused", error=batch.error, size=len(late))
            self._refuse(late + self._remove_late(now, places))

    def _refuse(self, late: list[Pending]) -> None:
        for pending in late:
            if pending.unknown_since is None:
                name, detail = "server_busy", "The database did not take the send in time; it was not saved"
                self.meter.results.add("late")
            else:
                self.meter.results.add("failed")
                name, detail = "internal_error", "The database went away while it was writing"
            _call(pending, NexoError(name, detail, retry_after_ms=1000))
        self._done(len(late))

    def _answer_all(self, items: list[Pending], name: str, detail: str) -> None:
        for pending in items:
            _call(pending, NexoError(name, detail, retry_after_ms=1000))
        self._done(len(items))
        self.meter.results.add("failed", len(items))

    def _done(self, count: int) -> None:
        self._under_way -= count
        if self._under_way == 0:
            self._idle.set()


class _Batch:
    """Drafts on their way into one transaction. They are taken when it begins, and stay for retries."""

    def __init__(
        self,
        committer: Committer,
        take: Callable[[], list[Pending]] | None = None,
        items: list[Pending] | None = None,
    ) -> None:
        self._committer = committer
        self._take = take
        self.taken = items is not None  # until then there is nothing to answer: the database was out of reach
        self.items = items or []  # without those that were put back
        self.only_locked = False  # nothing could be done
        self.wait = False
        self.look_first = False  # for retries, before anything is written
        self.error = ""  # why the last attempt failed
        self.begun_at = self.committed_at = 0.0

    def script(self) -> Script[list[Answer]]:
        if not self.taken:
            self.items = self._committer._take(self) if self._take is None else self._take()
            self.taken = True
        if not self.items:
            return []
        self.begun_at = time.monotonic()
        committer = self._committer
        drafts = [pending.draft for pending in self.items]
        uncertain = {i for i, pending in enumerate(self.items) if pending.unknown_since is not None}
        if uncertain or time.monotonic() < committer.look_first_until:
            self.look_first = True
        outcomes = yield from write_batch(
            committer._hot_sql,
            committer._ids,
            drafts,
            wait=self.wait,
            uncertain=uncertain,
            look_first=self.look_first,
        )
        return self._divide_skipped(outcomes)

    def _divide_skipped(self, outcomes: list[Outcome]) -> list[Answer]:
        """Put back what was not decided. Here, and not once it is committed: the next batch may begin
        before the event loop hears of this one."""
        items: list[Pending] = []
        answers: list[Answer] = []
        skipped: list[tuple[Pending, Skipped]] = []
        for pending, outcome in zip(self.items, outcomes, strict=True):
            if isinstance(outcome, Skipped):
                skipped.append((pending, outcome))
            else:
                items.append(pending)
                answers.append(outcome)
        if skipped:
            self.items = items
            self.only_locked = not items and all(reason is Skipped.LOCKED for _, reason in skipped)
            self._committer._put_back(skipped)
        return answers

    def committed(self) -> None:
        self.committed_at = time.monotonic()
        self._committer._close(self)


def _split_late(
    items: deque[Pending] | list[Pending], now: float, deadline_s: float, places: set[Place]
) -> tuple[list[Pending], list[Pending]]:
    """What may stay, and what is late or follows something late; `places` gets those it is late for."""
    kept: list[Pending] = []
    late: list[Pending] = []
    for pending in items:
        place = (pending.draft.sender_id, pending.draft.conversation_id)
        follows = place in places and pending.unknown_since is None and pending.draft.fence is None
        if pending.is_late(now, deadline_s) or follows:
            places.add(place)
            late.append(pending)
        else:
            kept.append(pending)
    return kept, late


def _call(pending: Pending, outcome: Answer) -> None:
    try:
        pending.answer(outcome)
    except Exception:
        log.exception("answer_failed", client_msg_id=pending.draft.client_msg_id)
