"""Which database engine ran how many tests; in CI every engine must have run some.

A test belongs to an engine through the parameter `engine_name`, or `three` (a cluster on that engine). When a run
has several workers, each has servers of its own and tells the process that prints the summary about them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from harness.servers import KINDS, MariaDb, Postgres, Server, ServerUnavailable, shared

SERVER_ENGINES: dict[str, type[MariaDb] | type[Postgres]] = {"mariadb": MariaDb, "postgresql": Postgres}
ENGINES = ("sqlite", *SERVER_ENGINES)


def engine_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    engine: str | None = callspec.params.get("engine_name") or callspec.params.get("three")
    return engine


def _servers_seen() -> dict[str, dict[str, str]]:
    """By name: the version of each server that ran in this process, and why others could not."""
    seen: dict[str, dict[str, str]] = {"versions": {}, "missing": {}}
    for kind in KINDS:
        outcome = shared.seen(kind)
        if isinstance(outcome, Server):
            seen["versions"][kind.name] = outcome.version
        elif isinstance(outcome, ServerUnavailable):
            seen["missing"][kind.name] = str(outcome)
    return seen


class EngineTally:
    """A pytest plugin."""

    def __init__(self, *, every_engine_must_run: bool) -> None:
        self._every_engine_must_run = every_engine_must_run
        self._counts: dict[str, Counter[str]] = {engine: Counter() for engine in ENGINES}
        self._of_workers: list[dict[str, dict[str, str]]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        report.engine = engine_of(item)  # type: ignore[attr-defined]  # a report's attributes travel with it
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        engine = getattr(report, "engine", None)
        if engine in self._counts and (report.when == "call" or not report.passed):
            self._counts[engine][report.outcome] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker has ended. One that crashed has left nothing."""
        self._of_workers.append(getattr(node, "workeroutput", {}).get("servers", {"versions": {}, "missing": {}}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["servers"] = _servers_seen()
        if self._idle_engines() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        versions: dict[str, str] = {"sqlite": sqlite3.sqlite_version}
        missing: dict[str, str] = {}
        for seen in [_servers_seen(), *self._of_workers]:
            versions |= seen["versions"]
            missing |= seen["missing"]
        used = {engine: counts for engine, counts in self._counts.items() if counts}
        if used:
            terminalreporter.section("database engines")
            parts = (" ".join((engine, versions.get(engine, ""), _sum(counts))) for engine, counts in used.items())
            terminalreporter.write_line(f"engines: {', '.join(parts)}")
        for engine in self._idle_engines():
            terminalreporter.write_line(f"ERROR: no test passed on {engine}; CI needs all three", red=True)
        for name, reason in missing.items():
            terminalreporter.section(f"{name} is missing: its tests did not run", red=True, bold=True)
            terminalreporter.write_line(reason, red=True)

    def _idle_engines(self) -> list[str]:
        if not self._every_engine_must_run:
            return []
        return [engine for engine, counts in self._counts.items() if not counts["passed"]]


def _sum(counts: Counter[str]) -> str:
    outcomes = ("passed", "failed", "skipped")
    return " ".join(f"{counts[outcome]} {outcome}" for outcome in outcomes if counts[outcome])
