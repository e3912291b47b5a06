"""Rows R1 and C1: what a dead Redis adds to a send, and what an idle instance costs while others work.

    .venv/bin/python bench/redis_rows.py
    .venv/bin/python bench/redis_rows.py --rows C1 --seconds 10

Instances on one private PostgreSQL and one private Redis, all on this machine; load and verdict are those of
`nexo bench`, the two of each pair on different instances. R1: at 200 messages a second, Redis is measured alive and
killed, alive and hanging, in turn; each time the breaker gets time to open. What an outage adds is the median, over
the rounds, of its difference to the measurement just before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import processes
from harness.cluster import Cluster
from harness.migrated import migrated_database
from harness.servers import Redis
from nexo.bench.plan import Plan, Scenario, completed
from nexo.bench.processes import usage_of
from nexo.bench.result import Result, ServerFacts
from nexo.bench.run import TargetServer, measure

OPEN = {
    "limits__acks_per_s": 0,
    "limits__inflight_sends": 0,
    "limits__connections_per_user": 0,
    "limits__connections_per_ip": 0,
    "store__pool_size": 8,
}
BREAKER_S = 5.0  # more than every time-out on the way to a Redis that hangs
BACK_S = 5.0  # instances look for it once a second; then everything is registered again
DRAIN_S = 5.0  # without Redis receipts between instances do not come; messages do, within a second or two
RATE = 200.0


@contextmanager
def cluster(instances: int) -> Iterator[tuple[Cluster, Redis]]:
    folder = processes.new_dir("bench")
    with (
        migrated_database("postgresql", folder) as url,
        Redis() as redis,
        Cluster(url, redis.url, instances, **OPEN) as running,
    ):
        yield running, redis


def load(urls: list[str], pids: list[int], *, without_redis: bool = False, **what: Any) -> Result:
    """Green, or it ends here; receipts between instances need Redis, and come with the next SYNC without it."""
    plan = Plan(
        scenario=Scenario.single,
        urls=urls,
        warmup_s=1.0,
        drain_s=DRAIN_S if without_redis else 30.0,
        seed=secrets.randbits(40),
        run_id=secrets.token_hex(3),
        **what,
    )
    result = asyncio.run(
        measure(completed(plan), TargetServer(ServerFacts(True, "postgresql", {}), pids), 1, lambda ticks: None)
    )
    reasons = [reason for reason in result.verdict.reasons if not (without_redis and "receipts" in reason)]
    if reasons:
        raise SystemExit(f"not accounted for: {reasons}")
    return result


def dead_redis(seconds: float, rounds: int) -> dict[str, Any]:
    found: dict[str, list[float]] = {"alive": [], "killed": [], "hanging": []}
    added: dict[str, list[float]] = {"killed": [], "hanging": []}
    with cluster(2) as (running, redis):
        urls = [instance.address for instance in running.instances]

        def take(state: str) -> float:
            result = load(urls, [], without_redis=state != "alive", pairs=20, rate=RATE, seconds=seconds)
            found[state].append(result.latencies["saved"].p99)
            return found[state][-1]

        def without(state: str, begin: Callable[[], object], end: Callable[[], object]) -> None:
            before = take("alive")
            begin()
            time.sleep(BREAKER_S)
            added[state].append(take(state) - before)
            end()
            time.sleep(BACK_S)

        load(urls, [], pairs=20, rate=RATE, seconds=1.0)  # not counted: what comes first finds everything cold
        for _ in range(rounds):
            without("killed", redis.kill, redis.start)
            without("hanging", redis.pause, redis.resume)
    return {"p99_ms": found, "added_ms": {state: statistics.median(values) for state, values in added.items()}}


def idle_instance(seconds: float) -> dict[str, Any]:
    with cluster(3) as (running, _):
        *busy, idle = running.instances
        before, began = usage_of([idle.pid]).cpu_s, time.monotonic()
        result = load([one.address for one in busy], [one.pid for one in busy], pairs=60, window=8, seconds=seconds)
        share = (usage_of([idle.pid]).cpu_s - before) / (time.monotonic() - began)
    return {"idle_share": share, "saved_per_s": result.saved_per_s, "busy_share": result.server.cpu_share}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="R1,C1")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of R1")
    parser.add_argument("--json", type=Path, help="write what was found to this file, too")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    if "R1" in options.rows:
        found["R1"] = dead_redis(options.seconds, options.rounds)
        medians = {state: statistics.median(values) for state, values in found["R1"]["p99_ms"].items()}
        text = ", ".join(f"{state} {value:.2f} ms" for state, value in medians.items())
        more = ", ".join(f"{state} {value:+.2f} ms" for state, value in found["R1"]["added_ms"].items())
        sys.stdout.write(f"R1: p99 of a send with Redis {text}; added: {more}\n")
    if "C1" in options.rows:
        found["C1"] = idle_instance(options.seconds)
        sys.stdout.write(f"C1: an idle instance uses {found['C1']['idle_share']:.2%} of a core\n")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
