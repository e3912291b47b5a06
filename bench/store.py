"""The cost of storing a message: the group committer beside a bare loop of the same SQL.

    .venv/bin/python bench/store.py                       all engines, private servers
    .venv/bin/python bench/store.py --engines sqlite --rounds 5
    .venv/bin/python bench/store.py --rows S3,S4 --json found.json

For each engine and batch size the two take turns in one run; the ratio is what Nexo's code costs on top
of the database and its driver. Rows S1 to S4 of the targets are at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import uvloop
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from bare import BARE_LOOPS
from harness import servers
from nexo import ids
from nexo.background import Background
from nexo.config import load, parse_store_url
from nexo.core.model import Draft, Kind
from nexo.store import migrate
from nexo.store.conversations import create_singles
from nexo.store.engine import Mode, Script, Stmt, do
from nexo.store.store import Store

BATCHES = (1, 32, 256, 1024)
TARGET_BATCH = 512  # of rows S1 and S2
CONVERSATIONS = 1000
CONTENT = '"' + "x" * 120 + '"'
console = Console(width=120)


class Load:
    """Drafts from many senders, with random client_msg_ids."""

    def __init__(self, conversations: int, group: str | None = None) -> None:
        self.places = [
            (f"s{i}", f"sg_{group}" if group else ids.single_conversation_id(f"s{i}", f"r{i}"))
            for i in range(conversations)
        ]
        self.kind = Kind.GROUP if group else Kind.SINGLE
        self._random = random.Random(os.urandom(8))
        self._next = 0

    def draft(self) -> Draft:
        self._next += 1
        sender, name = self.places[self._next % len(self.places)]
        client_msg_id = f"{self._random.getrandbits(96):024x}"
        return Draft(sender, client_msg_id, name, self.kind, 1, CONTENT, self._random.randbytes(16))


class Meter:
    """Wall time, this process's CPU and the database server's."""

    def __init__(self, server_pid: int | None) -> None:
        self._server = psutil.Process(server_pid) if server_pid else None

    def _server_s(self) -> float:
        if self._server is None:
            return 0.0
        total = 0.0
        for process in (self._server, *self._server.children(recursive=True)):
            try:
                times = process.cpu_times()
                total += times.user + times.system
            except psutil.NoSuchProcess:
                continue
        return total

    def __enter__(self) -> Meter:
        self._wall, self._cpu, self._db = time.perf_counter(), time.process_time(), self._server_s()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s = time.perf_counter() - self._wall
        self.cpu_s = time.process_time() - self._cpu
        self.db_s = self._server_s() - self._db


async def run_committer(store: Store, load_: Load, count: int, in_flight: int) -> None:
    """Keep `in_flight` sends under way: each answer starts the next, as a pipelining client would."""
    done = asyncio.get_running_loop().create_future()
    pipeline = Pipeline(store, load_, count, done)
    for _ in range(min(in_flight, count)):
        pipeline.submit()
    await done


class Pipeline:
    """The origin of all sends of one measurement."""

    output = address = None

    def __init__(self, store: Store, load_: Load, count: int, done: asyncio.Future[None]) -> None:
        self._submit = store.committer.submit
        self._load = load_
        self._left = self._unanswered = count
        self._done = done

    def submit(self) -> None:
        self._left -= 1
        self._submit(self._load.draft(), self)

    def decided(self, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            self._done.set_exception(outcome)
            return
        self._unanswered -= 1
        if self._left:
            self.submit()
        elif not self._unanswered:
            self._done.set_result(None)


@asynccontextmanager
async def opened(engine: str, people: int) -> AsyncIterator[tuple[Store, str, int | None]]:
    """A fresh, migrated store with `people` senders and receivers."""
    with tempfile.TemporaryDirectory() as folder:
        pid = None
        if engine == "sqlite":
            url = f"sqlite:///{folder}/nexo.db"
        else:
            server = servers.mariadb() if engine == "mariadb" else servers.postgres()
            url, pid = server.create_database(), server.pid
        await migrate.upgrade(parse_store_url(url))
        store = Store(load(env={}, flags={"store.url": url}), Background())
        await store.open()
        try:
            await store.database.write(lambda: add_people(people))
            yield store, url, pid
        finally:
            await store.close()


def add_people(people: int) -> Script[None]:
    for start in range(0, people, 500):
        names = [f"{side}{i}" for i in range(start, min(start + 500, people)) for side in "sr"]
        values = ",".join(["(?,'x')"] * len(names))
        yield do(f"INSERT INTO users (user_id,password_hash) VALUES {values}", *names)


async def compare(engine: str, batches: list[int], rounds: int, seconds: float) -> list[dict[str, Any]]:
    results = []
    async with opened(engine, CONVERSATIONS) as (store, url, pid):
        load_ = Load(CONVERSATIONS)
        names = [name for _, name in load_.places]
        for start in range(0, len(names), 200):
            chunk = names[start : start + 200]
            await store.database.write(lambda chunk=chunk: create_singles(store.database.sql, chunk))
        bare = BARE_LOOPS[engine](url, store.database.ids)
        await bare.open()
        try:
            for batch in batches:
                results.append(await _compare_batch(store, bare, load_, batch, rounds, seconds, pid))
        finally:
            await bare.close()
    return results


async def _compare_batch(
    store: Store, bare: Any, load_: Load, batch: int, rounds: int, seconds: float, pid: int | None
) -> dict[str, Any]:
    count = max(batch * 4, 200)
    await run_committer(store, load_, count, batch)  # warm
    with Meter(pid) as probe:
        await run_committer(store, load_, count, batch)
    count = max(batch * 4, int(count * seconds / probe.wall_s))
    rates: dict[str, list[float]] = {"nexo": [], "bare": []}
    costs: dict[str, list[float]] = {"nexo": [], "bare": []}
    database: list[float] = []
    for _ in range(rounds):
        with Meter(pid) as meter:
            await run_committer(store, load_, count, batch)
        rates["nexo"].append(count / meter.wall_s)
        costs["nexo"].append(meter.cpu_s / count * 1e6)
        database.append(meter.db_s / count * 1e6)
        drafts = [load_.draft() for _ in range(count)]
        with Meter(pid) as meter:
            await bare.run(drafts, batch)
        rates["bare"].append(count / meter.wall_s)
        costs["bare"].append(meter.cpu_s / count * 1e6)
    return {
        "batch": batch,
        "nexo": statistics.median(rates["nexo"]),
        "bare": statistics.median(rates["bare"]),
        "ratio": statistics.median(n / b for n, b in zip(rates["nexo"], rates["bare"], strict=True)),
        "ratios": [n / b for n, b in zip(rates["nexo"], rates["bare"], strict=True)],
        "nexo_us": statistics.median(costs["nexo"]),
        "bare_us": statistics.median(costs["bare"]),
        "db_us": statistics.median(database),
    }


async def spread(engine: str, widths: Sequence[int], rounds: int, seconds: float) -> dict[int, list[float]]:
    """Messages/s into so many conversations, each width in turn."""
    async with opened(engine, max(widths)) as (store, _, pid):
        rates: dict[int, list[float]] = {width: [] for width in widths}
        count = 10_000 if seconds >= 1 else 2_000
        for conversations in tuple(widths) * max(3, rounds):
            load_ = Load(conversations)
            await run_committer(store, load_, 3000, 512)
            with Meter(pid) as meter:
                await run_committer(store, load_, count, 512)
            rates[conversations].append(count / meter.wall_s)
        return rates


class RowCount:
    """Counts the rows that the committer's statements write, by looking at the statements themselves."""

    def __init__(self) -> None:
        self.rows = 0

    def see(self, statement: Stmt) -> None:
        sql, params, mode = statement
        if not sql.startswith(("INSERT", "UPDATE", "WITH")):
            return
        if mode is Mode.MANY:
            self.rows += len(params)
        elif sql.startswith("WITH"):
            # one array per column: messages, conversations and members have 13, 5 and 9 columns; the journal has a text
            self.rows += len(params[0]) + len(params[13]) + 1 + len(params[19])
        elif sql.startswith("INSERT INTO journal"):
            self.rows += 1
        elif sql.startswith("UPDATE ("):
            self.rows += sql.count("SELECT ")
        else:
            self.rows += sql.count("(?")


