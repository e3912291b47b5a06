"""What a running server counts, for Prometheus. Values that exist anyway are read when somebody asks."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from nexo.ports import BatchStats

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._saved = Counter("nexo_sends_total", "Sends that were decided by a transaction.", registry=self.registry)
        self._batch = Histogram(
            "nexo_batch_size",
            "Sends decided in one transaction.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
            registry=self.registry,
        )
        self._queue = Histogram(
            "nexo_send_queue_seconds",
            "The longest wait in a batch before its transaction.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._write = Histogram(
            "nexo_batch_write_seconds", "How long a transaction took.", buckets=_SECONDS, registry=self.registry
        )

    def batch(self, stats: BatchStats) -> None:
        self._saved.inc(stats.size)
        self._batch.observe(stats.size)
        self._queue.observe(max(0.0, stats.longest_wait_s))
        self._write.observe(stats.write_s)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A value that is looked up whenever the metrics are asked for."""
        Gauge(name, text, registry=self.registry).set_function(read)
