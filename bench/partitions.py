"""The table of messages in partitions, on PostgreSQL: what it costs and brings, and what it needs.

    .venv/bin/python bench/partitions.py --rows 1000000
    .venv/bin/python bench/partitions.py --rows 10000000        # 9 GB

Two copies of the table are filled by the same statements, and then get their keys: one whole, one in partitions by the
hash of the conversation. After that both get sends and reads in turns.
PostgreSQL wants the key of the partitions in every unique key. So the unique key over sender and client_msg_id, which
makes a send that is repeated the same message (law 4), cannot stay on the partitioned table: it becomes a table of its
own, in partitions by sender, written in the same transaction. That is measured with it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness.servers import Postgres

COLUMNS = (
    "server_msg_id bigint, conv bigint, seq bigint, sender_id text, client_msg_id text, send_at bigint, content text"
)
TABLES = f"""
CREATE TABLE whole ({COLUMNS});
CREATE TABLE parts ({COLUMNS}) PARTITION BY HASH (conv);
CREATE TABLE parts_sent (sender_id text, client_msg_id text, conv bigint, seq bigint) PARTITION BY HASH (sender_id);
"""
KEYS = {
    "whole": [
        "ALTER TABLE whole ADD PRIMARY KEY (server_msg_id), ADD UNIQUE (conv, seq), "
        "ADD UNIQUE (sender_id, client_msg_id)"
    ],
    "parts": [
        "ALTER TABLE parts ADD PRIMARY KEY (conv, seq), ADD UNIQUE (conv, server_msg_id)",
        "ALTER TABLE parts_sent ADD PRIMARY KEY (sender_id, client_msg_id)",
    ],
}
SETTINGS = ("synchronous_commit=off", "maintenance_work_mem='512MB'")  # while it is filled
ROWS = """
SELECT n, n % {conversations}, n / {conversations} + 1, 'user' || (n * 7919 % 100000),
    md5(n::text), 1700000000000 + n, repeat('x', 80)
FROM generate_series({first}::bigint, {last}::bigint) n
"""
BATCH = 100


async def fill(connection: Any, rows: int, conversations: int) -> dict[str, float]:
    taken: dict[str, float] = {"whole": 0.0, "parts": 0.0}
    for setting in SETTINGS:
        await connection.execute(f"SET {setting}")
    step = max(1, rows // 20)
    for first in range(0, rows, step):  # in turns, so that whatever else the machine does hits both alike
        chosen = ROWS.format(conversations=conversations, first=first, last=min(rows, first + step) - 1)
        started = time.monotonic()
        await connection.execute(f"INSERT INTO whole {chosen}")
        taken["whole"] += time.monotonic() - started
        started = time.monotonic()
        async with connection.transaction():
            await connection.execute(f"INSERT INTO parts {chosen}")
            named = (
                f"SELECT sender_id, client_msg_id, conv, seq FROM ({chosen}) v(a,conv,seq,sender_id,client_msg_id,b,c)"
            )
            await connection.execute(f"INSERT INTO parts_sent {named}")
        taken["parts"] += time.monotonic() - started
    for table, statements in KEYS.items():
        started = time.monotonic()
        for statement in statements:
            await connection.execute(statement)
        taken[f"{table}, keys"] = time.monotonic() - started
    await connection.execute("RESET ALL")
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
    return taken


async def pages(connection: Any, table: str, conversations: int, count: int) -> float:
    """The median time of a page of 50 messages, in milliseconds."""
    statement = await connection.prepare(f"SELECT * FROM {table} WHERE conv=$1 AND seq>$2 ORDER BY seq LIMIT 50")
    rng = random.Random(1)
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        await statement.fetch(rng.randrange(conversations), rng.randrange(1000))
        taken.append(time.perf_counter() - started)
    return statistics.median(taken) * 1000


async def sends(connection: Any, table: str, first: int, conversations: int, batches: int) -> float:
    """Rows a second in transactions of a hundred, with the look-up of their ids before."""
    sent = "whole" if table == "whole" else "parts_sent"
    started = time.monotonic()
    for batch in range(batches):
        rows = [
            (first + i, i % conversations, 10_000_000 + first + i, f"user{i % 5000}", f"new{first + i}", i, "x" * 80)
            for i in range(batch * BATCH, (batch + 1) * BATCH)
        ]
        async with connection.transaction():
            await connection.fetch(
                f"SELECT s.conv FROM {sent} s JOIN unnest($1::text[], $2::text[]) v(a, b) "
                "ON s.sender_id=v.a AND s.client_msg_id=v.b",
                [row[3] for row in rows],
                [row[4] for row in rows],
            )
            await connection.executemany(f"INSERT INTO {table} VALUES ($1,$2,$3,$4,$5,$6,$7)", rows)
            if table == "parts":
                keys = [(row[3], row[4], row[1], row[2]) for row in rows]
                await connection.executemany("INSERT INTO parts_sent VALUES ($1,$2,$3,$4)", keys)
    return batches * BATCH / (time.monotonic() - started)


async def measure(url: str, args: argparse.Namespace) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(TABLES)
    for i in range(args.partitions):
        within = f"FOR VALUES WITH (MODULUS {args.partitions}, REMAINDER {i})"
        await connection.execute(f"CREATE TABLE parts_{i} PARTITION OF parts {within}")
        await connection.execute(f"CREATE TABLE parts_sent_{i} PARTITION OF parts_sent {within}")
    conversations = max(10, args.rows // 1000)
    taken = await fill(connection, args.rows, conversations)
    print(f"{args.rows} rows, {conversations} conversations, {args.partitions} partitions")
    print("| | one table | partitions |\n|---|---|---|")
    print(f"| filling without keys, s | {taken['whole']:.1f} | {taken['parts']:.1f} |")
    print(f"| making the keys, s | {taken['whole, keys']:.1f} | {taken['parts, keys']:.1f} |", flush=True)
    read: dict[str, list[float]] = {"whole": [], "parts": []}
    rates: dict[str, list[float]] = {"whole": [], "parts": []}
    first = args.rows * 2
    for _ in range(args.rounds):  # in turns
        for table in ("whole", "parts"):
            read[table].append(await pages(connection, table, conversations, 500))
            rates[table].append(await sends(connection, table, first, conversations, args.batches))
        first += args.batches * BATCH
    found = {table: statistics.median(values) for table, values in read.items()}
    print(f"| a page of 50, ms | {found['whole']:.2f} | {found['parts']:.2f} |")
    found = {table: statistics.median(values) for table, values in rates.items()}
    print(f"| rows a second, in transactions of a hundred | {found['whole']:,.0f} | {found['parts']:,.0f} |")
    sizes = await connection.fetchrow(
        "SELECT pg_total_relation_size('whole'), (SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits "
        "WHERE inhparent IN ('parts'::regclass, 'parts_sent'::regclass))"
    )
    print(f"| bytes a message | {sizes[0] / args.rows:.0f} | {int(sizes[1]) / args.rows:.0f} |")
    await connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with Postgres() as server:
        asyncio.run(measure(server.create_database(), args))


if __name__ == "__main__":
    main()
