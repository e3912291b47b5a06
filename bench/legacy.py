"""Moving a million messages: an older database is made up, imported, killed half-way, resumed and proven; then
the store is copied to another engine, killed half-way, resumed and proven.

    .venv/bin/python bench/legacy.py                                   1,000,000 messages, SQLite → PostgreSQL → MariaDB
    .venv/bin/python bench/legacy.py --messages 100000 --to sqlite --then postgresql

Every step is the real command in a process of its own; rates are rows per second of a stage, as it reports them.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import servers
from harness.legacy import START, create_tables, write_rows
from nexo.config import parse_store_url
from nexo.store.engines.transfer_connection import TransferConnection
from nexo.store.transfer.connections import open_target

NEXO = Path(sys.executable).with_name("nexo")
LINE = re.compile(r"nexo: (.+): ([\d,]+) of ([\d,]+) \((\d+) %\)")
CHUNK = 20_000
console = Console(width=110)


async def make_past(url: str, messages: int, people: int, singles: int, groups: int) -> None:
    async with open_target(parse_store_url(url)) as connection:
        await create_tables(connection)
        chosen = random.Random(1)
        users = list(range(1000, 1000 + people))
        pairs: dict[tuple[int, int], int] = {}
        while len(pairs) < singles:
            low, high = sorted(chosen.sample(users, 2))
            pairs.setdefault((low, high), 100_000 + len(pairs))
        chats = [(1, chat, pair) for pair, chat in pairs.items()]
        chats += [(2, 500 + i, tuple(chosen.sample(users, 50))) for i in range(groups)]
        await write_rows(
            connection,
            {
                "t_user": [(user, f"u{user}", None, f"Nick {user}", None, 1, START) for user in users],
                "t_single_chat": [(chat, *pair, START) for pair, chat in pairs.items()],
                "t_group": [(chat, f"Group {chat}", None, who[0], START) for kind, chat, who in chats if kind == 2],
            },
        )
        last = await _write_messages(connection, messages, chats, chosen)
        await _write_members(connection, chats, last, chosen)


async def _write_messages(
    connection: TransferConnection, messages: int, chats: list[Any], chosen: random.Random
) -> int:
    message_id, at = 10_000_000_000, START
    for start in range(0, messages, CHUNK):
        rows = []
        for i in range(start, min(start + CHUNK, messages)):
            message_id += chosen.choice((1, 2, 5))
            at += timedelta(milliseconds=25)
            kind, chat, people = chats[int(len(chats) * chosen.random() ** 2)]
            sender = chosen.choice(people)
            status = 4 if i % 100 == 3 else 1
            place = (chat, None) if kind == 1 else (None, chat)
            to = people[1 - people.index(sender)] if kind == 1 else None
            body = f"message {i} äöü 你好 {'x' * (i % 90)}"
            rows.append((message_id, kind, *place, sender, to, 1, body, status, f"{i:x}-{chat:x}", at))
        await write_rows(connection, {"t_message": rows})
    return message_id


async def _write_members(connection: TransferConnection, chats: list[Any], last: int, chosen: random.Random) -> None:
    singles, groups = [], []
    for kind, chat, people in chats:
        for i, user in enumerate(people):
            delivered = chosen.choice((None, chosen.randint(10_000_000_000, last), last))
            if kind == 1:
                singles.append((len(singles), chat, user, delivered, delivered))
            else:
                groups.append((len(groups), chat, user, 1 if i == 0 else 3, START, delivered, delivered))
    await write_rows(connection, {"t_single_chat_member": singles, "t_group_member": groups})


def run(command: list[str], folder: Path, die_at: tuple[str, int] | None, table: Table) -> None:
    """One life of a command; a row per stage it reported."""
    process = subprocess.Popen(
        [str(NEXO), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    begun = time.monotonic()
    stages: dict[str, list[tuple[float, int]]] = {}
    assert process.stderr is not None
    assert process.stdout is not None
    complaints = ""
    killed = False
    with process:
        for line in process.stderr:
            found = LINE.match(line)
            if found is None:
                complaints += line
                continue
            stages.setdefault(found[1], []).append((time.monotonic(), int(found[2].replace(",", ""))))
            if die_at is not None and found[1] == die_at[0] and int(found[4]) >= die_at[1]:
                process.kill()
                killed = True
                break
        output = process.stdout.read()
    name = f"{command[0]}{', killed' if killed else ''}"
    for stage, points in stages.items():
        seconds, rows = points[-1][0] - points[0][0], points[-1][1] - points[0][1]
        if seconds > 0.5:
            table.add_row(name, stage, f"{rows:,}", f"{seconds:.1f}", f"{rows / seconds:,.0f}")
            name = ""
    table.add_row(name, "in all", "", f"{time.monotonic() - begun:.1f}", "")
    if not killed and process.returncode:
        console.print(complaints, output)
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    if not killed:
        console.print(output)


def database(engine: str, folder: Path) -> str:
    if engine == "sqlite":
        return f"sqlite:///{folder}/{engine}/nexo.db"
    return (servers.mariadb() if engine == "mariadb" else servers.postgres()).create_database()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--to", default="postgresql", choices=["sqlite", "mariadb", "postgresql"])
    parser.add_argument("--then", default="mariadb", choices=["sqlite", "mariadb", "postgresql"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = f"sqlite:///{folder}/old/legacy.db"
        begun = time.monotonic()
        size = options.messages
        asyncio.run(make_past(source, size, max(100, size // 200), max(100, size // 100), max(2, size // 10_000)))
        console.print(f"{size:,} messages made up in {time.monotonic() - begun:.0f} s")
        table = Table("command", "stage", "rows", "s", "rows/s")
        first, second = database(options.to, folder), database(options.then, folder)
        importing = ["import-legacy", "--from", source, "--to", first]
        run(importing, folder, ("importing messages", 50), table)
        run(importing, folder, None, table)
        copying = ["copy-store", "--from", first, "--to", second]
        run(copying, folder, ("copying", 50), table)
        run(copying, folder, None, table)
        console.print(table)


if __name__ == "__main__":
    main()
