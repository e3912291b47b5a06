"""The report of a run as one HTML file: figures, verdict, plots. It loads nothing and works without a network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from nexo.bench.capacity import CapacitySearch
from nexo.bench.histogram import Histogram, Summary
from nexo.bench.plots import PlotLine, bars, number, percentile_plot, time_plot
from nexo.bench.report_style import STYLE
from nexo.bench.result import Result
from nexo.bench.view import describe

_METRICS = {
    "saved": ("send to saved", "From the moment a send was due until its ACK saved arrived."),
    "accepted": ("send to accepted", "From the moment a send was due until its ACK accepted arrived (two-phase)."),
    "save lag": ("accepted to saved", "Between the two acknowledgements of a send (two-phase)."),
    "received": ("send to received", "From the moment a send was due until a receiver had the message."),
    "first copy": ("send to first copy", "Until a receiver had the message, provisional or saved (two-phase)."),
    "received by slow readers": ("slow readers", "The same, for receivers that read slowly or not at all."),
    "answered": ("question to answer", "From the moment a question was due until its answer arrived."),
    "signed in": ("signing in", "From connecting until the server had sent what it sends by itself."),
    "caught up": ("coming back", "From connecting until a client held everything it had missed."),
    "history page": ("history page", "A page of history over HTTP, while other clients chat."),
}
_COLUMNS = 60


def write_report(path: Path, result: Result, search: CapacitySearch | None = None) -> None:
    path.write_text(render(result, search), encoding="utf-8")


def render(result: Result, search: CapacitySearch | None = None) -> str:
    title = f"nexo bench {result.plan.scenario}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head><body><main>'
        f"{''.join(_sections(result, search))}</main></body></html>\n"
    )


def _sections(result: Result, search: CapacitySearch | None) -> Iterator[str]:
    yield _head(result)
    yield _verdict(result)
    yield _tiles(result)
    if search is not None:
        yield _capacity(search)
    yield _latency_table(result.latencies)
    yield _over_time(result)
    yield _distributions(result)
    yield _counts(result)
    yield _circumstances(result)


def _head(result: Result) -> str:
    return (
        f"<header><p class=brand>Nexo <span>load test</span></p><h1>{escape(result.plan.scenario)}</h1>"
        f"<p class=sub>{escape(describe(result.plan))}</p></header>"
    )


def _verdict(result: Result) -> str:
    verdict, proof = result.verdict, result.proof
    if verdict.ok:
        text = "Everything is accounted for."
        if proof.histories:
            text += (
                f" {proof.histories:,} histories of {proof.conversations:,} conversations say exactly what was "
                f"acknowledged ({proof.messages:,} messages)."
            )
        inner = f"<strong>✔ Green</strong><p>{text}</p>"
    else:
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in verdict.reasons)
        samples = "".join(f"<li>{escape(sample)}</li>" for sample in proof.samples[:10])
        inner = f"<strong>✘ These figures do not count</strong><ul>{reasons}</ul>"
        inner += f"<ul class=samples>{samples}</ul>" if samples else ""
    notes = list(verdict.notes)
    if result.generator.was_bottleneck:
        notes.append(f"The generator was the bottleneck: {result.generator.why}.")
    if notes:
        inner += "<ul class=notes>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"
    return f'<section class="verdict {"ok" if verdict.ok else "bad"}">{inner}</section>'


def _tiles(result: Result) -> str:
    tiles: list[tuple[str, str, str]] = []
    for name, value in (
        ("saved", result.saved_per_s),
        ("received", result.received_per_s),
        ("answered", result.answered_per_s),
    ):
        if value:
            tiles.append((f"{value:,.0f}", "/s", name))
    main = next((result.latencies[name] for name in _METRICS if name in result.latencies), None)
    if main is not None:
        tiles.append((f"{main.p50:,.2f}", "ms", "median"))
        tiles.append((f"{main.p99:,.2f}", "ms", "p99"))
    if result.received_per_cpu_s and result.plan.groups:
        tiles.append((f"{result.received_per_cpu_s:,.0f}", "", "deliveries per CPU-second of the server"))
    elif result.per_cpu_s:
        tiles.append((f"{result.per_cpu_s:,.0f}", "", "per CPU-second of the server"))
    if result.server.cpu_share is not None:
        tiles.append((f"{result.server.cpu_share:.0%}", "", "of a core, server"))
    if result.server.rss_after_mib is not None:
        tiles.append((f"{result.server.rss_after_mib:,.0f}", "MiB", "server memory"))
    for name, value in result.figures.items():
        tiles.append((f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}", "", name))
    shown = "".join(
        f"<div class=tile><b>{escape(value)}<small> {unit}</small></b><span>{escape(name)}</span></div>"
        for value, unit, name in tiles
    )
    return f"<section class=tiles>{shown}</section>"


def _capacity(search: CapacitySearch) -> str:
    rows = "".join(
        f"<tr class={'held' if trial.held else 'broke'}><td>{trial.rate:,.0f}/s<td>{trial.reached_per_s:,.0f}/s"
        f"<td>{trial.latency_ms:,.2f} ms<td>{'holds' if trial.held else escape(trial.why_not)}</tr>"
        for trial in search.trials
    )
    best = search.best
    text = f"{best.rate:,.0f} messages per second hold." if best else "No rate that was tried holds."
    head = "<tr><th>offered<th>saved<th>latency<th></tr>"
    return f"<section><h2>Capacity</h2><p>{text}</p><table>{head}{rows}</table></section>"


def _latency_table(latencies: dict[str, Summary]) -> str:
    if not latencies:
        return ""
    rows = ""
    for name, one in latencies.items():
        title, help_text = _METRICS.get(name, (name, ""))
        values = "".join(f"<td>{value:,.2f}" for value in (one.p50, one.p95, one.p99, one.p999, one.max))
        rows += f"<tr><td>{escape(title)}<span class=help>{escape(help_text)}</span>{values}<td>{one.count:,}</tr>"
    head = "<tr><th>milliseconds<th>p50<th>p95<th>p99<th>p99.9<th>max<th>count</tr>"
    return f"<section><h2>Latency</h2><table class=wide>{head}{rows}</table></section>"


def _over_time(result: Result) -> str:
    times = [point.at_s for point in result.series]
    warmup_s = result.plan.warmup_s
    parts = []
    flows = [
        PlotLine(name, [float(getattr(point, f"{key}_per_s")) for point in result.series], key)
        for name, key in (
            ("due to be sent", "sent"),
            ("saved", "saved"),
            ("received", "received"),
            ("answered", "answered"),
        )
        if any(getattr(point, f"{key}_per_s") for point in result.series)
    ]
    received = next((line for line in flows if line.tone == "received"), None)
    others = [line for line in flows if line.tone != "received"]
    # deliveries of a large group would press everything else to the ground
    apart = received is not None and max(filter(None, received.values), default=0.0) > 5 * max(
        (value for line in others for value in line.values if value), default=0.0
    )
    shown = others if apart else flows
    parts.append(_figure("Throughput", time_plot(times, shown, "per second", warmup_s, "Throughput"), shown))
    if apart and received is not None:
        plot = time_plot(times, [received], "per second", warmup_s, "Deliveries")
        parts.append(_figure("Deliveries", plot, [received]))
    for name in _METRICS:
        if any(name in point.latencies for point in result.series):
            parts.append(_latency_over_time(result, times, name))
    parts += _server_over_time(result)
    return f"<section><h2>Over time</h2><div class=figures>{''.join(parts)}</div></section>"


_TONES = ("saved", "received", "p99", "p999", "sent", "answered")


def _server_over_time(result: Result) -> Iterator[str]:
    """What the server used, the size of its files, and what waited in it."""
    points = result.server_series
    yield _server_plot(result, "Server CPU", "% of a core", {"CPU": [100 * point.cpu_share for point in points]})
    yield _server_plot(result, "Server memory", "MiB", {"resident": [point.rss_mib for point in points]})
    files = sorted({name for point in points for name in point.files_mib})
    sizes = {name: [point.files_mib.get(name) for point in points] for name in files}
    yield _server_plot(result, "Database files", "MiB", sizes)
    asked = [point for point in points if point.queues]
    queues = sorted({name for point in asked for name, length in point.queues.items() if length})
    lengths = {name: [point.queues.get(name) for point in asked] for name in queues}
    yield _server_plot(result, "Queues", "waiting", lengths, [point.at_s for point in asked])


def _server_plot(
    result: Result, title: str, unit: str, values: Mapping[str, list[float | None]], times: list[float] | None = None
) -> str:
    if times is None:
        times = [point.at_s for point in result.server_series]
    lines = [PlotLine(name, line, _TONES[i % len(_TONES)]) for i, (name, line) in enumerate(values.items())]
    return _figure(title, time_plot(times, lines, unit, result.plan.warmup_s, title), lines)


def _latency_over_time(result: Result, times: list[float], name: str) -> str:
    lines = [
        PlotLine(
            label,
            [getattr(point.latencies[name], key) if name in point.latencies else None for point in result.series],
            key,
        )
        for label, key in (("p99.9", "p999"), ("p99", "p99"), ("p95", "p95"), ("p50", "p50"))
    ]
    title = f"Latency, {_METRICS[name][0]}"
    return _figure(title, time_plot(times, lines, "ms", result.plan.warmup_s, title), lines)


def _figure(title: str, plot: str, lines: list[PlotLine]) -> str:
    if not plot:
        return ""
    legend = "".join(f'<span><i class="{line.tone}"></i>{escape(line.name)}</span>' for line in reversed(lines))
    return f"<figure><figcaption>{escape(title)}<span class=legend>{legend}</span></figcaption>{plot}</figure>"


def _distributions(result: Result) -> str:
    parts = []
    for name, packed in result.histograms.items():
        histogram = packed.unpacked()
        if histogram.count < 20:
            continue
        title = _METRICS.get(name, (name, ""))[0]
        parts.append(_figure(f"Distribution, {title}", _histogram_plot(histogram, title), []))
        points = [(percent, histogram.percentile_us(percent) / 1000) for percent in _percents(histogram.count)]
        parts.append(_figure(f"Percentiles, {title}", percentile_plot(points, "ms", title), []))
    return f"<section><h2>Distribution</h2><div class=figures>{''.join(parts)}</div></section>" if parts else ""


def _histogram_plot(histogram: Histogram, label: str) -> str:
    """Columns of equal width on a logarithmic scale, from the fastest to the slowest."""
    low = max(1.0, histogram.percentile_us(0.05))
    high = max(low * 2, float(histogram.max_us))
    ratio = (high / low) ** (1 / _COLUMNS)
    edges = [low * ratio**i for i in range(1, _COLUMNS + 1)]
    counts = list(histogram.columns(edges))
    counts[-2] += counts.pop()  # the maximum itself lies on the last edge
    starts = [low * ratio**i for i in range(_COLUMNS)]
    texts = [f"{number(start / 1000)} ms" if i % 10 == 0 else "" for i, start in enumerate(starts)]
    return bars(counts, texts, "messages", label)


def _percents(count: int) -> Iterator[float]:
    """Returns percentiles that approach a hundred, as far as there are enough values."""
    step = 0
    while True:
        percent = 100 - 100 / 10 ** (step / 20)
        if percent >= 99.99 or count * (1 - percent / 100) < 1:
            yield min(99.99, 100 - 100 / max(count, 2)) if math.isfinite(percent) else 99.99
            return
        yield percent
        step += 1


def _counts(result: Result) -> str:
    counts = result.counts
    if not counts.sent:
        return ""
    rows = [
        ("sent", counts.sent), ("accepted", counts.accepted), ("saved", counts.saved), ("refused", counts.refused),
        ("unanswered", counts.unanswered), ("delivery receipts", counts.delivered), ("received", counts.received),
        ("unique", counts.unique), ("expected", counts.expected), ("missing", counts.missing),
        ("duplicates", counts.duplicates), ("repeated (after reconnects)", counts.repeated),
        ("reordered by seq", counts.reordered_by_seq), ("reordered by sender", counts.reordered_by_sender),
        ("reordered by server_msg_id", counts.reordered_by_id), ("foreign", counts.foreign),
        ("pulled", counts.pulled), ("resyncs", counts.resyncs), ("reconnects", counts.reconnects),
    ]  # fmt: skip
    named = [(f"error {reason}", count) for reason, count in counts.errors.items()]
    named += [(f"connections lost, {reason}", count) for reason, count in counts.lost.items()]
    named += [(f"connections ended, {reason}", count) for reason, count in counts.ended.items()]
    cells = "".join(f"<div><span>{escape(name)}</span><b>{count:,}</b></div>" for name, count in rows + named)
    return f"<section><h2>Every message</h2><div class=ledger>{cells}</div></section>"


def _circumstances(result: Result) -> str:
    machine, generator, server = result.machine, result.generator, result.server
    settings = ", ".join(f"{key}={value}" for key, value in server.settings.items())
    rows = [
        ("when", result.at),
        ("Nexo", f"{result.version}, {'started for this run' if server.own else ', '.join(result.plan.urls)}"),
        ("store", server.store),
        ("settings", settings or "defaults without limits" if server.own else "the server's own"),
        ("machine", f"{machine.processor}, {machine.cores} cores, {machine.memory_mib / 1024:,.0f} GiB"),
        ("system", f"{machine.system}, Python {machine.python}"),
        ("generator", f"{generator.processes} processes, the busiest at {generator.cpu_share:.0%} of a core"),
        ("generator's lag", f"p50 {generator.lag_ms.p50:.2f} ms, p99 {generator.lag_ms.p99:.2f} ms"),
        (
            "dialect",
            f"{result.plan.dialect}, acknowledgements: {result.plan.acks}, {result.plan.body_bytes} characters",
        ),
    ]
    cells = "".join(f"<tr><th>{escape(name)}<td>{escape(value)}</tr>" for name, value in rows)
    return f"<section><h2>Circumstances</h2><table class=facts>{cells}</table></section>"
