"""S5: what reading costs as the store grows: pull, history, list, resend and offline at few and many messages.

    .venv/bin/python bench/reads.py                            SQLite, 10⁴ against 10⁶ messages
    .venv/bin/python bench/reads.py --large 10000000           as the target says; some minutes and 3 GB
    .venv/bin/python bench/reads.py --engines mariadb,postgresql --large 1000000

The two stores are measured in turn in one run; the ratio counts.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import servers
from nexo import ids
from nexo.config import load, parse_store_url
from nexo.store import migrate, rows
from nexo.store.engine import Script, do, many
from nexo.store.engine import rows as query
from nexo.store.stores import Store

PEERS = 200  # conversations of the user who reads
UNDELIVERED = 50  # in each of them
console = Console(width=110)


@asynccontextmanager
async def store_with(engine: str, messages: int) -> AsyncIterator[Store]:
    """A store where `me` has 200 chats with 50 undelivered messages at their ends, filled up to `messages`."""
    with tempfile.TemporaryDirectory() as folder:
        if engine == "sqlite":
            url = f"sqlite:///{folder}/nexo.db"
        else:
            server = servers.mariadb() if engine == "mariadb" else servers.postgres()
            url = server.create_database()
        await migrate.upgrade(parse_store_url(url))
        store = Store(load(env={}, flags={"store.url": url}))
        await store.open()
        try:
            await _fill(store, messages)
            yield store
        finally:
            await store.close()


async def _fill(store: Store, messages: int) -> None:
    database = store.database
    per_chat = max(UNDELIVERED + 1, min(messages // PEERS, 2000))
    mine = PEERS * per_chat
    strangers = max(0, messages - mine) // 2000
    chats = [("me", f"peer{i:04d}", per_chat) for i in range(PEERS)]
    chats += [(f"x{i:05d}", f"y{i:05d}", 2000) for i in range(strangers)]
    now = ids.now_ms() - 10_000_000
    people = sorted({name for low, high, _ in chats for name in (low, high)})
    for start in range(0, len(people), 500):
        part = people[start : start + 500]
        await database.write(
            partial(
                _do,
                f"INSERT INTO users (user_id,password_hash) VALUES {','.join(['(?,?)'] * len(part))}",
                *(value for name in part for value in (name, "x")),
            )
        )
    for start in range(0, len(chats), 20):
        await database.write(partial(_chats, store, chats[start : start + 20], start, now))


def _do(sql: str, *params: Any) -> Script[None]:
    yield do(sql, *params)


def _chats(store: Store, chats: list[tuple[str, str, int]], first: int, now: int) -> Script[None]:
    source = random.Random(first)
    names = rows.columns(rows.NEW_MESSAGE)
    marks = "(" + ",".join("?" * len(rows.NEW_MESSAGE)) + ")"
    for offset, (low, high, count) in enumerate(chats):
        name = ids.single_conversation_id(low, high)
        last = now + first + offset + count
        yield do(
            "INSERT INTO conversations (conversation_id,kind,head_seq,countable,last_send_at,member_count,created_at) "
            "VALUES (?,1,?,?,?,2,?)",
            name, count, count, last, now,
        )  # fmt: skip
        ((conv,),) = yield query("SELECT id FROM conversations WHERE conversation_id=?", name)
        delivered = count - UNDELIVERED
        for user_id, peer_id in ((low, high), (high, low)):
            yield do(
                "INSERT INTO members (conv,user_id,peer_id,delivered_seq,read_seq,read_countable,joined_at) "
                "VALUES (?,?,?,?,?,?,?)",
                conv, user_id, peer_id, delivered, delivered, delivered, now,
            )  # fmt: skip
        fresh = store.database.ids.take(count)
        values = [
            (fresh[i], conv, i + 1, high, f"{source.getrandbits(96):024x}", 1, '"' + "x" * 100 + '"', b"0" * 16,
             None, None, None, last - count + i, i + 1)
            for i in range(count)
        ]  # fmt: skip
        if store.database.engine.name == "sqlite":
            yield many(f"INSERT INTO messages ({names}) VALUES {marks}", values)
        else:
            for start in range(0, count, 500):
                part = values[start : start + 500]
                yield do(
                    f"INSERT INTO messages ({names}) VALUES {','.join([marks] * len(part))}",
                    *(value for row in part for value in row),
                )


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


async def main(engines: list[str], small: int, large: int, rounds: int) -> None:
    for engine in engines:
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(store_with(engine, count)) for count in (small, large)]
            found: list[dict[str, list[float]]] = [{}, {}]
            for _ in range(5):
                for times, store in zip(found, stores, strict=True):
                    for what, values in (await measure(store, rounds)).items():
                        times.setdefault(what, []).extend(values)
            table = Table(title=f"{engine}: median ms at {small:,} and at {large:,} messages (must ≤ 1.5 ×)")
            for column in ("read", "few", "many", "ratio"):
                table.add_column(column, justify="right")
            for what in found[0]:
                few, many_ = (statistics.median(times[what]) * 1000 for times in found)
                table.add_row(what, f"{few:.2f}", f"{many_:.2f}", f"{many_ / few:.2f}")
            console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="sqlite")
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    uvloop.run(main(arguments.engines.split(","), arguments.small, arguments.large, arguments.rounds))
