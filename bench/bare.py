"""The floor: the same statements as the group committer's, in a plain loop around the driver.

No queue, no checks, no objects: look up, lock, number, insert, update, commit.
"""

from __future__ import annotations

from typing import Any

import asyncmy
import asyncpg

from nexo.config import parse_store_url
from nexo.core.model import Draft
from nexo.ids import IdGenerator, now_ms
from nexo.store import rows
from nexo.store.engines.mysql.sql import percent
from nexo.store.engines.mysql.statements import MysqlHot
from nexo.store.engines.postgres.sql import numbered
from nexo.store.engines.postgres.statements import PostgresHot
from nexo.store.engines.sqlite.driver import connect
from nexo.store.engines.sqlite.statements import SqliteHot

C_HEAD, C_COUNTABLE, C_AT_ALL, C_LAST = (rows.CONVERSATION.index(name) for name in rows.CONVERSATION_SENT)
M = [rows.MEMBER.index(name) for name in rows.MEMBER_SENT]


def number(
    drafts: list[Draft], conversations: dict[str, Any], members: dict[Any, Any], new_ids: IdGenerator
) -> tuple[list[Any], list[Any], list[Any]]:
    """Give each draft its seq; the rows to insert and to update."""
    fresh = iter(new_ids.take(len(drafts)))
    now = now_ms()
    messages = []
    for draft in drafts:
        row = conversations[draft.conversation_id]
        seq = row[C_HEAD] = row[C_HEAD] + 1
        row[C_COUNTABLE] += 1
        row[C_LAST] = max(now, row[C_LAST] + 1)
        member = members[row[0], draft.sender_id]
        member[M[0]] = member[M[1]] = member[M[4]] = seq
        member[M[2]] = row[C_COUNTABLE]
        messages.append(
            (next(fresh), draft.client_msg_id, seq, draft.sender_id, draft.msg_type, draft.content, row[C_LAST],
             None, None, None, row[0], draft.request_hash, row[C_COUNTABLE])
        )  # fmt: skip
    grown = [(r[C_HEAD], r[C_COUNTABLE], r[C_AT_ALL], r[C_LAST], r[0]) for r in conversations.values()]
    stepped = [(*(m[i] for i in M), m[0], m[1]) for m in members.values()]
    return messages, grown, stepped


class BareSqlite:
    def __init__(self, url: str, new_ids: IdGenerator) -> None:
        self._path = parse_store_url(url).path
        self._ids = new_ids

    async def open(self) -> None:
        self._connection = connect(self._path)

    async def close(self) -> None:
        self._connection.close()

    async def run(self, drafts: list[Draft], batch: int) -> None:
        hot = SqliteHot
        cursor = self._connection.cursor()
        execute = cursor.execute
        for start in range(0, len(drafts), batch):
            part = drafts[start : start + batch]
            execute("BEGIN IMMEDIATE")
            names = sorted({draft.conversation_id for draft in part})
            conversations = {name: list(execute(hot._conversation, (name,)).fetchone()) for name in names}
            for draft in part:
                execute(hot._sent, (draft.sender_id, draft.client_msg_id)).fetchone()
            keys = sorted({(conversations[draft.conversation_id][0], draft.sender_id) for draft in part})
            members = {key: list(execute(hot._member, key).fetchone()) for key in keys}
            messages, grown, stepped = number(part, conversations, members, self._ids)
            cursor.executemany(hot._insert, messages)
            cursor.executemany(hot._grow, grown)
            cursor.executemany(hot._step, stepped)
            execute("COMMIT")


class BareMysql:
    def __init__(self, url: str, new_ids: IdGenerator) -> None:
        self._url = parse_store_url(url)
        self._ids = new_ids

    async def open(self) -> None:
        url = self._url
        self._connection = await asyncmy.connect(
            host=url.host, port=url.port, user=url.user, password=url.password, database=url.database,
            charset="utf8mb4", autocommit=True,
            init_command="SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, SESSION TX_ISOLATION='READ-COMMITTED'",
        )  # fmt: skip

    async def close(self) -> None:
        await self._connection.ensure_closed()

    async def _rows(self, script: Any) -> Any:
        """Run the statements of one of the hot scripts, whose result is not needed."""
        cursor = self._connection.cursor()
        found: list[Any] = []
        result: Any = None
        try:
            while True:
                statement = script.send(result)
                await cursor.execute(percent(statement.sql), statement.params)
                result = await cursor.fetchall() if statement.sql.startswith("SELECT") else None
                found += result or []
        except StopIteration:
            return found

    async def run(self, drafts: list[Draft], batch: int) -> None:
        hot = MysqlHot()
        for start in range(0, len(drafts), batch):
            part = drafts[start : start + batch]
            await self._connection.query("BEGIN")
            names = sorted({draft.conversation_id for draft in part})
            found = await self._rows(hot.lock_conversations(names, False))
            conversations = {row[1]: list(row) for row in found}
            await self._rows(hot.find_sent([(draft.sender_id, draft.client_msg_id) for draft in part]))
            keys = sorted({(conversations[draft.conversation_id][0], draft.sender_id) for draft in part})
            members = {(row[0], row[1]): list(row) for row in await self._rows(hot.lock_members(keys))}
            messages, grown, stepped = number(part, conversations, members, self._ids)
            await self._rows(hot._insert(f"INSERT INTO messages ({rows.columns(rows.NEW_MESSAGE)}) VALUES ", messages))
            await self._rows(hot._update("conversations", rows.CONVERSATION_SENT, ("id",), grown))
            await self._rows(hot._update("members", rows.MEMBER_SENT, ("conv", "user_id"), stepped))
            await self._connection.query("COMMIT")


class BarePostgres:
    def __init__(self, url: str, new_ids: IdGenerator) -> None:
        self._url = url
        self._ids = new_ids

    async def open(self) -> None:
        self._connection = await asyncpg.connect(self._url, server_settings={"plan_cache_mode": "force_custom_plan"})

    async def close(self) -> None:
        await self._connection.close()

    async def run(self, drafts: list[Draft], batch: int) -> None:
        hot = PostgresHot
        fetch = self._connection.fetch
        store = numbered(hot._store.replace(f", {hot._noted}", ""))  # the bare loop writes no journal
        for start in range(0, len(drafts), batch):
            part = drafts[start : start + batch]
            await self._connection.execute("BEGIN")
            names = sorted({draft.conversation_id for draft in part})
            found = await fetch(numbered(f"{hot._conversation} SKIP LOCKED"), names)
            conversations = {row[1]: list(row) for row in found}
            senders = [draft.sender_id for draft in part]
            await fetch(numbered(hot._sent), senders, [draft.client_msg_id for draft in part])
            keys = sorted({(conversations[draft.conversation_id][0], draft.sender_id) for draft in part})
            found = await fetch(numbered(hot._member), [key[0] for key in keys], [key[1] for key in keys])
            members = {(row[0], row[1]): list(row) for row in found}
            parts = number(part, conversations, members, self._ids)
            await fetch(store, *(column for part_ in parts for column in zip(*part_, strict=True)))
            await self._connection.execute("COMMIT")


BARE_LOOPS = {"sqlite": BareSqlite, "mariadb": BareMysql, "postgresql": BarePostgres}
