"""The way of a send in stages. The committer and those who push share one of these."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import SIZES, Buckets, Tally


class SendMeter:
    def __init__(self) -> None:
        self.queue = Buckets()
        self.write = Buckets()
        self.ack = Buckets()
        self.push = Buckets()
        self.whole = Buckets()
        self.sizes = Buckets(SIZES)
        self.results = Tally(saved=0, repeated=0, refused=0, late=0, failed=0)
        self.troubles = Tally(again=0, unknown=0, conflict=0, divided=0)
        self.queue_full = 0
        self.committed_at = 0.0  # of the batch that is being answered, or was the last one
        # When the messages were committed that were just given to their receivers; `flushed` says when those
        # have them. Whoever gives appends here: once per message a call is worth saving.
        self.pushed: list[float] = []

    def decided(self, since: Sequence[float], begun_at: float, committed_at: float) -> None:
        """A transaction decided these sends; `since` says when each was taken."""
        size = len(since)
        self.sizes.observe(size)
        self.queue.observe_ages(since, begun_at)
        self.write.observe_many(max(0.0, committed_at - begun_at), size)

    def answered(self, since: Sequence[float], committed_at: float, now: float) -> None:
        """And their ACKs were handed over just now."""
        self.ack.observe_many(max(0.0, now - committed_at), len(since))
        self.whole.observe_ages(since, now)

    def flushed(self) -> None:
        if self.pushed:
            self.push.observe_ages(self.pushed, time.monotonic())
            self.pushed.clear()

    def samples(self) -> Iterable[Sample]:
        yield from f.SENDS.each(self.results)
        yield f.SEND_SECONDS(self.whole)
        for stage in ("queue", "write", "ack", "push"):
            yield f.SEND_STAGES(getattr(self, stage), stage)
        yield f.BATCH_SIZE(self.sizes)
        yield from f.BATCHES.each(self.troubles)
        yield f.REFUSALS(self.queue_full, "send_queue")
