"""Two-phase acknowledgement: what it costs and what it brings. One PostgreSQL and one Redis, on this machine.

    .venv/bin/python bench/two_phase.py
    .venv/bin/python bench/two_phase.py --loads target --commits slow --seconds 10
    .venv/bin/python bench/two_phase.py --markdown docs/two-phase.md    and write the table into the page

Off, on, and on with copies delivered before they are saved; at a light load, at 833 messages a second from 2,500 of
5,000 clients, and at saturation; with the database as it is, and with 20 ms added to each commit by PostgreSQL itself
(`commit_delay`, with `commit_siblings` at 0, is how long it waits before it flushes the WAL). The load generator and
its verdict are those of `nexo bench`: every message is followed, and the histories of all participants are compared.
The exit code is 1 unless every message was saved in every cell. `saturation` is a closed loop of 60 senders with eight
messages under way each: its latencies follow from its throughput. Latencies count from the moment a message was due,
so they contain how late the generator was (`late`, p99).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness.postgres import Postgres
from harness.servers import Redis
from nexo.bench.histogram import Summary
from nexo.bench.plan import Plan, Scenario, completed
from nexo.bench.result import Result, ServerFacts
from nexo.bench.run import TargetServer, measure
from nexo.bench.server import own_server
from page import replace_part

MODES: dict[str, dict[str, str]] = {
    "off": {},
    "on": {"two_phase.enabled": "true", "two_phase.scope": "all"},
    "on, delivered first": {
        "two_phase.enabled": "true",
        "two_phase.scope": "all",
        "two_phase.deliver_before_saved": "true",
    },
}
LOADS: dict[str, dict[str, Any]] = {
    "light": {"pairs": 20, "rate": 20.0},
    "target": {"pairs": 2500, "rate": 833.0},
    "saturation": {"pairs": 60, "rate": 0.0, "window": 8},
}
COMMITS = {"healthy": 0, "slow": 20_000}  # µs that PostgreSQL adds
FIGURES = ("accepted", "saved", "first copy", "save lag")


@contextmanager
def database(delay_us: int) -> Iterator[tuple[Postgres, str]]:
    with Postgres() as server:
        set_commit_delay(server, delay_us)
        yield server, server.create_database()


def set_commit_delay(server: Postgres, delay_us: int) -> None:
    server.execute("ALTER SYSTEM SET commit_siblings = 0")
    server.execute(f"ALTER SYSTEM SET commit_delay = {delay_us}")
    server.execute("SELECT pg_reload_conf()")


def run(url: str, redis: Redis, mode: str, load: str, seconds: float) -> Result:
    plan = completed(
        Plan(
            scenario=Scenario.single,
            seconds=seconds,
            warmup_s=2.0,
            seed=secrets.randbits(40),
            run_id=secrets.token_hex(3),
            preload=LOADS[load]["pairs"],  # so that all chats exist
            **LOADS[load],
        )
    )
    redis.flush()
    with own_server(url, {"redis.url": redis.url, "store.pool_size": "8", **MODES[mode]}) as server:
        plan.urls = [server.url]
        target = TargetServer(ServerFacts(own=True, store="postgresql", settings={}), [server.pid])
        result = asyncio.run(measure(plan, target, 1, lambda ticks: None))
        wrong = server.check_store()
    if wrong:
        result.verdict.ok = False
        result.verdict.reasons.append(f"nexo check: {wrong}")
    return result


def row(commit: str, load: str, mode: str, result: Result) -> dict[str, Any]:
    latencies = dict(result.latencies)
    latencies.setdefault("first copy", latencies["received"])
    counts = result.counts
    found: dict[str, Any] = {"commits": commit, "load": load, "two-phase": mode}
    for name in FIGURES:
        summary = latencies.get(name)
        found[name] = "–" if summary is None or not summary.count else _percentiles(summary)
    found["msg/s"] = f"{result.saved_per_s:,.0f}"
    found["saved, %"] = f"{100 * counts.saved / counts.sent:g}" if counts.sent else "–"
    found["late"] = f"{result.generator.lag_ms.p99:,.1f}"
    found["server CPU"] = f"{result.server.cpu_share or 0:.0%}"
    found["true"] = "yes" if result.verdict.ok else "; ".join(result.verdict.reasons)
    return found


def _percentiles(summary: Summary) -> str:
    return " / ".join(f"{value:,.1f}" for value in (summary.p50, summary.p95, summary.p99))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """As docs/two-phase.md shows it. A row that is not proven is marked."""
    names = [name for name in rows[0] if name != "true" or any(found["true"] != "yes" for found in rows)]
    lines = [names, ["---"] * len(names), *([str(found[name]) for name in names] for found in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", nargs="*", choices=LOADS, default=list(LOADS))
    parser.add_argument("--commits", nargs="*", choices=COMMITS, default=list(COMMITS))
    parser.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path, help="add each row to this file, one per line")
    parser.add_argument("--markdown", type=Path, help="the page whose generated part is to be replaced")
    options = parser.parse_args()
    rows = []
    with Redis("appendfsync everysec") as redis, database(0) as (server, url):
        for commit in options.commits:
            set_commit_delay(server, COMMITS[commit])
            for load in options.loads:
                for mode in options.modes:
                    found = row(commit, load, mode, run(url, redis, mode, load, options.seconds))
                    rows.append(found)
                    sys.stderr.write(f"{found}\n")
                    if options.json is not None:
                        with options.json.open("a") as file:
                            file.write(json.dumps(found, ensure_ascii=False) + "\n")
    sys.stdout.write(f"p50 / p95 / p99 in ms\n\n{table(rows)}\n")
    if options.markdown:
        replace_part(options.markdown, "two_phase.py", table(rows))
    return 0 if all(found["true"] == "yes" for found in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