async def group_sizes(engine: str, sizes: Sequence[int] = (3, 10_000)) -> list[tuple[int, float, float]]:
    """S4: row writes and CPU per message in groups of 3 and of 10,000."""
    found = []
    for members in sizes:
        async with opened(engine, members) as (store, _, pid):
            service = store.groups
            from_people = [f"s{i}" for i in range(1, members)]
            group_id, _ = await service.create(_group_draft(from_people))
            load_ = Load(min(members, 3), group_id)
            await run_committer(store, load_, 2000, 64)
            counter = RowCount()
            hot = store.committer._hot_sql  # type: ignore[attr-defined]
            store_script = hot.store

            def counted(*args: Any, store_script: Any = store_script, counter: RowCount = counter) -> Script[None]:
                script = store_script(*args)
                for statement in script:
                    counter.see(statement)
                    yield statement

            hot.store = counted
            costs = []
            for _ in range(5):
                with Meter(pid) as meter:
                    await run_committer(store, load_, 4000, 64)
                costs.append((meter.cpu_s + meter.db_s) / 4000 * 1e6)
            # conversation and member rows are shared by a batch: compare what a message adds by itself
            found.append((members, counter.rows / 20_000, statistics.median(costs)))
    return found


def _group_draft(members: list[str]) -> Any:
    from nexo.ports import GroupDraft  # noqa: PLC0415

    return GroupDraft("s0", "bench", members, "", "", "open", None)


