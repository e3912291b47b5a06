"""Which database engine ran how many tests; in CI every engine must have run some.

A test belongs to an engine through the parameter `engine_name`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Generator

import pytest

from harness.servers import MariaDb, Postgres, Server, shared

SERVER_ENGINES: dict[str, type[MariaDb] | type[Postgres]] = {"mariadb": MariaDb, "postgresql": Postgres}
ENGINES = ("sqlite", *SERVER_ENGINES)


def engine_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("engine_name") if callspec else None


class EngineTally:
    """A pytest plugin."""

    def __init__(self, *, every_engine_must_run: bool) -> None:
        self._every_engine_must_run = every_engine_must_run
        self._counts: dict[str, Counter[str]] = {engine: Counter() for engine in ENGINES}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        engine = engine_of(item)
        if engine in self._counts and (report.when == "call" or not report.passed):
            self._counts[engine][report.outcome] += 1
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._idle_engines() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        used = {engine: counts for engine, counts in self._counts.items() if counts}
        if used:
            terminalreporter.section("database engines")
            line = ", ".join(f"{_title(engine)} {_sum(counts)}" for engine, counts in used.items())
            terminalreporter.write_line(f"engines: {line}")
        for engine in self._idle_engines():
            terminalreporter.write_line(f"ERROR: no test passed on {engine}; CI needs all three", red=True)

    def _idle_engines(self) -> list[str]:
        if not self._every_engine_must_run:
            return []
        return [engine for engine, counts in self._counts.items() if not counts["passed"]]


def _title(engine: str) -> str:
    if engine == "sqlite":
        return f"sqlite {sqlite3.sqlite_version}"
    server = shared.seen(SERVER_ENGINES[engine])
    return f"{engine} {server.version}" if isinstance(server, Server) else engine


def _sum(counts: Counter[str]) -> str:
    outcomes = ("passed", "failed", "skipped")
    return " ".join(f"{counts[outcome]} {outcome}" for outcome in outcomes if counts[outcome])
