"""A chat database of the older kind: t_* tables, cursors that are message ids. Made up from a seed, on any engine.

What Nexo must make of it is computed here from the plain rules, in another way than the importer does it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from nexo.config import parse_store_url
from nexo.store.engines.mysql.transfer import MysqlTransferConnection
from nexo.store.engines.sqlite.transfer import SqliteTransferConnection
from nexo.store.engines.transfer_connection import TransferConnection
from nexo.store.transfer.connections import open_target, transaction

START = datetime(2024, 3, 1, 8, 0, tzinfo=UTC)
RECALLED = 4
BATCH = 2000

_TABLES = {
    "t_user": "id BIGINT PRIMARY KEY, username VARCHAR(64) NOT NULL, password_hash VARCHAR(255), "
    "nickname VARCHAR(64), avatar_url VARCHAR(255), status SMALLINT NOT NULL, created_at {time} NOT NULL",
    "t_single_chat": "id BIGINT PRIMARY KEY, user1_id BIGINT NOT NULL, user2_id BIGINT NOT NULL, "
    "created_at {time} NOT NULL",
    "t_single_chat_member": "id BIGINT PRIMARY KEY, single_chat_id BIGINT NOT NULL, user_id BIGINT NOT NULL, "
    "last_delivered_msg_id BIGINT, last_read_msg_id BIGINT, UNIQUE (single_chat_id, user_id)",
    "t_group": "id BIGINT PRIMARY KEY, name VARCHAR(128) NOT NULL, avatar_url VARCHAR(255), "
    "created_by BIGINT NOT NULL, created_at {time} NOT NULL",
    "t_group_member": "id BIGINT PRIMARY KEY, group_id BIGINT NOT NULL, user_id BIGINT NOT NULL, "
    "role SMALLINT NOT NULL, join_at {time} NOT NULL, last_delivered_msg_id BIGINT, last_read_msg_id BIGINT, "
    "UNIQUE (group_id, user_id)",
    "t_message": "id BIGINT PRIMARY KEY, chat_type SMALLINT NOT NULL, single_chat_id BIGINT, group_id BIGINT, "
    "from_user_id BIGINT NOT NULL, to_user_id BIGINT, msg_type SMALLINT NOT NULL, content {text} NOT NULL, "
    "status SMALLINT NOT NULL, client_msg_id VARCHAR(64), created_at {time} NOT NULL",
    "t_message_mention": "id BIGINT PRIMARY KEY, group_id BIGINT NOT NULL, message_id BIGINT NOT NULL, "
    "mentioned_user_id BIGINT NOT NULL, mention_type SMALLINT NOT NULL",
    "t_friend_relation": "id BIGINT PRIMARY KEY, user1_id BIGINT NOT NULL, user2_id BIGINT NOT NULL",
}
COLUMNS = {
    table: [part.split()[0] for part in body.split(", ") if part.split()[0] not in ("UNIQUE", "user_id)")]
    for table, body in _TABLES.items()
}

Rows = dict[str, list[tuple[Any, ...]]]


async def create_tables(connection: TransferConnection) -> None:
    is_mysql = isinstance(connection, MysqlTransferConnection)
    time = "DATETIME(3)" if is_mysql else "DATETIME" if _keeps_text(connection) else "TIMESTAMP(3)"
    long_text = "MEDIUMTEXT" if is_mysql else "TEXT"
    suffix = " DEFAULT CHARSET=utf8mb4" if is_mysql else ""
    for table, body in _TABLES.items():
        await connection.do(f"CREATE TABLE {table} ({body.format(time=time, text=long_text)}){suffix}")


def _keeps_text(connection: TransferConnection) -> bool:
    """Whether times are stored as text: SQLite has no type for them."""
    return isinstance(connection, SqliteTransferConnection)


async def write_rows(connection: TransferConnection, rows: Rows) -> None:
    for table, found in rows.items():
        for start in range(0, len(found), BATCH):
            some = [_as_stored(connection, row) for row in found[start : start + BATCH]]
            async with transaction(connection):
                await connection.insert(table, COLUMNS[table], some)


def _as_stored(connection: TransferConnection, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns a row with times without a zone, as such databases have them."""
    return tuple(
        (value.isoformat(" ") if _keeps_text(connection) else value)
        if isinstance(value := (item.replace(tzinfo=None) if isinstance(item, datetime) else item), datetime)
        else value
        for item in row
    )


async def make(url: str, rows: Rows) -> None:
    async with open_target(parse_store_url(url)) as connection:
        await create_tables(connection)
        await write_rows(connection, rows)


