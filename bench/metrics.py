"""What measuring costs: nanoseconds per message on the way of a send, and milliseconds per scrape.

    .venv/bin/python bench/metrics.py

The same calls that the committer, the gateway and the receipts make for one message (taken, written with
others, acknowledged to its sender, pushed to one receiver, whose ACK returns), in a loop by themselves. For
comparison: the same with prometheus_client's own counters and histograms, and with nothing at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Histogram

from nexo.metrics.exposition import encode_text
from nexo.metrics.families import FAMILIES, MetricKind, Sample
from nexo.metrics.measures import SECONDS, Buckets, Tally
from nexo.metrics.sending import SendMeter

MESSAGES = 200_000
REPEAT = 5


class Link:
    __slots__ = ("bytes_in", "frames_in", "frames_out")

    def __init__(self) -> None:
        self.bytes_in = self.frames_in = self.frames_out = 0


def one_batch(meter: SendMeter, acks: Tally, delivery: Buckets, link: Link, since: list[float]) -> None:
    size = len(since)
    now = since[-1]
    meter.committed_at = now
    for _ in range(size):
        link.frames_in += 1  # the send
        link.bytes_in += 200
        meter.pushed.append(now)
        link.frames_out += 1  # its ACK
        link.frames_out += 1  # and its push
        link.frames_in += 1  # the receiver's ACK
        link.bytes_in += 100
        acks["delivered"] += 1
        delivery.observe(now - since[0])
    meter.decided(since, now, now)
    meter.results["saved"] += size
    meter.flushed()
    meter.answered(since, now, time.monotonic())


def bare_batch(since: list[float]) -> None:
    for _ in range(len(since)):
        pass


class Usual:
    """prometheus_client as it is commonly used."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.frames = Counter("frames", "", ["direction"], registry=registry)
        self.acks = Counter("acks", "", ["type"], registry=registry)
        self.stages = Histogram("stages", "", ["stage"], buckets=SECONDS, registry=registry)

    def batch(self, since: list[float]) -> None:
        for _ in range(len(since)):
            for direction in ("in", "in", "out", "out"):
                self.frames.labels(direction).inc()
            for stage in ("queue", "write", "ack", "push", "delivery"):
                self.stages.labels(stage).observe(0.002)
            self.acks.labels("delivered").inc()


def ns_per_message(work: Callable[[list[float]], None], batch: int) -> float:
    since = [time.monotonic()] * batch
    rounds = MESSAGES // batch
    best = float("inf")
    for _ in range(REPEAT):
        started = time.process_time()
        for _ in range(rounds):
            work(since)
        best = min(best, time.process_time() - started)
    return best / (rounds * batch) * 1e9


def scrape_ms() -> tuple[float, int]:
    samples = [
        Sample(name, tuple("x" for _ in family.labels), Buckets() if family.kind is MetricKind.HISTOGRAM else 1.0)
        for name, family in FAMILIES.items()
    ]
    samples += [Sample("nexo_script_seconds", (f"script{i}",), Buckets()) for i in range(60)]
    started = time.perf_counter()
    text, _ = encode_text(samples)
    return (time.perf_counter() - started) * 1000, len(text)


def main() -> None:
    meter, acks, delivery, link = SendMeter(), Tally(delivered=0), Buckets(), Link()
    usual = Usual()
    print("batch   Nexo ns/message   prometheus_client ns/message")
    for batch in (1, 8, 64, 400):
        bare = ns_per_message(bare_batch, batch)
        own = ns_per_message(lambda since: one_batch(meter, acks, delivery, link, since), batch) - bare
        others = ns_per_message(usual.batch, batch) - bare
        print(f"{batch:5}   {own:15.0f}   {others:28.0f}")
    taken, size = scrape_ms()
    print(f"a scrape: {taken:.1f} ms for {size / 1024:.0f} KiB, besides a walk over the open connections")


if __name__ == "__main__":
    main()
