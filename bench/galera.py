"""MariaDB Galera of three nodes against one MariaDB, under the same load (N2).

    .venv/bin/python bench/galera.py
    .venv/bin/python bench/galera.py --rounds 5 --markdown docs/benchmarks.md

A full durable single chat per message, as in `bench/instances.py`, on one instance each; both databases flush their log
at every commit. They run at the same time and are put under load in turns, so that whatever else the machine does hits
them alike. All three nodes share this machine: on machines of their own two of them would not take processor time
from the first and from the generator. The ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import processes
from harness.cluster import SECRET
from harness.galera import Galera
from harness.mariadb import MariaDb
from harness.migrated import migrate_database
from harness.server_process import ServerProcess
from instances import OPEN, Site, measure
from page import replace_part

MUST, AIM = 0.5, 0.8


@contextlib.contextmanager
def site(url: str, folders: list[Path]) -> Iterator[Site]:
    migrate_database(url)
    with ServerProcess(store__url=url, store__pool_size=8, auth__secret=SECRET, **OPEN) as server:
        named = {f"database {number}": folder for number, folder in enumerate(folders)}
        yield Site([server], named, processes.new_dir("bench") / "samples")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--markdown", type=Path, help="the page whose generated part is to be replaced")
    options = parser.parse_args()
    rates: dict[str, list[float]] = {"one MariaDB": [], "Galera, three nodes": []}
    with contextlib.ExitStack() as stack:
        single = stack.enter_context(MariaDb())
        galera = stack.enter_context(Galera())
        nodes = [node.directory for node in galera.nodes]
        sites = [
            stack.enter_context(site(single.create_database(), [single.directory])),
            stack.enter_context(site(galera.create_database(), nodes)),
        ]
        for number in range(options.rounds):
            for name, here in zip(rates, sites, strict=True):
                found = uvloop.run(measure(here, options.pairs, options.window, options.seconds, 0))
                rates[name].append(found.figures["messages/s"])
                figures = ", ".join(f"{key} {value:,.0f}" for key, value in found.figures.items())
                sys.stderr.write(f"round {number + 1}, {name}: {figures}\n")
    one, three = (statistics.median(found) for found in rates.values())
    text = "\n".join(
        [
            f"{options.pairs} pairs, window {options.window}, medians of {options.rounds} rounds in turns:",
            "",
            "| | messages/s | lowest to highest |",
            "|---|--:|--:|",
            *(
                f"| {name} | {statistics.median(found):,.0f} | {min(found):,.0f} to {max(found):,.0f} |"
                for name, found in rates.items()
            ),
            "",
            f"{three / one:.2f} × (must {MUST}, aim {AIM})",
        ]
    )
    print(text)
    if options.markdown:
        replace_part(options.markdown, "galera.py", text)
    return 0 if three / one >= MUST else 1


if __name__ == "__main__":
    sys.exit(main())