class Past:
    """A made-up past: `rows` by table."""

    def __init__(self, messages: int, seed: int = 1, people: int = 40, singles: int = 60, groups: int = 8) -> None:
        self.random = random.Random(seed)
        self.rows: Rows = {table: [] for table in _TABLES}
        self.users = [100 + i for i in range(people)]
        self._add_people()
        self.pairs = self._add_singles(min(singles, people * (people - 1) // 2))
        self.groups = self._add_groups(groups)
        self.ids: dict[tuple[int, int], list[int]] = {}  # (chat_type, chat) → ids of its messages
        self._add_messages(messages)
        self._add_members()

    def _add_people(self) -> None:
        for i, user in enumerate(self.users):
            self.rows["t_user"].append((user, f"name{i}", "$2a$10$xyz", f"Nick {i} 昵称", None, 1, START))
        self.rows["t_friend_relation"].append((1, self.users[0], self.users[1]))

    def _add_singles(self, count: int) -> dict[int, tuple[int, int]]:
        pairs: dict[tuple[int, int], None] = {}
        while len(pairs) < count:
            low, high = sorted(self.random.sample(self.users, 2))
            pairs[low, high] = None
        found = {5000 + i: pair for i, pair in enumerate(pairs)}
        self.rows["t_single_chat"] = [(chat, *pair, START) for chat, pair in found.items()]
        return found

    def _add_groups(self, count: int) -> dict[int, list[int]]:
        found = {}
        for i in range(count):
            people = self.random.sample(self.users, self.random.randint(3, max(3, len(self.users) // 2)))
            found[900 + i] = people
            self.rows["t_group"].append((900 + i, f"Group {i}", None, people[0], START))
        return found

    def _add_messages(self, count: int) -> None:
        message_id = 7_000_000_000_000
        at = START
        quiet = max(self.groups, default=0)  # one group in which nobody ever spoke
        chats = [(1, chat) for chat in self.pairs] + [(2, chat) for chat in self.groups if chat != quiet]
        for i in range(count):
            message_id += self.random.choice((1, 1, 2, 7))
            at += timedelta(milliseconds=self.random.choice((-5, 0, 0, 40, 900)))
            kind, chat = chats[int(len(chats) * self.random.random() ** 2)]
            people = self.pairs[chat] if kind == 1 else self.groups[chat]
            sender = self.random.choice(people)
            self.ids.setdefault((kind, chat), []).append(message_id)
            self.rows["t_message"].append(
                (
                    message_id,
                    kind,
                    chat if kind == 1 else None,
                    chat if kind == 2 else None,
                    sender,
                    next(user for user in people if user != sender) if kind == 1 else None,
                    *self._said(i),
                    RECALLED if self.random.random() < 0.02 else self.random.choice((1, 2, 3)),
                    f"c-{message_id}" if self.random.random() < 0.9 else None,
                    at,
                )
            )
            if kind == 2 and self.random.random() < 0.05:
                self._mention(message_id, chat, sender)

    def _said(self, i: int) -> tuple[int, str]:
        if i % 50 == 7:
            return 2, f'{{"url":"https://example.org/{i}.png","width":10}}'
        if i % 97 == 5:
            return 42, f"a type of {i}"
        return 1, f"message {i} äöü 你好 \U0001f600 " + "x" * self.random.randint(0, 120)

    def _mention(self, message_id: int, chat: int, sender: int) -> None:
        rows = self.rows["t_message_mention"]
        if self.random.random() < 0.2:
            named = [(user, 3) for user in self.groups[chat] if user != sender]
        else:
            named = [(user, self.random.choice((1, 2))) for user in self.random.sample(self.groups[chat], 2)]
        rows += [(len(rows) + 1 + i, chat, message_id, user, kind) for i, (user, kind) in enumerate(named)]

    def _add_members(self) -> None:
        for kind, table in ((1, "t_single_chat_member"), (2, "t_group_member")):
            rows = self.rows[table]
            for chat, people in (self.pairs if kind == 1 else self.groups).items():
                for i, user in enumerate(people):
                    delivered, read = self._cursor(kind, chat), self._cursor(kind, chat)
                    more = () if kind == 1 else (1 if i == 0 else 2 if i == 1 else 3, START)
                    rows.append((len(rows) + 1, chat, user, *more, delivered, read))

    def _cursor(self, kind: int, chat: int) -> int | None:
        """None, a message of this chat, one that is not there, one of another chat, or the far future."""
        ids = self.ids.get((kind, chat), [])
        choice = self.random.random()
        if choice < 0.2 or not self.rows["t_message"]:
            return None
        if choice < 0.7 and ids:
            return self.random.choice(ids)
        if choice < 0.9:
            return int(self.random.choice(self.rows["t_message"])[0]) + self.random.choice((0, 1))
        return self.random.choice((1, 1 << 50))

    # -- what must become of it ------------------------------------------------------------------------------

    def seqs(self) -> Iterator[tuple[int, tuple[int, int], int]]:
        """(id, chat, seq) of every message: its row number in its chat, by id."""
        count: dict[tuple[int, int], int] = {}
        for row in sorted(self.rows["t_message"]):
            chat = (row[1], row[2] if row[1] == 1 else row[3])
            count[chat] = count.get(chat, 0) + 1
            yield row[0], chat, count[chat]

    def cursors(self) -> Iterator[tuple[tuple[int, int], int, int, int]]:
        """(chat, user, delivered, read): the number of the chat's messages with an id up to the cursor."""
        for kind, table in ((1, "t_single_chat_member"), (2, "t_group_member")):
            for row in self.rows[table]:
                ids = self.ids.get((kind, row[1]), [])
                delivered, read = (sum(known <= (cursor or 0) for known in ids) for cursor in row[-2:])
                yield (kind, row[1]), row[2], max(delivered, read), read

    def unread(self, chat: tuple[int, int], user: int, read: int) -> int:
        above = [row for row in sorted(self.rows["t_message"]) if (row[1], row[2] if row[1] == 1 else row[3]) == chat]
        return sum(row[4] != user for row in above[read:])
