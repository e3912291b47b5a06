"""The events of one webhook between journal and receiver: which are sent next, and up to where all are taken. Pure.

Events of one conversation are sent one request after another, in order. Other conversations go side by side: while
there is a free connection a request holds one conversation; under load several share one, and when many wait, requests
are filled. After a failure each of them is repeated by itself, so that a conversation
which the receiver refuses holds up no other. When several requests in a row fail, the receiver counts as down: one
request at a time tries it until one is taken.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct

from nexo.core.journal import Place

EVENTS_MAX = 2000  # that are not taken
BYTES_MAX = 8 << 20
PAGES_MAX = 5000  # before adjacent ones that are done are joined: then there are fewer than two per event
REQUEST_EVENTS = 200
REQUEST_BYTES = 256 * 1024
FILLED_FROM = 50  # events that wait: from here on requests are filled
RUN_EVENTS = 50
DOWN_AFTER = 4  # failures in a row
FRESH_PAUSE_S = 1.0  # while the receiver is down, between a failure and an attempt with other conversations
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0


class WindowPage(Struct):
    """A page of the journal: what lies between two places."""

    start: Place
    end: Place
    left: int = 0  # events that are not taken
    at: int = 0  # the time of its first event


class WindowRun(Struct):
    """Events of one conversation that follow each other on one page: handled as one, because there are many."""

    key: str  # what is kept in order: the conversation, otherwise the user
    at: int  # the time of the first
    read_at: float
    page: WindowPage
    event_ids: list[str]
    text: bytes  # JSON of all of them, separated by commas
    size: int  # bytes when it was added to the window


class _Queue(Struct):
    runs: deque[WindowRun]
    failures: int = 0


class Window:
    def __init__(self, place: Place) -> None:
        self.place = place  # everything before it was taken
        self.count = 0
        self._sent = 0  # of them are in requests
        self._bytes = 0
        self._pages: deque[WindowPage] = deque()
        self._queues: dict[str, _Queue] = {}
        self._ready: deque[str] = deque()
        self._delayed: list[tuple[float, str]] = []
        self._failing: dict[str, float] = {}  # since when, oldest first
        self._failed_in_a_row = 0
        self._fresh_at = 0.0
        self._requests = 0

    @property
    def is_full(self) -> bool:
        return self.count >= EVENTS_MAX or self._bytes >= BYTES_MAX

    @property
    def is_down(self) -> bool:
        return self._failed_in_a_row >= DOWN_AFTER

    @property
    def failing_since(self) -> float:
        """Returns when the oldest event that waits after a failure failed first; 0: none waits."""
        return next(iter(self._failing.values()), 0.0)

    @property
    def oldest_at(self) -> int:
        """Returns the time of the oldest event that is not taken; 0: all are."""
        return self._pages[0].at if self._pages else 0

    def add(self, page: WindowPage, runs: Sequence[WindowRun]) -> None:
        page.at = runs[0].at if runs else 0
        self._pages.append(page)
        if len(self._pages) > PAGES_MAX:
            self._join_pages()
        for run in runs:
            queue = self._queues.get(run.key)
            if queue is None:
                queue = self._queues[run.key] = _Queue(deque())
                self._ready.append(run.key)
            queue.runs.append(run)
            self._bytes += run.size
            page.left += len(run.event_ids)
        self.count += page.left
        self._move()

    def take(self, now: float, connections: int) -> list[WindowRun]:
        """Returns the events of the next request; none when nothing may be sent now."""
        free = connections - self._requests
        if free <= 0 or (self.is_down and self._requests):
            return []
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(heapq.heappop(self._delayed)[1])
        ready = len(self._ready)
        is_filled = self.count - self._sent >= FILLED_FROM
        taken = self._take_next(now, ready if is_filled else -(-ready // free))
        if taken:
            self._requests += 1
            self._sent += count_of(taken)
        return taken

    def _take_next(self, now: float, share: int) -> list[WindowRun]:
        taken: list[WindowRun] = []
        size = count = 0
        waits_for_fresh = self.is_down and now < self._fresh_at
        passed: list[str] = []
        while self._ready and share > 0 and count < REQUEST_EVENTS and size < REQUEST_BYTES:
            key = self._ready.popleft()
            queue = self._queues[key]
            if (waits_for_fresh and not queue.failures) or (queue.failures and taken):
                passed.append(key)
                if not waits_for_fresh:
                    break
                continue
            share -= 1
            while queue.runs:
                run = queue.runs[0]
                count += len(run.event_ids)
                size += run.size
                if taken and (count > REQUEST_EVENTS or size > REQUEST_BYTES):
                    break
                taken.append(queue.runs.popleft())
            if not taken or taken[-1].key != key:  # it did not fit any more
                passed.append(key)
            if queue.failures:
                break
        self._ready.extendleft(reversed(passed))
        return taken

    def taken(self, runs: Sequence[WindowRun]) -> None:
        """The receiver has taken these: forget them."""
        was_down = self.is_down
        self._end_request(runs)
        self._failed_in_a_row = 0
        for run in runs:
            run.page.left -= len(run.event_ids)
            self._bytes -= run.size
        self.count -= count_of(runs)
        for key in dict.fromkeys(run.key for run in runs):
            queue = self._queues[key]
            queue.failures = 0
            self._failing.pop(key, None)
            if queue.runs:
                self._ready.append(key)
            else:
                del self._queues[key]
        if was_down:
            self._release_all()
        self._move()

    def failed(self, runs: Sequence[WindowRun], now: float) -> None:
        """The receiver has not taken these: send them again later, before everything else of their conversations."""
        self._end_request(runs)
        self._failed_in_a_row += 1
        self._fresh_at = now + FRESH_PAUSE_S
        by_key: dict[str, list[WindowRun]] = {}
        for run in runs:
            by_key.setdefault(run.key, []).append(run)
        for key, own in by_key.items():
            queue = self._queues[key]
            queue.runs.extendleft(reversed(own))
            self._failing.setdefault(key, now)
            queue.failures += 1
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(queue.failures - 1, 20))
            heapq.heappush(self._delayed, (now + pause_s * random.uniform(0.5, 1.0), key))

    def _end_request(self, runs: Sequence[WindowRun]) -> None:
        self._requests -= 1
        self._sent -= count_of(runs)

    def due_in(self, now: float, connections: int) -> float | None:
        """Returns after how many seconds `take` may return more; None: not before a request has ended or events were
        added."""
        if self._requests >= (1 if self.is_down else connections):
            return None
        times = [self._delayed[0][0]] if self._delayed else []
        if self._ready and self.is_down:
            times.append(self._fresh_at)
        return max(0.0, min(times) - now) if times else None

    def _release_all(self) -> None:
        """The receiver is back: send everything at once, and together again."""
        for _, key in sorted(self._delayed):
            self._queues[key].failures = 0
            self._ready.append(key)
        self._delayed.clear()

    def _join_pages(self) -> None:
        """Make one of adjacent pages that are done: while one event is refused for hours, others pass."""
        joined: deque[WindowPage] = deque()
        for page in self._pages:
            if joined and not page.left and not joined[-1].left:
                joined[-1].end = page.end
            else:
                joined.append(page)
        self._pages = joined

    def _move(self) -> None:
        while self._pages and not self._pages[0].left:
            self.place = self._pages.popleft().end


def count_of(runs: Iterable[WindowRun]) -> int:
    """Returns the number of events."""
    return sum(len(run.event_ids) for run in runs)
