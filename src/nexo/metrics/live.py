"""The last 15 minutes, for the live page: rates and percentiles from counters that only grow.

Everything is made from samples, so it works alike for one process and for several: gauges and counters are added up,
and each process also has a row of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from nexo.errors import ERRORS
from nexo.metrics import families as f
from nexo.metrics.families import Family, Sample
from nexo.metrics.measures import Buckets, percentile

STEP_S = 5.0
POINTS = 180  # a quarter of an hour
MINUTE = 12  # steps
HOUR_MARKS = 60  # errors, once a minute
SLOW_CANARY_S = 0.25
SLOW_LAG_S = 0.1
FULL_SHARE = 0.75
STAGES = ("queue", "write", "ack", "push")

Grown = tuple[tuple[float, ...], list[int], float]  # bounds, counts, sum
Collect = Callable[[], Mapping[str, Iterable[Sample]]]


class LivePoint(Struct, frozen=True):
    """One step of the past. Percentiles are null where nothing was sent."""

    at: int
    connections: int
    saved_per_s: float
    errors_per_s: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class Spread(Struct, frozen=True):
    """A distribution over the last minute."""

    name: str
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class Queue(Struct, frozen=True):
    name: str
    length: int
    limit: int | None


class Reason(Struct, frozen=True):
    """`ours`: a failure on the server's side, not the caller's."""

    name: str
    count: int
    ours: bool


class DialectTraffic(Struct, frozen=True):
    name: str
    connections: int


class Instance(Struct, frozen=True):
    name: str
    started_at: int
    connections: int
    saved_per_s: float
    cpu_share: float  # of one core
    memory_bytes: int
    lag_ms: float | None
    is_slow: bool


class TwoPhaseState(Struct, frozen=True):
    """Sends that are accepted before they are saved; times over the last minute."""

    accepted: Spread
    save_lag: Spread
    waiting: int  # in the streams
    dead: int
    failures: int


class Live(Struct, frozen=True):
    """What the live page shows, besides what the canary found."""

    now: int
    version: str
    engine: str
    connections: int
    connections_limit: int
    users_online: int
    saved_per_s: float
    errors_per_s: float
    step_s: float
    history: list[LivePoint]
    sends: Spread
    stages: list[Spread]
    deliveries: Spread
    batch_size: float | None
    queues: list[Queue]
    errors: list[Reason]  # of the last hour
    errors_s: int  # or since when there are some
    dialects: list[DialectTraffic]
    instances: list[Instance]
    resyncs: int  # of the last minute, like the next two
    dropped: int
    late: int
    two_phase: TwoPhaseState | None  # none where nothing goes that way
    slow: list[str]  # what is slow: `loop`, or a queue that is three quarters full


class Totals:
    """Samples of one moment, of one process or several, those of the same name and labels added up."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.numbers: dict[tuple[str, tuple[str, ...]], float] = {}
        self.buckets: dict[tuple[str, tuple[str, ...]], tuple[tuple[float, ...], list[int], float]] = {}
        for name, labels, value in samples:
            key = (name, labels)
            if not isinstance(value, Buckets):
                before = self.numbers.get(key, 0.0)
                self.numbers[key] = max(before, value) if name in f.SEEN_BY_ALL else before + value
            elif key in self.buckets:
                bounds, counts, total = self.buckets[key]
                added = [a + b for a, b in zip(counts, value.counts, strict=True)]
                self.buckets[key] = (bounds, added, total + value.total)
            else:
                self.buckets[key] = (value.bounds, list(value.counts), value.total)

    def number(self, family: Family, *labels: str) -> float:
        return self.numbers.get((family.name, labels), 0.0)

    def words(self, family: Family, place: int = 0) -> dict[str, float]:
        """The sums by one of the labels."""
        found: dict[str, float] = {}
        for (name, labels), value in self.numbers.items():
            if name == family.name:
                found[labels[place]] = found.get(labels[place], 0.0) + value
        return found

    def sum(self, family: Family) -> float:
        return sum(value for (name, _), value in self.numbers.items() if name == family.name)

    def errors(self) -> dict[str, float]:
        sent = self.words(f.ERRORS, 1)
        unheard = self.number(f.CLOSED, "slow_consumer")  # no frame reaches it
        return sent | ({"slow_consumer": unheard} if unheard else {})


