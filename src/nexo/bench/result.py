"""The outcome of a run: figures, counts, proof and verdict; also the shape of `--json`."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from nexo import __version__
from nexo.bench.counts import Counts, Interval, Proof, WorkerResult
from nexo.bench.histogram import Histogram, Packed, Summary, merged_by_name
from nexo.bench.plan import COMING_BACK, Plan, Scenario
from nexo.bench.processes import Machine, Usage, this_machine
from nexo.bench.verdict import Judgement, judge
from nexo.bench.watching import LONG_S, ServerPoint, growth_mib_per_min

BUSY = 0.9  # a generator that uses more of its core than this was the bottleneck


class Point(msgspec.Struct):
    """One step of the series over time; latencies in milliseconds."""

    at_s: float
    sent_per_s: float
    saved_per_s: float
    received_per_s: float
    answered_per_s: float
    latencies: dict[str, Summary]


class ServerFacts(msgspec.Struct):
    own: bool  # started for this run
    store: str
    settings: dict[str, str]
    cpu_s: float | None = None  # during the measured time
    cpu_share: float | None = None  # of one core
    rss_before_mib: float | None = None
    rss_after_mib: float | None = None


class GeneratorFacts(msgspec.Struct):
    processes: int
    cpu_share: float  # of one core, of the busiest process
    lag_ms: Summary  # how late it did what was due
    was_bottleneck: bool
    why: str = ""


class Trial(msgspec.Struct):
    """One rate that the search for the capacity tried."""

    rate: float
    reached_per_s: float
    latency_ms: float
    held: bool
    why_not: str = ""
    was_generator: bool = False


class Result(msgspec.Struct):
    version: str
    at: str
    machine: Machine
    plan: Plan
    server: ServerFacts
    generator: GeneratorFacts
    verdict: Judgement
    seconds: float  # measured
    saved_per_s: float
    received_per_s: float
    answered_per_s: float
    per_cpu_s: float | None  # saved messages (or answers) per CPU-second of the server
    received_per_cpu_s: float | None
    latencies: dict[str, Summary]  # milliseconds
    figures: dict[str, float]
    counts: Counts
    proof: Proof
    series: list[Point]
    histograms: dict[str, Packed]  # microseconds
    server_series: list[ServerPoint] = []
    trials: list[Trial] = []


def assemble(
    plan: Plan,
    parts: Sequence[WorkerResult],
    server: ServerFacts,
    *,
    seconds: float,
    usage: tuple[Usage, Usage] | None,
    has_histories: bool,
    failures: Sequence[str],
    server_series: Sequence[ServerPoint] = (),
) -> Result:
    counts, proof = Counts(), Proof()
    for part in parts:
        counts.add(part.counts)
        proof.add(part.proof)
    first = round(plan.warmup_s / plan.step_s)
    last = max((len(part.intervals) for part in parts), default=1) - 1  # the one behind it is for what was late
    measured = [part.intervals[first:] for part in parts]
    latencies = merged_by_name(
        {name: packed.unpacked() for name, packed in interval.latencies.items()}
        for intervals in measured
        for interval in intervals
    )
    saved = sum(interval.saved for part in parts for interval in part.intervals[first:last])
    received = sum(interval.received for part in parts for interval in part.intervals[first:last])
    answered = sum(interval.answered for part in parts for interval in part.intervals[first:last])
    if usage is not None:
        server.cpu_s = usage[1].cpu_s - usage[0].cpu_s
        server.cpu_share = server.cpu_s / seconds if seconds else 0.0
        server.rss_before_mib, server.rss_after_mib = (one.rss_bytes / 2**20 for one in usage)
    all_failures = [*failures, *(failure for part in parts for failure in part.failures)]
    return Result(
        version=__version__,
        at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=this_machine(),
        plan=msgspec.structs.replace(plan, accounts=[]),
        server=server,
        generator=_generator(plan, parts, latencies),
        verdict=judge(
            counts,
            proof,
            histories_wanted=has_histories,
            allow_refusals=plan.allow_refusals or plan.allow_restarts,
            allow_restarts=plan.allow_restarts,
            one_server=len(plan.urls) < 2,
            failures=all_failures,
        ),
        seconds=seconds,
        saved_per_s=saved / seconds if seconds else 0.0,
        received_per_s=received / seconds if seconds else 0.0,
        answered_per_s=answered / seconds if seconds else 0.0,
        per_cpu_s=(saved or answered) / server.cpu_s if server.cpu_s else None,
        received_per_cpu_s=received / server.cpu_s if server.cpu_s and received else None,
        latencies={name: histogram.summary() for name, histogram in latencies.items()},
        figures=_figures(parts) | _figures_of_server(plan, _figures(parts), server) | _trend(plan, server_series),
        counts=counts,
        proof=proof,
        series=_series(plan, parts),
        histograms={name: histogram.packed() for name, histogram in latencies.items()},
        server_series=list(server_series),
    )


def _generator(plan: Plan, parts: Sequence[WorkerResult], latencies: dict[str, Histogram]) -> GeneratorFacts:
    lag = Histogram()
    for part in parts:
        lag.add(part.lag.unpacked())
    share = max((part.cpu_s / part.wall_s for part in parts if part.wall_s), default=0.0)
    summary = lag.summary()
    why = ""
    if share > BUSY:
        why = f"it used {share:.0%} of a core; give it more with --processes"
    elif plan.is_open_loop and "saved" in latencies and summary.p99 > max(2.0, latencies["saved"].summary().p99 / 4):
        why = f"1 % of the sends left {summary.p99:.1f} ms late or more"
    return GeneratorFacts(len(parts), share, summary, bool(why), why)


def _figures(parts: Sequence[WorkerResult]) -> dict[str, float]:
    """Returns the figures of all processes together. Those that end in `_ms` or `s` are the worst of all; all others
    are added up."""
    found: dict[str, float] = {}
    for part in parts:
        for name, value in part.figures.items():
            if name.endswith((" s", " ms")):
                found[name] = max(found.get(name, 0.0), value)
            else:
                found[name] = found.get(name, 0.0) + value
    return found


def _figures_of_server(plan: Plan, figures: dict[str, float], server: ServerFacts) -> dict[str, float]:
    """Returns what one client costs the server."""
    if server.cpu_s is None or server.rss_after_mib is None or server.rss_before_mib is None:
        return {}
    if plan.scenario is Scenario.connect and figures.get("connections made"):
        grown_kib = (server.rss_after_mib - server.rss_before_mib) * 1024
        return {"KiB per connection": grown_kib / figures["connections made"]}
    if plan.scenario in COMING_BACK and figures.get("clients"):
        return {"server CPU per client, ms": server.cpu_s / figures["clients"] * 1000}
    return {}


def _trend(plan: Plan, points: Sequence[ServerPoint]) -> dict[str, float]:
    if plan.seconds < LONG_S or len(points) < 10:
        return {}
    return {"server memory grows by MiB per minute": growth_mib_per_min(points)}


def _series(plan: Plan, parts: Sequence[WorkerResult]) -> list[Point]:
    points = []
    for place in range(max((len(part.intervals) for part in parts), default=1) - 1):
        here = [part.intervals[place] for part in parts if place < len(part.intervals)]
        points.append(_point(place * plan.step_s, plan.step_s, here))
    while points and not (
        points[-1].sent_per_s or points[-1].received_per_s or points[-1].answered_per_s or points[-1].latencies
    ):
        points.pop()
    return points


def _point(at_s: float, step_s: float, here: Sequence[Interval]) -> Point:
    latencies = merged_by_name({name: p.unpacked() for name, p in interval.latencies.items()} for interval in here)
    return Point(
        at_s,
        sum(interval.sent for interval in here) / step_s,
        sum(interval.saved for interval in here) / step_s,
        sum(interval.received for interval in here) / step_s,
        sum(interval.answered for interval in here) / step_s,
        {name: histogram.summary() for name, histogram in latencies.items()},
    )
