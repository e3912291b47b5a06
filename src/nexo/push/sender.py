"""Sends the notes of one kind, on the instance that pushes.

What a note shows is composed right before each attempt. Notes stay in the database until their service has answered:
memory holds at most those that are being sent, however slow a service is. A server that failed lately gets one request
at a time, so that the rest of its kind is not slowed down.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import structlog

from nexo.core.push import ONLINE_MS, Composed, Note, NoteResult
from nexo.core.push_texts import message_payload, read_payload
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets, Tally
from nexo.push.ports import Delivered, OnlineUsers, Provider, PushRequest, PushStore

log = structlog.get_logger()

BATCH = 64
LOOK_S = 5.0  # between two looks for notes, when there is nothing to do and no one wakes it
ONLINE_AGAIN_MS = 3000  # between two looks at a user who is connected and does not acknowledge
LANE_AGAIN_MS = 1000  # a server has as many requests as it may have
PAUSES_S = (1.0, 3.0, 10.0, 30.0, 120.0, 600.0)
RETRY_MAX_S = 3600.0
FAILING_S = 60.0  # for which a server that failed gets one request at a time
LANES_MAX = 1000  # servers whose failures are remembered
FAILING_SHARE = 4  # all failing servers together get a quarter of the requests
BUSY_PAUSE_S = 1.0
WARN_EVERY_S = 30.0


class NoteSender:
    def __init__(
        self,
        store: PushStore,
        provider: Provider,
        presence: OnlineUsers,
        content: str,
        ttl_s: int,
        connections: int,
    ) -> None:
        self._store = store
        self._provider = provider
        self.kind = provider.kind
        self._presence = presence
        self._content = content
        self._ttl_s = ttl_s
        self._connections = connections
        self._woken = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._results: list[NoteResult] = []
        self._lanes: dict[str, int] = {}  # requests under way
        self._failing: OrderedDict[str, float] = OrderedDict()  # until when, by `time.monotonic`
        self._failing_tasks = 0
        self._warned_at = float("-inf")
        self._is_unsure = False  # notes may be taken that this instance does not know of
        self.outcomes = Tally({"sent": 0, "failed": 0})
        self.waiting = 0
        self.lag_s = 0.0
        self.is_working = False
        self._seconds = Buckets()

    def wake(self) -> None:
        """Look for notes now."""
        self._woken.set()

    async def run(self) -> None:
        """Send until it is cancelled."""
        try:
            self.is_working = True
            await self._retrying(self._store.release_all, self.kind)
            while True:
                self._woken.clear()
                try:
                    pause_s = await self._step()
                except NexoError as error:
                    log.warning("push_store_failed", kind=self.kind, error=str(error))
                    pause_s = BUSY_PAUSE_S
                if pause_s:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause_s):
                            await self._woken.wait()
        finally:
            self.is_working = False
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._tasks.clear()
            self._lanes.clear()
            self._failing_tasks = 0
            results, self._results = self._results, []
            if results:
                with contextlib.suppress(NexoError):
                    await self._store.finish(results)

    async def _step(self) -> float:
        """Store what was answered, and start more. Returns how long there is nothing to do."""
        await self._finish()
        room = min(BATCH, self._connections - len(self._tasks))
        if room <= 0:
            return LOOK_S
        due_ms, self.waiting = await self._store.next_due(self.kind)
        if due_ms is None or due_ms > 0:
            self.lag_s = 0.0
            return LOOK_S if due_ms is None else min(LOOK_S, due_ms / 1000)
        if self._is_unsure and not self._tasks:
            await self._store.release_all(self.kind)
            self._is_unsure = False
        try:
            notes = await self._store.claim(self.kind, room)
        except NexoError:
            self._is_unsure = True  # it may be committed all the same
            raise
        if notes:
            await self._work_on(notes)
        return 0.0 if notes else LOOK_S

    async def _work_on(self, notes: list[Note]) -> None:
        try:
            composed = await self._store.compose(notes)
            new = {one.target.user_id for one in composed if one.target is not None and one.is_new}
            online = await self._presence.online(new) if new else set()
        except NexoError:
            due_at = now_ms() + int(BUSY_PAUSE_S * 1000)
            self._results += [NoteResult(one, one.sent_seq, one.shown_seq, "", due_at, one.tries) for one in notes]
            raise
        for one in composed:
            self._decide(one, online)
        await self._finish()

    async def _finish(self) -> None:
        results, self._results = self._results, []
        if not results:
            return
        try:
            await self._store.finish(results)
        except NexoError:
            self._results = results + self._results
            raise

    def _decide(self, one: Composed, online: set[str]) -> None:
        note, at_ms = one.note, now_ms()
        done = NoteResult(note, max(note.sent_seq, note.want_seq), note.shown_seq, "")
        if one.target is None:
            self._skip("ended", done._replace(shown_seq=0))
        elif one.is_new and one.shown is not None:
            self.lag_s = max(0.0, (at_ms - note.made_at) / 1000)
            if one.target.user_id in online:
                if at_ms - note.made_at < ONLINE_MS:
                    self._skip("", NoteResult(note, note.sent_seq, note.shown_seq, "", at_ms + ONLINE_AGAIN_MS))
                else:
                    self._skip("online", done)
            else:
                payload = message_payload(one, one.shown, self._content, at_ms, quiet=False)
                seq = one.shown.seq  # it may be newer than what the note was made for
                shown = done._replace(shown_seq=seq, sent_seq=max(done.sent_seq, seq))
                self._start(one, payload, shown, is_urgent=True)
        elif one.is_gone and one.shown is not None:
            payload = message_payload(one, one.shown, self._content, at_ms, quiet=True)
            self._start(one, payload, done._replace(shown_seq=one.shown.seq), is_urgent=False)
        elif one.is_gone:
            self._start(one, read_payload(one, at_ms), done._replace(shown_seq=0), is_urgent=False)
        else:
            self._skip("not_needed", done)

    def _skip(self, word: str, result: NoteResult) -> None:
        if word:
            self.outcomes.add(word)
        self._results.append(result._replace(result=word.replace("_", " ")) if word else result)

    # -- requests --------------------------------------------------------------------------------------------

    def _start(self, one: Composed, payload: dict[str, Any], done: NoteResult, *, is_urgent: bool) -> None:
        assert one.target is not None
        lane = self._provider.lane_of(one.target)
        is_failing = self._failing.get(lane, 0.0) > time.monotonic()
        if is_failing and (self._lanes.get(lane, 0) or self._failing_tasks * FAILING_SHARE >= self._connections):
            note = one.note
            again_ms = now_ms() + LANE_AGAIN_MS
            self._results.append(NoteResult(note, note.sent_seq, note.shown_seq, "", again_ms, note.tries))
            return
        self._lanes[lane] = self._lanes.get(lane, 0) + 1
        self._failing_tasks += is_failing
        request = PushRequest(one.target, payload, self._ttl_s, is_urgent, one.note.shown_seq)
        task = asyncio.get_running_loop().create_task(self._send(request, done, lane, is_failing))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._woken.set()

    async def _send(self, request: PushRequest, done: NoteResult, lane: str, was_failing: bool) -> None:
        started = time.monotonic()
        try:
            answer = await self._provider.send(request)
        except Exception as error:
            log.exception("push_request_failed", kind=self.kind)
            answer = Delivered(False, type(error).__name__, retry_s=0.0)
        finally:
            self._failing_tasks -= was_failing
            left = self._lanes.pop(lane) - 1
            if left:
                self._lanes[lane] = left
        self._seconds.observe(time.monotonic() - started)
        await self._answered(request, answer, done, lane)

    async def _answered(self, request: PushRequest, answer: Delivered, done: NoteResult, lane: str) -> None:
        note = done.note
        if answer.is_taken:
            self.outcomes.add("cleared" if request.payload["kind"] == "read" else "sent")
            self._failing.pop(lane, None)
            self._results.append(done._replace(result=answer.detail, is_sent=True))
            return
        if answer.is_gone:
            self.outcomes.add("gone")
            await self._retrying(self._store.remove, request.target.push_id)
            return
        if answer.retry_s is None:
            self.outcomes.add("refused")
            if self._may_warn():
                log.warning("push_service_refused", kind=self.kind, answer=answer.detail)
            self._results.append(done._replace(result=answer.detail, shown_seq=note.shown_seq, is_sent=True))
            return
        self.outcomes.add("failed")
        self._note_failure(lane)
        if self._may_warn():
            log.warning("push_service_failed", kind=self.kind, answer=answer.detail)
        if now_ms() - note.made_at > self._ttl_s * 1000:
            self.outcomes.add("given_up")
            self._results.append(done._replace(result=f"given up: {answer.detail}", shown_seq=note.shown_seq))
            return
        pause_s = PAUSES_S[min(note.tries, len(PAUSES_S) - 1)] * random.uniform(0.8, 1.2)
        again_ms = now_ms() + int(1000 * min(RETRY_MAX_S, max(pause_s, answer.retry_s)))
        self._results.append(
            NoteResult(note, note.sent_seq, note.shown_seq, answer.detail, again_ms, note.tries + 1, True)
        )

    def _note_failure(self, lane: str) -> None:
        self._failing[lane] = time.monotonic() + FAILING_S
        self._failing.move_to_end(lane)
        while len(self._failing) > LANES_MAX:
            self._failing.popitem(last=False)

    def _may_warn(self) -> bool:
        now = time.monotonic()
        is_due = now - self._warned_at >= WARN_EVERY_S
        if is_due:
            self._warned_at = now
        return is_due

    async def _retrying(self, call: Any, argument: Any) -> None:
        """Run a change until the database has taken it."""
        while True:
            try:
                await call(argument)
                return
            except NexoError as error:
                log.warning("push_store_failed", kind=self.kind, error=str(error))
                await asyncio.sleep(BUSY_PAUSE_S)

    def samples(self) -> Iterable[Sample]:
        for word, count in self.outcomes.items():
            yield f.PUSH_NOTIFICATIONS(count, self.kind, word)
        yield f.PUSH_SECONDS(self._seconds, self.kind)
        yield f.PUSH_IN_FLIGHT(len(self._tasks), self.kind)
        yield f.PUSH_IN_FLIGHT_LIMIT(self._connections, self.kind)
        if self.is_working:
            yield f.PUSH_WAITING(self.waiting, self.kind)
            yield f.PUSH_LAG(self.lag_s, self.kind)
