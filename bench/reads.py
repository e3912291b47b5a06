"""S5: what reading costs as the store grows: pull, history, list, resend and offline at few and many messages.

    .venv/bin/python bench/reads.py                            SQLite, 10⁴ against 10⁶ messages
    .venv/bin/python bench/reads.py --large 10000000           as the target says; some minutes and 3 GB
    .venv/bin/python bench/reads.py --engines mariadb,postgresql --large 1000000

The two stores are measured in turn in one run; the ratio counts.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from filled import PEERS, store_with
from nexo import ids
from nexo.store.store import Store

console = Console(width=110)


async def measure(store: Store, rounds: int) -> dict[str, list[float]]:
    source = random.Random(rounds)
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        name = ids.single_conversation_id("me", f"peer{source.randrange(PEERS):04d}")
        head = (await store.conversations.heads("me", [name]))[0].head_seq
        begin = source.randrange(1, max(2, head - 50))
        for what, work in (
            ("pull 50", lambda: store.messages.pull("me", name, begin, None, 50)),
            ("history 50", lambda: store.messages.history("me", name, None, 50)),
            ("list 200", lambda: store.conversations.entries("me", None, 200)),
            ("sync 200", lambda: store.conversations.sync("me", None, 200)),
            ("resend 200", lambda: store.messages.resend("me", 1, 200, {})),
            ("offline 200", lambda: store.messages.offline("me", None, 200, {})),
        ):
            started = time.perf_counter()
            await work()
            times.setdefault(what, []).append(time.perf_counter() - started)
    return times


async def by_size(engine: str, sizes: Sequence[int], rounds: int) -> dict[str, list[float]]:
    """Median milliseconds of each read, with so many messages stored; the stores take turns."""
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(store_with(engine, size)) for size in sizes]
        found: list[dict[str, list[float]]] = [{} for _ in sizes]
        for _ in range(5):
            for times, store in zip(found, stores, strict=True):
                for what, values in (await measure(store, rounds)).items():
                    times.setdefault(what, []).extend(values)
    return {what: [statistics.median(times[what]) * 1000 for times in found] for what in found[0]}


async def main(engines: list[str], small: int, large: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    result = {}
    for engine in engines:
        result[engine] = await by_size(engine, (small, large), rounds)
        table = Table(title=f"{engine}: median ms at {small:,} and at {large:,} messages (must ≤ 1.5 ×)")
        for column in ("read", "few", "many", "ratio"):
            table.add_column(column, justify="right")
        for what, (few, many) in result[engine].items():
            table.add_row(what, f"{few:.2f}", f"{many:.2f}", f"{many / few:.2f}")
        console.print(table)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="sqlite")
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write what was found to this file, too")
    arguments = parser.parse_args()
    result = uvloop.run(main(arguments.engines.split(","), arguments.small, arguments.large, arguments.rounds))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))
