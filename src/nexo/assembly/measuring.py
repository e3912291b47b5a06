"""The numbers of a server: those of its parts, of HTTP and of the process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from nexo import __version__
from nexo.config import Config
from nexo.metrics.exposition import Metrics
from nexo.metrics.families import Sample
from nexo.metrics.http import HttpMeter
from nexo.metrics.process import ProcessMeter


class MeasuredPart(Protocol):
    def samples(self) -> Iterable[Sample]: ...


def measure(metrics: Metrics, config: Config, engine: str, *parts: MeasuredPart) -> HttpMeter:
    """Adds the samples of the parts, of HTTP and of this process to the metrics. Returns the meter of HTTP."""
    http = HttpMeter()
    process = ProcessMeter(__version__, engine, config.gateway.websocket)
    for measured in (*parts, http, process):
        metrics.add(measured.samples)
    process.start()
    return http
