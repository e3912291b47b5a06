"""Two-phase acknowledgement: how fast sends are accepted, and how far saving is behind."""

from __future__ import annotations

from collections.abc import Iterable

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import LONG_SECONDS, Buckets, Tally


class AcceptMeter:
    def __init__(self) -> None:
        self.write = Buckets()
        self.ack = Buckets()
        self.fates = Tally(
            accepted=0,
            known=0,
            saved=0,
            refused=0,
            reused=0,
            busy=0,
            direct=0,
            without=0,
            restored=0,
            observed=0,
            unobserved=0,
        )

    def samples(self) -> Iterable[Sample]:
        yield f.ACCEPT_WRITE_SECONDS(self.write)
        yield f.ACCEPT_ACK_SECONDS(self.ack)
        yield from f.ACCEPTS.each(self.fates)


class SaveMeter:
    def __init__(self) -> None:
        self.lag = Buckets(LONG_SECONDS)
        self.failures = Tally(deliver_fail=0, publish_fail=0, save_fail=0, dup_db=0)
        self.pending = {"accepted": 0, "to_save": 0}  # taken from the shards that this process owns, and not finished
        self.shards = 0
        self.under_way = 0  # entries with the committer

    def samples(self) -> Iterable[Sample]:
        yield f.SAVE_LAG_SECONDS(self.lag)
        yield from f.TWO_PHASE_FAILURES.each(self.failures)
        yield from f.STREAM_PENDING.each(self.pending)
        yield f.SHARDS_OWNED(self.shards)
