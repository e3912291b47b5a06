"""A steady load: 5,000 connections, 2,500 senders, one message each per 3 s, for 60 s.

    .venv/bin/python bench/five_thousand.py
    .venv/bin/python bench/five_thousand.py --pairs 500 --seconds 15

The load generator (an independent WebSocket library) runs on the same machine and takes part of it. Every
message is followed: 100 % saved, 100 % received, no duplicates, no reordering, or the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import uvloop
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness.pair_load import Report, run_pairs
from harness.server_process import ServerProcess

console = Console(width=120)


async def measure(server: ServerProcess, options: argparse.Namespace) -> Report:
    before = server.rss_bytes
    report = await run_pairs(
        server.address,
        server.ws_address,
        options.pairs,
        interval_s=options.interval,
        duration_s=options.seconds,
        acquainted=options.acquainted,
        tell=console.print,
    )
    console.print(str(report), highlight=False)
    console.print(f"server memory {before >> 20} MiB → {server.rss_bytes >> 20} MiB", highlight=False)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2500)
    parser.add_argument("--interval", type=float, default=3.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--acquainted", action="store_true", help="the pairs have chatted before")
    options = parser.parse_args()
    with ServerProcess(log_level="warning") as server:
        report = uvloop.run(measure(server, options))
        server.stop()
        server.check()
    try:
        report.check()
    except AssertionError as error:
        console.print(f"FAILED: {error}", style="bold red")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
