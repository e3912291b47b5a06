"""What is counted and recorded during a run, and how it leaves the process that counted it."""

from __future__ import annotations

import msgspec

from nexo.bench.histogram import Histogram, Packed


class Counts(msgspec.Struct):
    asked: int = 0  # of pings and pages
    answered: int = 0
    sent: int = 0
    accepted: int = 0  # two-phase servers only
    saved: int = 0
    refused: int = 0
    unanswered: int = 0
    expected: int = 0  # deliveries that the saved messages call for
    delivered: int = 0  # saved messages whose author received `delivered`
    receipts_due: int = 0  # saved messages whose author must receive `delivered`
    received: int = 0  # message frames
    unique: int = 0
    duplicates: int = 0  # without any reason
    repeated: int = 0  # after a reconnect, a resync or a pull: delivery is at least once
    missing: int = 0
    reordered_by_seq: int = 0
    reordered_by_sender: int = 0
    reordered_by_id: int = 0
    foreign: int = 0
    pulled: int = 0  # messages received as the answer to a pull
    resyncs: int = 0
    reconnects: int = 0
    lost: dict[str, int] = {}  # connections that ended and should not have, by reason
    ended: dict[str, int] = {}  # of them, the connections whose end was expected
    errors: dict[str, int] = {}

    def add(self, other: Counts) -> None:
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                for reason, count in theirs.items():
                    mine[reason] = mine.get(reason, 0) + count
            else:
                setattr(self, name, mine + theirs)


class Proof(msgspec.Struct):
    """Result of comparing the histories, after the run."""

    conversations: int = 0
    histories: int = 0  # pulled, one per participant and conversation
    histories_of: int = 0  # that there are
    messages: int = 0  # in them
    findings: dict[str, int] = {}
    samples: list[str] = []

    def note(self, kind: str, text: str, count: int = 1) -> None:
        self.findings[kind] = self.findings.get(kind, 0) + count
        if len(self.samples) < 20:
            self.samples.append(f"{kind}: {text}")

    def add(self, other: Proof) -> None:
        self.conversations += other.conversations
        self.histories += other.histories
        self.histories_of += other.histories_of
        self.messages += other.messages
        for kind, count in other.findings.items():
            self.findings[kind] = self.findings.get(kind, 0) + count
        self.samples = (self.samples + other.samples)[:20]


class Interval(msgspec.Struct):
    """One step of the series over time."""

    sent: int = 0
    saved: int = 0
    received: int = 0
    answered: int = 0
    latencies: dict[str, Packed] = {}


class Recorder:
    """The series over time. Latencies belong to the step in which the send was due, so that a stall shows where it
    began and what is answered late is not left out; counts belong to the step in which it happened."""

    def __init__(self, seconds: float, step_s: float) -> None:
        self.steps = max(1, round(seconds / step_s))
        self.per_s = 1 / step_s
        self.start = float("inf")  # until it is known, nothing is recorded
        self.sent = [0] * (self.steps + 1)  # the last one for whatever is late
        self.saved = [0] * (self.steps + 1)
        self.received = [0] * (self.steps + 1)
        self.answered = [0] * (self.steps + 1)
        self.latencies: dict[str, list[Histogram]] = {}
        self.lag = Histogram()

    def metric(self, name: str) -> list[Histogram]:
        return self.latencies.setdefault(name, [Histogram() for _ in range(self.steps + 1)])

    def step_of(self, moment: float) -> int:
        """Returns the step of a time. The last step is for what is late or arrived before the start: neither is part of
        the figures."""
        since = moment - self.start
        return min(self.steps, int(since * self.per_s)) if since >= 0 else self.steps

    def record(self, metric: list[Histogram], due: float, now: float) -> None:
        since = due - self.start
        if since >= 0:  # what arrived before the start was preparation
            metric[min(self.steps, int(since * self.per_s))].record(int((now - due) * 1e6))

    def intervals(self) -> list[Interval]:
        return [
            Interval(
                self.sent[i],
                self.saved[i],
                self.received[i],
                self.answered[i],
                {name: steps[i].packed() for name, steps in self.latencies.items() if steps[i].count},
            )
            for i in range(self.steps + 1)
        ]


class WorkerResult(msgspec.Struct):
    """All that one generator process found out."""

    counts: Counts
    proof: Proof
    intervals: list[Interval]
    lag: Packed
    cpu_s: float  # during the measured time
    wall_s: float
    connections: int
    figures: dict[str, float] = {}
    failures: list[str] = []


class Tick(msgspec.Struct):
    """A sign of life, several times a second."""

    phase: str
    share: float = 0.0
    connections: int = 0
    sent: int = 0
    saved: int = 0
    received: int = 0
    errors: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0


class WorkerReport(msgspec.Struct):
    """One line from a generator process to its coordinator."""

    ready: bool = False
    tick: Tick | None = None
    measured: bool = False
    result: WorkerResult | None = None
    failure: str = ""
