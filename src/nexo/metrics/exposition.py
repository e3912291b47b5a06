"""From the parts' numbers to what Prometheus reads, for one process or several."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import cache

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from nexo.metrics.families import FAMILIES, Family, MetricKind, Sample, Source
from nexo.metrics.measures import Buckets

PROCESS_LABEL = "process"
PLAIN_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Everything one process measures. Sources are read on each request, on the event loop."""

    def __init__(self) -> None:
        self._sources: list[Source] = []

    def add(self, source: Source) -> None:
        self._sources.append(source)

    def samples(self) -> list[Sample]:
        return [sample for source in self._sources for sample in source()]

    def expose(self, accept: str) -> tuple[bytes, str]:
        """Returns the answer of /metrics, and its content type."""
        return encode_text(self.samples(), accept)


def encode_snapshot(samples: Iterable[Sample]) -> bytes:
    """Returns what one process passes to the process that answers /metrics for all."""
    return msgspec.json.encode([_Row.of(sample) for sample in samples])


def merge_snapshots(snapshots: Mapping[str, bytes]) -> list[Sample]:
    """The snapshots of several processes, by the name of each, as one: counters and distributions are added up,
    gauges keep the name of their process. What another version of Nexo counts differently is left out."""
    merged: dict[tuple[str, tuple[str, ...]], Sample] = {}
    for process, snapshot in snapshots.items():
        for sample in (row.sample() for row in msgspec.json.decode(snapshot, type=list[_Row])):
            family = FAMILIES.get(sample.name)
            if family is None or len(family.labels) != len(sample.labels):
                continue
            labels = (*sample.labels, process) if family.kind is MetricKind.GAUGE else sample.labels
            key = (sample.name, labels)
            merged[key] = Sample(*key, _sum(merged[key].value, sample.value) if key in merged else sample.value)
    return list(merged.values())


def without_process(sample: Sample) -> Sample:
    """A merged sample of one process as it was before."""
    is_gauge = FAMILIES[sample.name].kind is MetricKind.GAUGE
    return Sample(sample.name, sample.labels[:-1], sample.value) if is_gauge else sample


def encode_text(samples: Iterable[Sample], accept: str = "") -> tuple[bytes, str]:
    """The text exposition of any samples, merged ones too, and its content type.

    The library needs 8 µs a line (this: 0.3), and all other work waits meanwhile. So OpenMetrics, which adds nothing
    here, is only for readers that accept no other format.
    """
    if "application/openmetrics-text" in accept and "text/plain" not in accept and "*/*" not in accept:
        encode, content_type = choose_encoder(accept)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected(samples))
        return encode(registry), content_type
    lines: list[str] = []
    for family, group in _grouped(samples):
        lines += _lines(family, group)
    return ("\n".join(lines) + "\n").encode(), PLAIN_TEXT


def _lines(family: Family, samples: list[Sample]) -> Iterable[str]:
    yield f"# HELP {family.name} {family.meaning}"
    yield f"# TYPE {family.name} {family.kind}"
    names = _label_names(family, samples)
    for _, values, value in samples:
        labels = ",".join(f'{name}="{_escape(text)}"' for name, text in zip(names, values, strict=True))
        in_braces = f"{{{labels}}}" if labels else ""
        if not isinstance(value, Buckets):
            yield f"{family.name}{in_braces} {float(value)!r}"
            continue
        comma = f"{labels}," if labels else ""
        below = 0
        for bound, count in zip(_bounds(value.bounds), value.counts, strict=True):
            below += count
            yield f'{family.name}_bucket{{{comma}le="{bound}"}} {below}.0'
        yield f"{family.name}_count{in_braces} {below}.0"
        yield f"{family.name}_sum{in_braces} {value.total!r}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@cache
def _bounds(bounds: tuple[float, ...]) -> tuple[str, ...]:
    return (*(f"{bound:g}" for bound in bounds), "+Inf")


class _Collected(Collector):
    """Samples as the library wants them."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = list(samples)

    def collect(self) -> Iterable[Metric]:
        return [_metric(family, group) for family, group in _grouped(self._samples)]

    def describe(self) -> Iterable[Metric]:
        return ()


class _Row(msgspec.Struct, array_like=True):
    name: str
    labels: tuple[str, ...]
    value: float = 0.0
    bounds: tuple[float, ...] = ()
    counts: list[int] = []

    @classmethod
    def of(cls, sample: Sample) -> _Row:
        value = sample.value
        if isinstance(value, Buckets):
            return cls(sample.name, sample.labels, value.total, value.bounds, value.counts)
        return cls(sample.name, sample.labels, float(value))  # True and False are numbers to Prometheus, not to JSON

    def sample(self) -> Sample:
        if not self.counts:
            return Sample(self.name, self.labels, self.value)
        buckets = Buckets(self.bounds)
        buckets.counts, buckets.total = self.counts, self.value
        return Sample(self.name, self.labels, buckets)


def _sum(one: float | Buckets, other: float | Buckets) -> float | Buckets:
    if not isinstance(one, Buckets) or not isinstance(other, Buckets):
        return one if isinstance(one, Buckets) or isinstance(other, Buckets) else one + other
    if one.bounds != other.bounds:
        return one
    added = Buckets(one.bounds)
    added.counts = [a + b for a, b in zip(one.counts, other.counts, strict=True)]
    added.total = one.total + other.total
    return added


def _grouped(samples: Iterable[Sample]) -> Iterable[tuple[Family, list[Sample]]]:
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    for name, family in FAMILIES.items():  # in the order of the table
        if name in by_name:
            yield family, by_name[name]


def _label_names(family: Family, samples: list[Sample]) -> list[str]:
    names = list(family.labels)
    return [*names, PROCESS_LABEL] if len(samples[0].labels) > len(names) else names


def _metric(family: Family, samples: list[Sample]) -> Metric:
    names = _label_names(family, samples)
    if family.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(family.name, family.meaning, labels=names)
        for sample in samples:
            assert isinstance(sample.value, Buckets)
            histogram.add_metric(sample.labels, _cumulative(sample.value), sample.value.total)
        return histogram
    make = CounterMetricFamily if family.kind is MetricKind.COUNTER else GaugeMetricFamily
    metric = make(family.name, family.meaning, labels=names)
    for sample in samples:
        assert not isinstance(sample.value, Buckets)
        metric.add_metric(sample.labels, sample.value)
    return metric


def _cumulative(buckets: Buckets) -> list[tuple[str, float]]:
    return list(zip(_bounds(buckets.bounds), itertools.accumulate(buckets.counts), strict=True))
