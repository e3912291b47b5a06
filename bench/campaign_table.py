"""The table of campaigns: what the runs of `bench/campaign.py --record` did, by topology.

.venv/bin/python bench/campaign_table.py runs.jsonl --markdown docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from page import replace_part

HEADER = (
    "| topology | numbers | faults | sends acknowledged | violations | longest silence, by kind of fault | "
    "memory of an instance |",
    "|---|---|---|---|---|---|---|",
)

Run = dict[str, Any]  # topology, seed, faults (name and silence), sends, violations, rss_bytes


def table(runs: Iterable[Run]) -> list[str]:
    by_topology: dict[str, list[Run]] = {}
    for run in runs:
        by_topology.setdefault(run["topology"], []).append(run)
    return [*HEADER, *(_row(topology, found) for topology, found in sorted(by_topology.items()))]


def _row(topology: str, runs: list[Run]) -> str:
    kinds: dict[str, list[float]] = {}
    for run in runs:
        for name, silence_s in run["faults"]:
            kinds.setdefault(name, []).append(silence_s)
    worst = "; ".join(f"{name} ({len(found)}) {max(found):.1f} s" for name, found in sorted(kinds.items()))
    faults = sum(len(run["faults"]) for run in runs)
    sends = sum(run["sends"] for run in runs)
    violations = sum(len(run["violations"]) for run in runs)
    memory = max(run["rss_bytes"] for run in runs) >> 20
    numbers = _numbers(sorted({run["seed"] for run in runs}))
    return f"| {topology} | {numbers} | {faults:,} | {sends:,} | {violations} | {worst} | {memory} MiB |"


def _numbers(seeds: list[int]) -> str:
    """1, 2, 3, 7 as `1-3, 7`."""
    spans: list[list[int]] = []
    for seed in seeds:
        if spans and spans[-1][1] == seed - 1:
            spans[-1][1] = seed
        else:
            spans.append([seed, seed])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--markdown", type=Path, help="write the table into this page, between its marks")
    args = parser.parse_args()
    lines = [line for file in args.records for line in file.read_text(encoding="utf-8").splitlines()]
    rows = "\n".join(table(map(json.loads, lines)))
    print(rows)
    if args.markdown:
        replace_part(args.markdown, "campaign_table.py", f"\n{rows}\n")


if __name__ == "__main__":
    main()
