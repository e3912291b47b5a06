"""What Prometheus is told: valid text, and that of several processes as one."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from nexo.metrics import families as f
from nexo.metrics.exposition import Metrics, encode_snapshot, encode_text, merge_snapshots
from nexo.metrics.families import FAMILIES, MetricKind, Sample
from nexo.metrics.measures import Buckets


def told(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def process(saved: int, connections: int, *waits: float) -> list[Sample]:
    buckets = Buckets((0.1, 1.0))
    for wait in waits:
        buckets.observe(wait)
    return [
        f.SENDS(saved, "saved"),
        f.CONNECTIONS(connections, "envelope", "signed_in", "multi"),
        f.SEND_STAGES(buckets, "queue"),
    ]


def test_each_kind_is_told_as_prometheus_wants_it() -> None:
    text, content_type = encode_text(process(3, 2, 0.05, 0.5, 5))
    assert content_type.startswith("text/plain")
    values = told(text)
    assert values["nexo_sends_total", (("result", "saved"),)] == 3
    assert values["nexo_connections", (("dialect", "envelope"), ("policy", "multi"), ("state", "signed_in"))] == 2
    stage = ("stage", "queue")
    assert [values["nexo_send_stage_seconds_bucket", (("le", le), stage)] for le in ("0.1", "1", "+Inf")] == [1, 2, 3]
    assert values["nexo_send_stage_seconds_sum", (stage,)] == pytest.approx(5.55)
    assert values["nexo_send_stage_seconds_count", (stage,)] == 3


def test_openmetrics_is_told_to_those_who_ask_for_it() -> None:
    text, content_type = encode_text(process(3, 2, 0.05), "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


def test_both_formats_say_the_same() -> None:
    samples = [
        *process(3, 2, 0.05, 0.5, 5),
        f.HTTP_REQUESTS(1, 'GET /"\\\n', "200"),
        f.READY(1.0),
        *merge_snapshots({"1": encode_snapshot([f.MEMORY(12345678.0)])}),
    ]
    plain = encode_text(samples, "application/openmetrics-text;q=0.5,text/plain;q=0.3,*/*;q=0.1")
    assert plain[1].startswith("text/plain"), "what Prometheus itself asks for is answered by the quick one"
    other = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in openmetrics_families(encode_text(samples, "application/openmetrics-text")[0].decode())
        for sample in family.samples
    }
    assert told(plain[0]) == other


def test_several_processes_are_one_counters_added_up_and_gauges_apart() -> None:
    snapshots = {
        "1": encode_snapshot(process(3, 2, 0.05)),
        "2": encode_snapshot([*process(4, 5, 0.5, 5.0), f.SENDS(1, "late")]),
    }
    values = told(encode_text(merge_snapshots(snapshots))[0])
    assert values["nexo_sends_total", (("result", "saved"),)] == 7
    assert values["nexo_sends_total", (("result", "late"),)] == 1
    labels = (("dialect", "envelope"), ("policy", "multi"))
    found = [values["nexo_connections", (*labels, ("process", name), ("state", "signed_in"))] for name in "12"]
    assert found == [2, 5]
    stage = ("stage", "queue")
    assert [values["nexo_send_stage_seconds_bucket", (("le", le), stage)] for le in ("0.1", "1", "+Inf")] == [1, 2, 3]
    assert values["nexo_send_stage_seconds_sum", (stage,)] == pytest.approx(5.55)


def test_what_another_version_counts_differently_is_left_out_of_the_sum() -> None:
    stranger = [Sample("nexo_of_the_future_total", (), 1.0), Sample("nexo_sends_total", ("saved", "more"), 9.0)]
    merged = merge_snapshots({"1": encode_snapshot(process(3, 2)), "2": encode_snapshot(stranger)})
    assert told(encode_text(merged)[0])["nexo_sends_total", (("result", "saved"),)] == 3
    with pytest.raises(msgspec.DecodeError):
        merge_snapshots({"1": b"half a snaps"})


def test_every_family_has_a_name_that_says_its_unit_and_a_meaning() -> None:
    for family in FAMILIES.values():
        assert family.name.startswith(("nexo_", "process_", "python_")), family.name
        assert family.name.endswith("_total") is (family.kind is MetricKind.COUNTER), family.name
        assert family.meaning.endswith("."), family.name
        if family.kind is MetricKind.HISTOGRAM:
            assert family.name.endswith(("_seconds", "_size")), family.name


def test_a_source_is_asked_each_time() -> None:
    metrics = Metrics()
    counts = iter(range(1, 10))
    metrics.add(lambda: [f.SENDS(next(counts), "saved")])
    assert [metrics.samples()[0].value for _ in range(3)] == [1, 2, 3]
