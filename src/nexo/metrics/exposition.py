"""From the parts' numbers to what Prometheus reads, for one process or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from nexo.metrics.families import FAMILIES, Family, Kind, Sample, Source
from nexo.metrics.measures import Buckets

PROCESS_LABEL = "process"


class Metrics(Collector):
    """Everything one process measures. Sources are asked when somebody asks us, on the event loop."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def add(self, source: Source) -> None:
        self._sources.append(source)

    def samples(self) -> list[Sample]:
        return [sample for source in self._sources for sample in source()]

    def collect(self) -> Iterable[Metric]:
        return _prometheus(self.samples())

    def describe(self) -> Iterable[Metric]:
        return ()


def encode_snapshot(samples: Iterable[Sample]) -> bytes:
    """What one process hands to the one that answers /metrics for all."""
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
            labels = (*sample.labels, process) if family.kind is Kind.GAUGE else sample.labels
            key = (sample.name, labels)
            merged[key] = Sample(*key, _sum(merged[key].value, sample.value) if key in merged else sample.value)
    return list(merged.values())


def encode_text(samples: Iterable[Sample], accept: str = "") -> tuple[bytes, str]:
    """The text exposition of any samples, merged ones too, and its content type."""
    metrics = Metrics()
    metrics.add(lambda: samples)
    encode, content_type = choose_encoder(accept)
    return encode(metrics.registry), content_type


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
        return cls(sample.name, sample.labels, value)

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


def _prometheus(samples: Iterable[Sample]) -> Iterable[Metric]:
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    for name, family in FAMILIES.items():  # in the order of the table
        if name in by_name:
            yield _metric(family, by_name[name])


def _metric(family: Family, samples: list[Sample]) -> Metric:
    names = list(family.labels)
    if len(samples[0].labels) > len(names):
        names.append(PROCESS_LABEL)
    if family.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(family.name, family.meaning, labels=names)
        for sample in samples:
            assert isinstance(sample.value, Buckets)
            histogram.add_metric(sample.labels, _cumulative(sample.value), sample.value.total)
        return histogram
    make = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
    metric = make(family.name, family.meaning, labels=names)
    for sample in samples:
        assert not isinstance(sample.value, Buckets)
        metric.add_metric(sample.labels, sample.value)
    return metric


def _cumulative(buckets: Buckets) -> list[tuple[str, float]]:
    told: list[tuple[str, float]] = []
    below = 0
    for bound, count in zip((*buckets.bounds, None), buckets.counts, strict=True):
        below += count
        told.append(("+Inf" if bound is None else f"{bound:g}", below))
    return told
