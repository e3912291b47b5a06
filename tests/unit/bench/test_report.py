"""The report: one file, nothing loaded, everything escaped, and plots that show what was measured."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from nexo.bench.capacity import CapacitySearch
from nexo.bench.counts import Counts, Interval, Proof, WorkerResult
from nexo.bench.histogram import Histogram
from nexo.bench.plan import Plan, Scenario, completed
from nexo.bench.plots import PlotLine, bars, growth_plot, nice_step, number, time_plot
from nexo.bench.processes import Usage
from nexo.bench.report import render
from nexo.bench.result import Result, ServerFacts, Trial, assemble
from nexo.bench.watching import ServerPoint, growth_mib_per_min


def histogram_of(*values_us: int) -> Histogram:
    histogram = Histogram()
    for value in values_us:
        histogram.record(value)
    return histogram


def result_of(**counts: object) -> Result:
    plan = completed(Plan(scenario=Scenario.single, seconds=3, warmup_s=1, urls=["http://here"], rate=100.0))
    latencies = {"saved": histogram_of(*range(500, 1500, 10)).packed()}
    intervals = [Interval(100, 100, 100, 0, latencies) for _ in range(4)] + [Interval()]
    told = Counts(sent=400, saved=400, expected=400, unique=400, received=400, lost={}, ended={}, errors={})
    for name, value in counts.items():
        setattr(told, name, value)
    proof = Proof(1, 2, 2, 800, {}, [])
    part = WorkerResult(told, proof, intervals, histogram_of(100).packed(), 0.3, 3.0, 200)
    usage = (Usage(0.0, 50 << 20), Usage(1.5, 60 << 20))
    life = [ServerPoint(i / 2, 0.5, 50 + i, {"nexo.db": 1.0 + i}, {"sends": 3.0}) for i in range(6)]
    return assemble(
        plan, [part], ServerFacts(True, "SQLite", {}), seconds=3.0, usage=usage, has_histories=True, failures=[],
        server_series=life,
    )  # fmt: skip


def test_the_warm_up_is_not_part_of_the_figures() -> None:
    result = result_of()
    assert result.saved_per_s == 100
    assert result.latencies["saved"].count == 300
    assert result.per_cpu_s == 200
    assert result.server.cpu_share == 0.5
    assert len(result.series) == 4


class Shape(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_is_whole_and_loads_nothing() -> None:
    shape = Shape()
    page = render(result_of())
    shape.feed(page)
    assert shape.links == []
    assert "script" not in shape.tags
    assert "url(" not in page
    assert shape.tags.count("svg") >= 3
    assert "✔ Green" in page


def test_the_server_is_shown_over_time() -> None:
    page = render(result_of())
    for title in ("Server CPU", "Server memory", "Database files", "Queues"):
        assert f"<figcaption>{title}" in page


def test_memory_that_grows_is_told() -> None:
    steady = [ServerPoint(float(i), 0.1, 100.0) for i in range(60)]
    growing = [ServerPoint(float(i), 0.1, 100.0 + i / 10) for i in range(60)]
    assert growth_mib_per_min(steady) == pytest.approx(0)
    assert growth_mib_per_min(growing) == pytest.approx(6)


def test_a_red_run_says_why_and_what_servers_say_is_escaped() -> None:
    page = render(result_of(missing=3, unique=397, errors={"<script>alert(1)</script>": 2}))
    assert "These figures do not count" in page
    assert "3 deliveries are missing" in page
    assert "<script>" not in page


def test_the_trials_of_a_search_are_listed() -> None:
    search = CapacitySearch(100)
    search.note(Trial(100, 100, 5.0, True))
    search.note(Trial(200, 150, 80.0, False, "p99 80.0 ms"))
    page = render(result_of(), search)
    assert "100 messages per second hold" in page
    assert "p99 80.0 ms" in page


def test_a_generator_that_is_too_busy_is_told() -> None:
    plan = completed(Plan(scenario=Scenario.single, seconds=1, warmup_s=0, urls=["http://here"]))
    part = WorkerResult(Counts(), Proof(), [Interval(), Interval()], histogram_of(1).packed(), 0.97, 1.0, 2)
    result = assemble(
        plan, [part], ServerFacts(False, "", {}), seconds=1.0, usage=None, has_histories=True, failures=[]
    )
    assert result.generator.was_bottleneck
    assert "--processes" in result.generator.why
    assert not result.verdict.ok, "nothing was sent, nothing compared"


@pytest.mark.parametrize(("span", "step"), [(0, 1), (7, 2), (10, 2), (99, 20), (0.3, 0.1), (12_345, 5000)])
def test_scales_have_round_numbers(span: float, step: float) -> None:
    assert nice_step(span) == pytest.approx(step)


def test_numbers_on_an_axis_are_short() -> None:
    assert [number(value) for value in (0, 0.25, 7, 250, 1500, 2000, 25_000)] == [
        "0", "0.25", "7", "250", "1.5k", "2k", "25k",
    ]  # fmt: skip


def test_a_line_is_broken_where_there_is_nothing_and_stays_inside() -> None:
    plot = time_plot([0.0, 1.0, 2.0, 3.0], [PlotLine("p99", [1.0, None, 3.0, 4.0], "p99")], "ms", 1.0, "x")
    path = re.search(r'class="line p99" d="([^"]+)"', plot)
    assert path is not None
    assert path.group(1).count("M") == 2
    for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.group(1)):
        assert 0 <= float(x) <= 720
        assert 0 <= float(y) <= 260


def test_growth_is_drawn_by_powers_of_ten() -> None:
    plot = growth_plot([1, 10, 100], [PlotLine("cost", [1.0, None, 2.0], "p50")], "µs", "x")
    places = [float(x) for x in re.findall(r'<text class="tick" x="([\d.]+)" y="252', plot)]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)
    assert plot.count("<circle") == 2


def test_nothing_to_draw_draws_nothing() -> None:
    assert bars([0, 0], ["", ""], "", "") == ""
    assert time_plot([0.0], [], "", 0.0, "") == ""