class Reading(NamedTuple):
    """All processes at one moment, together and each by itself."""

    at: float
    totals: Totals
    each: dict[str, Totals]


class Growth:
    """What happened between two readings, in the processes that are in both: others have only just been met, or
    have ended, and the time of their numbers is unknown."""

    def __init__(self, before: Reading, now: Reading) -> None:
        self.elapsed_s = max(now.at - before.at, 0.001)
        self._pairs = [(before.each[name], now.each[name]) for name in now.each if name in before.each]

    def of(self, read: Callable[[Totals], float]) -> float:
        return sum(max(0.0, read(now) - read(before)) for before, now in self._pairs)

    def errors(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for before, now in self._pairs:
            earlier = before.errors()
            for name, count in now.errors().items():
                found[name] = found.get(name, 0.0) + max(0.0, count - earlier.get(name, 0.0))
        return found

    def buckets(self, family: Family, *labels: str) -> Grown:
        key = (family.name, labels)
        bounds: tuple[float, ...] = ()
        counts: list[int] = []
        total = 0.0
        for before, now in self._pairs:
            if key not in now.buckets:
                continue
            bounds, new, new_total = now.buckets[key]
            _, old, old_total = before.buckets.get(key, (bounds, [0] * len(new), 0.0))
            grown = [max(0, a - b) for a, b in zip(new, old, strict=True)]
            counts = [a + b for a, b in zip(counts, grown, strict=True)] if counts else grown
            total += new_total - old_total
        return bounds, counts, total


class LiveStats:
    """Takes a reading every few seconds between `start` and `stop`. `collect` gives the samples by process."""

    def __init__(self, collect: Collect, clock: Callable[[], float] = time.time) -> None:
        self._collect = collect
        self._clock = clock
        self._points: deque[LivePoint] = deque(maxlen=POINTS)
        self._minute: deque[Reading] = deque(maxlen=MINUTE + 1)
        self._hour: deque[tuple[float, dict[str, float]]] = deque(maxlen=HOUR_MARKS + 1)
        self._errors: dict[str, float] = {}  # since this was started
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(STEP_S, self.start)  # first: a failed reading ends nothing
        self.record()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def record(self) -> None:
        now = self._read()
        if self._minute:
            last = self._minute[-1]
            self._points.append(_point(now, Growth(last, now)))
            self._errors = self._errors_with(Growth(last, now))
        self._minute.append(now)
        if not self._hour or now.at - self._hour[-1][0] >= 60:
            self._hour.append((now.at, dict(self._errors)))

    def _errors_with(self, growth: Growth) -> dict[str, float]:
        found = dict(self._errors)
        for name, count in growth.errors().items():
            found[name] = found.get(name, 0.0) + count
        return found

    def _read(self) -> Reading:
        samples = {name: list(given) for name, given in self._collect().items()}
        each = {name: Totals(given) for name, given in samples.items()}
        together = each[next(iter(each))] if len(each) == 1 else Totals(s for given in samples.values() for s in given)
        return Reading(self._clock(), together, each)

    def look(self, since_ms: int = 0) -> Live:
        """Now, and the points of the past that are newer than `since_ms`."""
        now = self._read()
        if not self._minute:
            self.record()
        last = self._minute[-1]
        if now.at - last.at < 1 and len(self._minute) > 1:  # too short for a rate
            last = self._minute[-2]
        minute, latest = Growth(self._minute[0], now), Growth(last, now)
        errors = self._errors_with(Growth(self._minute[-1], now))
        point, totals = _point(now, latest), now.totals
        info = next((labels for name, labels in totals.numbers if name == f.INFO.name), ("", "", ""))
        instances = [_instance(name, latest.elapsed_s, one, last.each.get(name)) for name, one in now.each.items()]
        queues = _queues(totals)
        return Live(
            now=int(now.at * 1000),
            version=info[0],
            engine=info[1],
            connections=point.connections,
            connections_limit=int(totals.sum(f.CONNECTIONS_LIMIT)),
            users_online=int(totals.sum(f.USERS)),
            saved_per_s=point.saved_per_s,
            errors_per_s=point.errors_per_s,
            step_s=STEP_S,
            history=[past for past in self._points if past.at > since_ms],
            sends=_spread("send", minute.buckets(f.SEND_SECONDS)),
            stages=[_spread(stage, minute.buckets(f.SEND_STAGES, stage)) for stage in STAGES],
            deliveries=_spread("delivery", minute.buckets(f.DELIVERY_SECONDS)),
            batch_size=_mean(minute.buckets(f.BATCH_SIZE)),
            queues=queues,
            errors=_reasons(errors, self._hour[0][1]),
            errors_s=int(now.at - self._hour[0][0]),
            dialects=[DialectTraffic(name, int(count)) for name, count in totals.words(f.CONNECTIONS).items()],
            instances=instances,
            resyncs=int(minute.of(lambda one: one.sum(f.RESYNCS))),
            dropped=int(minute.of(lambda one: one.sum(f.PUSHES_DROPPED))),
            late=int(minute.of(lambda one: one.number(f.SENDS, "late"))),
            two_phase=_two_phase(totals, minute),
            slow=[
                *(["loop"] if any(instance.is_slow for instance in instances) else []),
                *(queue.name for queue in queues if queue.limit and queue.length >= FULL_SHARE * queue.limit),
            ],
        )


def _point(now: Reading, growth: Growth) -> LivePoint:
    bounds, counts, _ = growth.buckets(f.SEND_SECONDS)
    return LivePoint(
        int(now.at * 1000),
        int(now.totals.sum(f.CONNECTIONS)),
        round(growth.of(lambda one: one.number(f.SENDS, "saved")) / growth.elapsed_s, 2),
        round(growth.of(lambda one: sum(one.errors().values())) / growth.elapsed_s, 2),
        *(_ms(percentile(bounds, counts, share)) for share in (0.5, 0.95, 0.99)),
    )


def _spread(name: str, grown: Grown) -> Spread:
    bounds, counts, _ = grown
    return Spread(name, *(_ms(percentile(bounds, counts, share)) for share in (0.5, 0.95, 0.99)))


def _mean(grown: Grown) -> float | None:
    count = sum(grown[1])
    return round(grown[2] / count, 1) if count else None


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)


