"""The terminal: a live view during a run, and the result at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nexo.bench.capacity import Objective
from nexo.bench.counts import Tick
from nexo.bench.histogram import Summary
from nexo.bench.plan import UNTIMED, Plan
from nexo.bench.processes import usage_of
from nexo.bench.result import Result, Trial

_BARS = " ▁▂▃▄▅▆▇█"
_HISTORY = 40
_ORDER = ("starting", "signing up", "founding groups", "connecting", "preparing", "ready", "measuring",
          "waiting for the last deliveries", "comparing histories")  # fmt: skip


def sparkline(values: Sequence[float]) -> str:
    highest = max(values, default=0.0)
    if highest <= 0:
        return ""
    return "".join(_BARS[round(value / highest * (len(_BARS) - 1))] for value in values)


def describe(plan: Plan) -> str:
    """The load in one line."""
    parts = []
    if plan.pairs:
        parts.append(_count(plan.pairs, "pair"))
    if plan.groups:
        parts.append(f"{_count(plan.groups, 'group')} of {plan.members:,} ({plan.senders} send)")
    if plan.connections:
        parts.append(_count(plan.connections, "connection"))
    if plan.missed:
        parts.append(f"{plan.missed:,} messages missed by each")
    if plan.scenario not in UNTIMED:
        pace = f"open loop {plan.rate:,.0f}/s" if plan.is_open_loop else f"closed loop, window {plan.window}"
        parts.append(pace + (f" in bursts of {plan.burst}" if plan.burst > 1 else ""))
        parts.append(f"{plan.seconds:g} s after {plan.warmup_s:g} s of warm-up")
    return ", ".join(parts)


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


class LiveView:
    """A panel that updates itself on a terminal; without one, a line per phase."""

    def __init__(self, console: Console, plan: Plan, title: str, pids: Sequence[int]) -> None:
        self._console = console
        self._plan = plan
        self._title = title
        self._pids = pids
        self._rates: deque[float] = deque([0.0] * _HISTORY, _HISTORY)
        self._last: tuple[float, int, int, int, float] | None = None
        self._row = ("", "", "", "", "")
        self._said = ""
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def watch(self, ticks: Sequence[Tick]) -> None:
        if not ticks:
            return
        slowest = min(ticks, key=lambda tick: (_place(tick.phase), tick.share))
        if self._live is None:
            if slowest.phase != self._said:
                self._said = slowest.phase
                self._console.print(f"{slowest.phase} …", highlight=False)
            return
        self._note_rates(ticks)
        self._live.update(self._panel(slowest, ticks))

    def _note_rates(self, ticks: Sequence[Tick]) -> None:
        now = monotonic()
        sent, saved, received = (sum(getattr(tick, name) for tick in ticks) for name in ("sent", "saved", "received"))
        usage = usage_of(self._pids) if self._pids else None
        cpu = usage.cpu_s if usage else 0.0
        if self._last is None:
            self._last = (now, sent, saved, received, cpu)
            return
        then, *before, cpu_before = self._last
        passed = now - then
        if passed < 0.5:
            return
        per_s = [(new - old) / passed for new, old in zip((sent, saved, received), before, strict=True)]
        self._last = (now, sent, saved, received, cpu)
        self._rates.append(per_s[1] or per_s[2])
        core = f"{(cpu - cpu_before) / passed:.0%}" if usage else "–"
        memory = f"{usage.rss_bytes / 2**20:,.0f} MiB" if usage else "–"
        self._row = (f"{per_s[0]:,.0f}", f"{per_s[1]:,.0f}", f"{per_s[2]:,.0f}", core, memory)

    def _panel(self, slowest: Tick, ticks: Sequence[Tick]) -> RenderableType:
        figures = Table.grid(padding=(0, 3))
        for _ in range(4):
            figures.add_column(justify="right")
            figures.add_column()
        sent, saved, received, core, memory = self._row
        errors = sum(tick.errors for tick in ticks)
        online = f"{sum(tick.connections for tick in ticks):,}"
        p50, p99 = (f"{max(getattr(tick, name) for tick in ticks):.2f} ms" for name in ("p50_ms", "p99_ms"))
        shown = Text(f"{errors:,}", style="bold red" if errors else "green")
        figures.add_row("connections", online, "sent/s", sent or "–", "p50", p50, "server CPU", core or "–")
        figures.add_row("errors", shown, "saved/s", saved or "–", "p99", p99, "server memory", memory or "–")
        figures.add_row("", "", "received/s", received or "–")
        head = Text.assemble((f" {slowest.phase} ", "bold"), "  ", (sparkline(list(self._rates)), "cyan"))
        bar = ProgressBar(total=1.0, completed=slowest.share, width=60)
        return Panel(Group(head, bar, Text(""), figures), title=self._title, subtitle=describe(self._plan), padding=1)


def _place(phase: str) -> int:
    return _ORDER.index(phase) if phase in _ORDER else 0


def print_result(console: Console, result: Result) -> None:
    plan = result.plan
    console.print(f"[bold]{plan.scenario}[/]  {describe(plan)}", highlight=False)
    console.print(_figures_table(result))
    if result.latencies:
        console.print(_latency_table(result.latencies))
    _print_counts(console, result)
    if result.generator.was_bottleneck:
        console.print(f"[yellow]The generator was the bottleneck: {result.generator.why}.[/]", highlight=False)
    print_verdict(console, result)


def _figures_table(result: Result) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right")
    if result.saved_per_s:
        table.add_row("saved", f"{result.saved_per_s:,.0f} /s")
    if result.received_per_s:
        table.add_row("received", f"{result.received_per_s:,.0f} /s")
    if result.answered_per_s:
        table.add_row("answered", f"{result.answered_per_s:,.0f} /s")
    server = result.server
    if server.cpu_s is not None and server.cpu_share is not None:
        table.add_row("server CPU", f"{server.cpu_s:.2f} s ({server.cpu_share:.0%} of a core)")
        if result.per_cpu_s:
            table.add_row("per CPU-second", f"{result.per_cpu_s:,.0f}")
        if result.received_per_cpu_s and result.plan.groups:
            table.add_row("deliveries per CPU-second", f"{result.received_per_cpu_s:,.0f}")
        table.add_row("server memory", f"{server.rss_before_mib:,.0f} → {server.rss_after_mib:,.0f} MiB")
    for name, value in result.figures.items():
        table.add_row(name, f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}")
    generator = result.generator
    table.add_row(
        "generator",
        f"{generator.processes} × {generator.cpu_share:.0%} of a core, lag p99 {generator.lag_ms.p99:.1f} ms",
    )
    return table


def _latency_table(latencies: dict[str, Summary]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("ms", justify="left")
    for name in ("p50", "p95", "p99", "p99.9", "max", "count"):
        table.add_column(name, justify="right")
    for name, summary in latencies.items():
        values = (summary.p50, summary.p95, summary.p99, summary.p999, summary.max)
        table.add_row(name, *(f"{value:,.2f}" for value in values), f"{summary.count:,}")
    return table


def _print_counts(console: Console, result: Result) -> None:
    counts = result.counts
    if not counts.sent:
        return
    text = (
        f"sent {counts.sent:,}  "
        + (f"accepted {counts.accepted:,}  " if counts.accepted else "")
        + f"saved {counts.saved:,}  delivered {counts.delivered:,}  received {counts.received:,}  "
        f"unique {counts.unique:,} of {counts.expected:,}\n"
        f"missing {counts.missing:,}  duplicates {counts.duplicates:,}  reordered by seq {counts.reordered_by_seq:,}, "
        f"by sender {counts.reordered_by_sender:,}, by id {counts.reordered_by_id:,}  foreign {counts.foreign:,}"
    )
    if counts.errors:
        text += "\nerrors " + ", ".join(f"{reason} {count:,}" for reason, count in counts.errors.items())
    if counts.reconnects or counts.resyncs or counts.pulled:
        text += f"\nreconnects {counts.reconnects:,}  resyncs {counts.resyncs:,}  pulled {counts.pulled:,}"
    console.print(text, highlight=False)


def print_verdict(console: Console, result: Result) -> None:
    verdict, proof = result.verdict, result.proof
    if verdict.ok:
        text = "Everything is accounted for."
        if proof.histories:
            text = (
                f"Everything is accounted for: {proof.histories:,} histories of {proof.conversations:,} conversations "
                f"compared with what was acknowledged ({proof.messages:,} messages)."
            )
        console.print(f"[bold green]✔ {text}[/]", highlight=False)
    else:
        console.print("[bold red]✘ These figures do not count:[/]", highlight=False)
        for reason in verdict.reasons:
            console.print(f"  [red]{reason}[/]", highlight=False)
        for sample in proof.samples[:5]:
            console.print(f"    {sample}", style="dim", highlight=False, markup=False)
    for note in verdict.notes:
        console.print(f"  {note}", style="dim", highlight=False)


def print_trial(console: Console, trial: Trial) -> None:
    mark = "[green]✔[/]" if trial.held else "[red]✘[/]"
    text = f"{mark} {trial.rate:>10,.0f}/s   {trial.latency_ms:8.2f} ms   {trial.why_not}"
    console.print(text, highlight=False)


def print_capacity(console: Console, objective: Objective, best: Trial | None, last: Trial | None) -> None:
    if best is None:
        console.print(f"[bold red]✘ {objective} did not hold at any rate that was tried.[/]", highlight=False)
    else:
        console.print(
            f"[bold green]✔ {best.rate:,.0f} messages/s hold {objective} ({best.latency_ms:.1f} ms there).[/]",
            highlight=False,
        )
    if last is not None and last.was_generator:
        console.print("[yellow]The generator was the limit, not the server: try --processes.[/]", highlight=False)
