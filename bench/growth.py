"""How cost grows: with the batch, connections, conversations, members of a group, stored messages and instances.

    .venv/bin/python bench/growth.py                               all plots, about a quarter of an hour
    .venv/bin/python bench/growth.py --only batch,members --short
    .venv/bin/python bench/growth.py --markdown docs/benchmarks.md

Each figure becomes a plot in docs/images, `growth-<name>.svg`, and a line of docs/images/growth.json; what is not
measured in a run stays as it was. SQLite unless stated otherwise, servers on one core, medians.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import uvloop

import reads
import store
from nexo.bench.plots import HEIGHT, WIDTH, PlotLine, growth_plot
from page import replace_part
from target_rows import HERE, bench, script

IMAGES = HERE.parent / "docs" / "images"
TONES = ("#3457d5", "#d97a0b", "#3fa58a", "#c2304c", "#66707f", "#8a5cd6")
STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#66707f}.title{font-size:14px;font-weight:600;fill:#1b2430}"
    ".grid{stroke:#e4e8ee}.line{fill:none;stroke-width:2;stroke-linejoin:round}.page{fill:#fff}"
    + "".join(f".t{i}.line{{stroke:{tone}}}.t{i}{{fill:{tone}}}.line.t{i}{{fill:none}}" for i, tone in enumerate(TONES))
)

Found = tuple[list[float], dict[str, list[float]], str]  # what grows, the lines, and their unit


def batch(short: bool) -> Found:
    sizes = [1, 8, 64, 512] if short else [1, 4, 16, 64, 256, 1024]
    found = uvloop.run(store.compare("sqlite", sizes, 3, 0.5 if short else 1.5))
    lines = {"Nexo": [row["nexo"] for row in found], "bare SQL loop": [row["bare"] for row in found]}
    return [*map(float, sizes)], lines, "messages/s"


def connections(short: bool) -> Found:
    """Pairs that chat with one message under way each: the load is the same for any number of instances."""
    most = (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500) // 1000 * 1000  # files that one process may open
    sizes = [100, 1000] if short else [100, 1000, 5000, min(20_000, most)]
    flags = "--rate 1000 --seconds 5 --pin --no-check --verify sample"
    found = [bench(f"single --pairs {size // 2} {flags}") for size in sizes]
    lines = {
        "server CPU, ms per 1,000 messages": [1000 * one["server"]["cpu_s"] / one["seconds"] for one in found],
        "server memory, MiB": [one["server"]["rss_after_mib"] for one in found],
    }
    return [*map(float, sizes)], lines, "at 1,000 messages/s"


def conversations(short: bool) -> Found:
    sizes = [1, 100, 1000] if short else [1, 10, 100, 1000, 10_000]
    rates = uvloop.run(store.spread("sqlite", sizes, 3, 0.5 if short else 2.0))
    return [*map(float, sizes)], {"messages/s": [statistics.median(rates[size]) for size in sizes]}, "messages/s"


def members(short: bool) -> Found:
    sizes = [3, 100, 1000] if short else [3, 30, 300, 3000, 10_000, 100_000]
    found = uvloop.run(store.group_sizes("sqlite", sizes))
    lines = {"rows written": [rows for _, rows, _ in found], "CPU, µs": [cost for *_, cost in found]}
    return [*map(float, sizes)], lines, "per message"


def history(short: bool) -> Found:
    sizes = [10_000, 100_000] if short else [10_000, 100_000, 1_000_000, 10_000_000]
    return [*map(float, sizes)], uvloop.run(reads.by_size("sqlite", sizes, 20)), "ms"


def instances(short: bool) -> Found:
    """Of instances.py, which shares the machine with them: CPU per message, not throughput. Each crosses the bus."""
    names = ("1", "2-far", "3-far")
    rounds, seconds = ("1", "2") if short else ("3", "4")
    flags = f"--only {','.join(names)} --rounds {rounds} --seconds {seconds}"
    found = script(f"instances.py {flags}")
    lines = {
        shown: [found[name][key] for name in names]
        for shown, key in (("instances", "**all instances**"), ("database", "database"), ("Redis", "Redis"))
    }
    return [1.0, 2.0, 3.0], lines, "CPU µs per message, PostgreSQL"


PLOTS: dict[str, tuple[str, Callable[[bool], Found]]] = {
    "batch": ("Sends in flight (one transaction takes them all)", batch),
    "connections": ("Connections", connections),
    "conversations": ("Conversations that are written into", conversations),
    "members": ("Members of a group", members),
    "history": ("Messages stored", history),
    "instances": ("Instances", instances),
}


def svg(title: str, found: Found) -> str:
    xs, values, unit = found
    lines = [PlotLine(name, list(line), f"t{i}") for i, (name, line) in enumerate(values.items())]
    plot = growth_plot(xs, lines, unit, title)
    legend = "".join(
        f'<circle class="t{i}" cx="{62 + 640 / len(lines) * i:.0f}" cy="{HEIGHT + 40}" r="4"/>'
        f'<text x="{72 + 640 / len(lines) * i:.0f}" y="{HEIGHT + 44}">{escape(line.name)}</text>'
        for i, line in enumerate(lines)
    )
    inner = plot[plot.index(">") + 1 : plot.rindex("</svg>")]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -30 {WIDTH} {HEIGHT + 85}" role="img">'
        f'<title>{escape(title)}</title><style>{STYLE}</style><rect class="page" y="-30" width="{WIDTH}" '
        f'height="{HEIGHT + 85}"/><text class="title" x="56" y="-8">{escape(title)}</text>{inner}{legend}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PLOTS), help="some of " + ",".join(PLOTS))
    parser.add_argument("--short", action="store_true", help="fewer and smaller steps")
    parser.add_argument("--into", type=Path, default=IMAGES)
    parser.add_argument("--markdown", type=Path, help="the page whose generated part is to be replaced")
    options = parser.parse_args()
    record = options.into / "growth.json"
    kept = json.loads(record.read_text()) if record.exists() else {}
    for name in options.only.split(","):
        title, work = PLOTS[name]
        began = time.monotonic()
        found = work(options.short)
        (options.into / f"growth-{name}.svg").write_text(svg(title, found))
        today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
        load = round(os.getloadavg()[0], 1)
        kept[name] = {"at": today, "load": load, "short": options.short, "x": found[0], "y": found[1], "unit": found[2]}
        record.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        sys.stdout.write(f"{name}: {found[1]} ({time.monotonic() - began:.0f} s)\n")
        sys.stdout.flush()
    if options.markdown:
        replace_part(options.markdown, "growth.py", markdown(kept))


def markdown(kept: dict[str, dict[str, Any]]) -> str:
    shown = [(name, title) for name, (title, _) in PLOTS.items() if name in kept]
    pictures = "\n".join(f"![{title}](images/growth-{name}.svg)" for name, title in shown)
    when = ", ".join(f"{name} {kept[name]['at']} (load {kept[name]['load']})" for name, _ in shown)
    return f"{pictures}\n\nRecorded: {when}."


if __name__ == "__main__":
    main()