async def main(engines: list[str], rows: list[str], batches: list[int], rounds: int, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for engine in engines:
        here: dict[str, Any] = found.setdefault(engine, {})
        if "S1" in rows or "S2" in rows:
            results = await compare(engine, batches, rounds, seconds)
            console.print(_batch_table(engine, results))
            here["S1"] = next((result for result in results if result["batch"] == TARGET_BATCH), None)
        if "S3" in rows:
            rates = await spread(engine, (CONVERSATIONS, 1), rounds, seconds)
            ratios = [hot / many for hot, many in zip(rates[1], rates[CONVERSATIONS], strict=True)]
            hot, many = statistics.median(rates[1]), statistics.median(rates[CONVERSATIONS])
            here["S3"] = {"hot": hot, "spread": many, "ratios": ratios}
        if "S4" in rows:
            (_, rows_3, cost_3), (_, rows_10k, cost_10k) = await group_sizes(engine)
            here["S4"] = {"rows": [rows_3, rows_10k], "cpu_us": [cost_3, cost_10k]}
    console.print(_target_table(found))
    return found


def _batch_table(engine: str, results: list[dict[str, Any]]) -> Table:
    table = Table(title=f"{engine}: messages/s (CPU µs per message of the client; of the database server)")
    for column in ("batch", "nexo", "bare SQL", "ratio", "nexo µs", "bare µs", "server µs"):
        table.add_column(column, justify="right")
    for row in results:
        table.add_row(
            f"{row['batch']} in flight",
            *(f"{row[name]:,.0f}" for name in ("nexo", "bare")),
            f"{row['ratio']:.2f}",
            *(f"{row[name]:.1f}" for name in ("nexo_us", "bare_us", "db_us")),
        )
    return table


def _target_table(found: dict[str, Any]) -> Table:
    table = Table("#", "engine", "measured", title="targets")
    for engine, rows in found.items():
        if rows.get("S1"):
            table.add_row("S1" if engine == "sqlite" else "S2", engine, f"{rows['S1']['ratio']:.2f} × bare SQL")
        if "S3" in rows:
            hot, many = rows["S3"]["hot"], rows["S3"]["spread"]
            table.add_row("S3", engine, f"one hot {hot:,.0f}/s, spread {many:,.0f}/s: {hot / many:.2f} ×")
        if "S4" in rows:
            (few, many), (cost_3, cost_10k) = rows["S4"]["rows"], rows["S4"]["cpu_us"]
            text = f"rows {few:.2f} → {many:.2f} per message, CPU {cost_3:.1f} → {cost_10k:.1f} µs"
            table.add_row("S4", engine, f"{text}: {many / few:.2f} × and {cost_10k / cost_3:.2f} ×")
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="sqlite,mariadb,postgresql")
    parser.add_argument("--rows", default="S1,S3,S4", help="S1 is S2 on the database servers")
    parser.add_argument("--batches", default=",".join(map(str, (*BATCHES, TARGET_BATCH))))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="about how long one measurement takes")
    parser.add_argument("--json", type=Path, help="write what was found to this file, too")
    arguments = parser.parse_args()
    batches = [int(batch) for batch in arguments.batches.split(",")]
    found = uvloop.run(
        main(arguments.engines.split(","), arguments.rows.split(","), batches, arguments.rounds, arguments.seconds)
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))
