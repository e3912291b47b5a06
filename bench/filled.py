"""Stores that are full already: messages are written with plain SQL, hundreds of thousands a second.

.venv/bin/python bench/filled.py nexo.db --messages 1000000
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import servers
from nexo import ids
from nexo.background import Background
from nexo.config import load, parse_store_url
from nexo.store import migrate, rows
from nexo.store.engine import Script, do, many
from nexo.store.engine import rows as query
from nexo.store.store import Store

PEERS = 200  # conversations of the user who reads
UNDELIVERED = 50  # in each of them


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
        store = Store(load(env={}, flags={"store.url": url}), Background())
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
            (fresh[i], f"{source.getrandbits(96):024x}", i + 1, high, 1, '"' + "x" * 100 + '"', last - count + i,
             None, None, None, conv, b"0" * 16, i + 1)
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


async def fill_file(path: Path, messages: int) -> None:
    url = f"sqlite:///{path}"
    await migrate.upgrade(parse_store_url(url))
    store = Store(load(env={}, flags={"store.url": url}), Background())
    await store.open()
    try:
        await _fill(store, messages)
    finally:
        await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--messages", type=int, default=1_000_000)
    arguments = parser.parse_args()
    uvloop.run(fill_file(arguments.path.resolve(), arguments.messages))
