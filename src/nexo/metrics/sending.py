"""Timings of a send by stage. The committer and the pushing code share one object."""

from __future__ import annotations

from collections.abc import Iterable

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import SIZES, Buckets, Tally

NOTED_MAX = 64  # batches and flushes that are not counted yet


class SendMeter:
    def __init__(self) -> None:
        self.queue = Buckets()
        self.write = Buckets()
        self.ack = Buckets()
        self.push = Buckets()
        self.whole = Buckets()
        self.sizes = Buckets(SIZES)
        self.results = Tally(saved=0, repeated=0, refused=0, late=0, failed=0)
        self.troubles = Tally(again=0, unknown=0, conflict=0, divided=0, abandoned=0)
        self.queue_full = 0
        self.committed_at = 0.0  # of the batch that is being answered, or was the last one
        # Noted by the parts themselves, without a call; counted when there are some, or when they are sampled.
        self.pushed: list[float] = []  # when the messages were committed whose frames wait to be written
        self.batches: list[tuple[list[float], float, float]] = []  # since when each send waited; begun, committed at
        self.answers: list[tuple[list[float], float, float]] = []  # since, committed at, answers written at
        self.flushes: list[tuple[list[float], float]] = []  # committed at, frames written at

    def count(self) -> None:
        """Count what was noted."""
        batches, self.batches = self.batches, []
        for since, begun_at, committed_at in batches:
            size = len(since)
            self.sizes.observe(size)
            self.queue.observe_ages(since, begun_at)
            self.write.observe_many(max(0.0, committed_at - begun_at), size)
        answers, self.answers = self.answers, []
        for since, committed_at, written_at in answers:
            self.ack.observe_many(max(0.0, written_at - committed_at), len(since))
            self.whole.observe_ages(since, written_at)
        flushes, self.flushes = self.flushes, []
        for pushed, written_at in flushes:
            self.push.observe_ages(pushed, written_at)

    def samples(self) -> Iterable[Sample]:
        self.count()
        yield from f.SENDS.each(self.results)
        yield f.SEND_SECONDS(self.whole)
        for stage in ("queue", "write", "ack", "push"):
            yield f.SEND_STAGES(getattr(self, stage), stage)
        yield f.BATCH_SIZE(self.sizes)
        yield from f.BATCHES.each(self.troubles)
        yield f.REFUSALS(self.queue_full, "send_queue")
