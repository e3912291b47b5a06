"""Measures the figures to reach, row by row, each with a command to repeat it.

    .venv/bin/python bench/targets.py                                  all rows, about a quarter of an hour
    .venv/bin/python bench/targets.py --rows G4,G4b,H1 --quick
    .venv/bin/python bench/targets.py --markdown docs/benchmarks.md    and write them into the page
    .venv/bin/python bench/targets.py --rows S5 --ten-million          some minutes and 3 GB more

Several rounds where the speed of the machine varies: the median counts, the best is shown beside it. Beside every row
stands what else the machine did meanwhile; a row that was disturbed is worth another try. `--markdown` replaces the
rows that were measured and leaves all other rows as they were.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import resource
import sqlite3
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nexo import __version__
from nexo.bench.processes import this_machine
from page import part, replace_part
from target_rows import ROWS, CouldNotMeasure, Outcome, Row, Scale, fdatasync_ms, percentile

SCRIPT = "targets.py"
STEAL_MAX, OTHERS_MAX = 0.02, 0.10
console = Console(width=160)


class Surroundings:
    """What the machine did beside a row: stolen time, load, and the CPU of processes that are not ours."""

    def __enter__(self) -> Surroundings:
        self._before, self._own, self._began = _cpu_s(), _own_cpu_s(), time.time()
        return self

    def __exit__(self, *_: object) -> None:
        (busy, stolen, whole), own = _cpu_s(), _own_cpu_s() - self._own
        busy, stolen, whole = busy - self._before[0], stolen - self._before[1], max(0.01, whole - self._before[2])
        self.seconds = time.time() - self._began
        self.steal = stolen / whole
        self.others = max(0.0, busy - own) / whole
        self.load = os.getloadavg()[0]

    @property
    def disturbed(self) -> bool:
        return self.steal > STEAL_MAX or self.others > OTHERS_MAX

    def __str__(self) -> str:
        text = f"load {self.load:.1f}, steal {self.steal:.1%}, others {self.others:.0%}"
        return f"**disturbed**: {text}" if self.disturbed else text


def _cpu_s() -> tuple[float, float, float]:
    """Busy, stolen and all there was, over all cores."""
    ticks = os.sysconf("SC_CLK_TCK")
    values = [int(value) / ticks for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _waiting, irq, soft, stolen = values
    return user + nice + system + irq + soft, stolen, sum(values)


def _own_cpu_s() -> float:
    """Of this process and of all that ended among those it started."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


@dataclass
class Recorded:
    """One row as it was found; `reached` is aim, must, no, or not measured."""

    number: str
    what: str
    must: str
    aim: str
    measured: str
    reached: str
    command: str
    when: str
    surroundings: str
    seconds: float

    def markdown(self) -> str:
        command = f"`{self.command}`" if self.command else ""
        cells = (self.number, self.what, self.must, self.aim, self.measured, self.reached, command,
                 f"{self.when}; {self.surroundings}")  # fmt: skip
        return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def take(row: Row, scale: Scale) -> Recorded:
    with Surroundings() as around:
        try:
            found = row.measure(scale)
        except Exception as error:  # one row that does not run does not stop the rest
            why = str(error) if isinstance(error, CouldNotMeasure) else f"{type(error).__name__}: {error}"
            found = Outcome("not measured: " + " ".join(why.split()), False, False, "")
    if scale.quick and row.quick_differs and found.command:
        found.measured = f"quick ({row.quick_differs}): {found.measured}"
    reached = "aim" if found.aim else "must" if found.must else "**no**" if found.command else "–"
    when = datetime.datetime.now(datetime.UTC).strftime("%m-%d %H:%M")
    return Recorded(
        row.number, row.what, row.must, row.aim, found.measured, reached, found.command, when, str(around),
        around.seconds,
    )  # fmt: skip


def facts() -> str:
    machine = this_machine()
    disk = fdatasync_ms(1000)
    today = datetime.datetime.now(datetime.UTC).date()
    return (
        f"Recorded on {today}: {machine.processor}, {machine.cores} cores, {machine.memory_mib / 1024:.0f} GiB, "
        f"{machine.system}, Python {machine.python}, SQLite {sqlite3.sqlite_version}, Nexo {__version__}; "
        f"fdatasync of its disk p50 {percentile(disk, 0.5):.2f} ms, p99 {percentile(disk, 0.99):.2f} ms. "
        f"Medians, the best round in brackets; *disturbed* is a row beside which others used more than "
        f"{OTHERS_MAX:.0%} of the machine or the host took more than {STEAL_MAX:.0%}."
    )


def write_markdown(page: Path, told: str, recorded: list[Recorded]) -> None:
    """Into the part between the marks: new rows where there are new ones, else the old ones."""
    old = part(page, SCRIPT)
    lines = {number: line for line, number in re.findall(r"^(\| (\w+) \| .*)$", old, re.MULTILINE)}
    lines |= {one.number: one.markdown() for one in recorded}
    table = ["| # | what | must | aim | measured | reached | command | when, and the machine beside it |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in ROWS:
        unmeasured = f"| {row.number} | {row.what} | {row.must} | {row.aim} | not measured yet | – | | |"
        table.append(lines.get(row.number, unmeasured))
    replace_part(page, SCRIPT, f"{told}\n\n" + "\n".join(table))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help="only these: " + ",".join(row.number for row in ROWS))
    parser.add_argument("--quick", action="store_true", help="one round, shorter; the table says where it is less")
    parser.add_argument("--ten-million", action="store_true", help="S5 with 10⁷ messages, as the row says")
    parser.add_argument("--markdown", type=Path, help="the page whose generated part is to be replaced")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    wanted = options.rows.split(",") if options.rows else [row.number for row in ROWS]
    unknown = set(wanted) - {row.number for row in ROWS}
    if unknown:
        parser.error(f"there is no row {', '.join(sorted(unknown))}")
    scale = Scale(options.quick, options.ten_million)
    told = facts()
    console.print(told, highlight=False)
    recorded = []
    for row in ROWS:
        if row.number in wanted:
            one = take(row, scale)
            recorded.append(one)
            text = f"{one.number:4} {one.reached:6} {one.measured}  [{one.seconds:.0f} s; {one.surroundings}]"
            console.print(text, highlight=False, markup=False)
            if options.markdown:
                write_markdown(options.markdown, told, recorded)
            if options.json:
                options.json.write_text(json.dumps([asdict(one) for one in recorded], indent=1, ensure_ascii=False))
    table = Table("#", "what", "must", "aim", "measured", "reached", "s")
    for one in recorded:
        table.add_row(one.number, one.what, one.must, one.aim, one.measured, one.reached, f"{one.seconds:.0f}")
    console.print(table)
    return 0 if all(one.reached in ("must", "aim") for one in recorded) else 1


if __name__ == "__main__":
    sys.exit(main())
