"""Measures this checkout against another one in turns, so that the machine's mood meets both alike.

    git worktree add ../other v0.1 && make -C ../other .venv/.ready-test && .venv/bin/python bench/turns.py ../other
    .venv/bin/python bench/turns.py ../other --only G4,G7 --rounds 7
    .venv/bin/python bench/turns.py ../other --set search.enabled=false    for this checkout: the other has no search

Each row is one load, on the embedded default unless it names another store: of `nexo bench` with the sources of that
checkout, or a script in its folder `bench`, run by the `.venv` of that checkout when it has one. The ratio is that of
the medians; above 1 this checkout is better.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parents[1]

Report = Any  # the JSON of a run


class Figure(NamedTuple):
    name: str
    read: Callable[[Report], float]
    less_is_better: bool = False


class Load(NamedTuple):
    command: str  # of `nexo bench`, or a script (`store.py …`)
    figures: tuple[Figure, ...]


def _figure(name: str) -> Figure:
    return Figure(name, lambda report: report["figures"][name], less_is_better=True)


def _latency(kind: str, share: str) -> Figure:
    return Figure(f"{kind} {share}, ms", lambda report: report["latencies"][kind][share], less_is_better=True)


def _cpu_us(count: str) -> Figure:
    """Returns the server's CPU time for each of what the report counts so."""
    return Figure(
        f"CPU µs per {count}",
        lambda report: report["server"]["cpu_s"] * 1e6 / report["counts"][count],
        less_is_better=True,
    )


def _of_store(row: str, engine: str, part: str) -> Figure:
    return Figure(f"{engine} {part}", lambda report: statistics.median(report[engine][row][part]))


RATE = Figure("rate", lambda report: report["saved_per_s"])
PER_CPU = Figure("per CPU-second", lambda report: report["per_cpu_s"])
ANSWERED = Figure("answered/s", lambda report: report["answered_per_s"])

LOADS = {
    "S1": Load(
        "store.py --rows S1 --engines sqlite,mariadb,postgresql --batches 512 --rounds 1 --seconds 1.5",
        tuple(_of_store("S1", engine, "ratios") for engine in ("sqlite", "mariadb", "postgresql")),
    ),
    "S3": Load(
        "store.py --rows S3 --rounds 1 --seconds 1",
        tuple(_of_store("S3", engine, "ratios") for engine in ("sqlite", "mariadb", "postgresql")),
    ),
    "G1": Load("ping --connections 100 --seconds {seconds:g} --pin", (ANSWERED, _cpu_us("answered"))),
    "G2": Load(
        "group --members 1000 --senders 4 --rate 20 --seconds {seconds:g} --verify sample", (_cpu_us("unique"),)
    ),
    "G3": Load("connect --connections 3000 --pin", (_figure("KiB per connection"),)),
    "G4": Load("single --seconds {seconds:g} --pin", (RATE, PER_CPU)),
    "G4b": Load("single --window 1 --seconds {seconds:g} --pin", (RATE, PER_CPU)),
    "G7": Load(
        "single --pairs 50 --rate 500 --seconds {seconds:g} --pin",
        (_latency("saved", "p50"), _latency("saved", "p99"), _cpu_us("saved")),
    ),
    "G8": Load("single --pairs 1000 --rate 833 --seconds {seconds:g}", (_latency("received", "p50"), _cpu_us("saved"))),
    "G9": Load(
        "group --rate 404 --seconds {seconds:g} --verify sample", (_latency("received", "p50"), _cpu_us("unique"))
    ),
    "G10": Load("offline-catch-up --pairs 20 --pin", (_figure("server CPU per client, ms"),)),
    "G11": Load(
        "reconnect-storm --pairs 1000", (_figure("all caught up after s"), _figure("server CPU per client, ms"))
    ),
    "H1": Load("http-send --seconds {seconds:g} --pin", (RATE, PER_CPU)),
}


def run(tree: Path, load: Load, seconds: float, settings: list[str]) -> Report:
    """Returns the report of one run with the sources of that tree; its server gets these settings."""
    sources = [tree / "src", tree / "clients" / "python" / "src"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sources))}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        first, *rest = shlex.split(load.command.format(seconds=seconds))
        program = [str(tree / "bench" / first)] if first.endswith(".py") else ["-m", "nexo", "bench", first]
        own = tree / ".venv" / "bin" / "python"
        if not first.endswith(".py"):
            rest += [word for setting in settings for word in ("--set", setting)]
        command = [str(own) if own.exists() else sys.executable, *program, *rest, "--json", str(file)]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} in {tree}: {(done.stderr or done.stdout)[-800:]}")
        return json.loads(file.read_text())


def compare(load: Load, this: list[Report], other: list[Report]) -> str:
    parts = []
    for figure in load.figures:
        mine, theirs = (statistics.median(map(figure.read, reports)) for reports in (this, other))
        ratio = theirs / mine if figure.less_is_better else mine / theirs
        parts.append(f"{figure.name} {ratio:.2f} × ({mine:,.4g} against {theirs:,.4g})")
    return "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="a checkout of another commit")
    parser.add_argument("--only", help="only these rows: " + ",".join(LOADS))
    parser.add_argument("--set", action="append", default=[], help="a setting of this checkout's server: key=value")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    for name, load in LOADS.items():
        if options.only and name not in options.only.split(","):
            continue
        this, other = [], []
        for _ in range(options.rounds):
            other.append(run(options.other.resolve(), load, options.seconds, []))
            this.append(run(HERE, load, options.seconds, options.set))
        print(f"{name:4} {compare(load, this, other)}   {load.command}", flush=True)


if __name__ == "__main__":
    main()