def _queues(totals: Totals) -> list[Queue]:
    limits = totals.words(f.QUEUE_LIMIT)
    found = [
        Queue(name, int(length), int(limits[name]) if name in limits else None)
        for name, length in totals.words(f.QUEUE).items()
    ]
    found.append(Queue("blocked", int(totals.sum(f.BLOCKED)), None))
    return sorted(found, key=lambda queue: queue.limit is None)  # those that can be full first


def _two_phase(totals: Totals, minute: Growth) -> TwoPhaseState | None:
    lengths = totals.words(f.STREAM_LENGTH)
    if not totals.sum(f.ACCEPTS) and not any(lengths.values()):
        return None
    return TwoPhaseState(
        _spread("accepted", minute.buckets(f.ACCEPT_ACK_SECONDS)),
        _spread("save_lag", minute.buckets(f.SAVE_LAG_SECONDS)),
        int(lengths.get("accepted", 0) + lengths.get("to_save", 0)),
        int(lengths.get("dead", 0)),
        int(minute.of(lambda one: one.sum(f.TWO_PHASE_FAILURES))),
    )


def _reasons(now: Mapping[str, float], before: Mapping[str, float]) -> list[Reason]:
    grown = {name: int(count - before.get(name, 0)) for name, count in now.items()}
    found = [Reason(name, count, _is_ours(name)) for name, count in grown.items() if count > 0]
    return sorted(found, key=lambda reason: (-reason.count, reason.name))


def _is_ours(name: str) -> bool:
    row = ERRORS.get(name)
    return row is None or row.http_status >= 500 or name == "slow_consumer"


def _instance(name: str, elapsed_s: float, now: Totals, before: Totals | None) -> Instance:
    before = before or now
    growth = Growth(Reading(0, before, {name: before}), Reading(elapsed_s, now, {name: now}))
    bounds, counts, _ = growth.buckets(f.LOOP_LAG)
    lag_s = percentile(bounds, counts, 0.99)
    return Instance(
        name,
        int(now.number(f.STARTED) * 1000),
        int(now.sum(f.CONNECTIONS)),
        round(growth.of(lambda one: one.number(f.SENDS, "saved")) / elapsed_s, 2),
        round(growth.of(lambda one: one.number(f.CPU)) / elapsed_s, 3),
        int(now.number(f.MEMORY)),
        _ms(lag_s),
        lag_s is not None and lag_s > SLOW_LAG_S,
    )
