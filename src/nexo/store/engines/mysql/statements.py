"""The statements of a batch on MySQL and MariaDB: multi-row lists, kept under the thousand entries above which MariaDB
gives up the index, which a locking read must never do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexo.core.model import Conversation, Member
from nexo.store import rows
from nexo.store.batch import Locked, MemberKey, SentKey, SentRow, SeqKey, Target
from nexo.store.engine import Script, do
from nexo.store.engine import rows as query
from nexo.store.engines.mysql import sql as mysql
from nexo.store.engines.statements import (
    CONVERSATION,
    INSERT_MENTION,
    INSERT_MESSAGE,
    MEMBER,
    SENT_ROW,
    TARGET,
    ServerStatements,
    chunks,
    conversation_values,
    epochs_of,
    member_values,
    past_of,
    targets_of,
)
from nexo.store.journal.writing import INSERT as INSERT_JOURNAL


class MysqlHot(ServerStatements):
    _journal = f"{INSERT_JOURNAL}({mysql.CLOCK_MS},?)"
    _max_keys = 500
    _max_rows = 1000

    def lock_conversations(self, names: list[str], wait: bool) -> Script[Locked]:
        found: list[Any] = []
        for chunk in chunks(names, self._max_keys):
            found += yield query(
                f"SELECT {CONVERSATION},{mysql.CLOCK_MS} FROM conversations FORCE INDEX (conversations_by_name) "
                f"WHERE conversation_id IN ({','.join('?' * len(chunk))}) "
                f"ORDER BY conversation_id FOR UPDATE{'' if wait else ' SKIP LOCKED'}",
                *chunk,
            )
        return (yield from self._locked(names, found))

    def _existing(self, names: list[str]) -> Script[set[str]]:
        existing: set[str] = set()
        for chunk in chunks(names, self._max_keys):
            found = yield query(
                f"SELECT conversation_id FROM conversations WHERE conversation_id IN ({','.join('?' * len(chunk))})",
                *chunk,
            )
            existing.update(row[0] for row in found)
        return existing

    def find_sent(self, keys: list[SentKey]) -> Script[dict[SentKey, SentRow]]:
        found = yield from self._by_pairs(
            f"SELECT {SENT_ROW} FROM messages FORCE INDEX (messages_by_client)",
            "sender_id",
            "client_msg_id",
            keys,
        )
        return {(row[4], row[2]): SentRow(row[0], row[1:-1], row[-1]) for row in found}

    def lock_members(self, keys: list[MemberKey]) -> Script[dict[MemberKey, Member]]:
        found = yield from self._by_pairs(
            f"SELECT {MEMBER} FROM members FORCE INDEX (PRIMARY)",
            "conv",
            "user_id",
            keys,
            " ORDER BY conv,user_id FOR UPDATE",
        )
        return {(row[0], row[1]): Member(*row) for row in found}

    def lock_epochs(self, shards: list[int]) -> Script[dict[int, int]]:
        return (yield from epochs_of(shards, " LOCK IN SHARE MODE"))

    def find_targets(self, ids: list[int]) -> Script[dict[int, Target]]:
        found: list[Any] = []
        for chunk in chunks(ids, self._max_keys):
            marks = ",".join("?" * len(chunk))
            found += yield query(f"SELECT {TARGET} FROM messages WHERE server_msg_id IN ({marks})", *chunk)
        return targets_of(found)

    def find_past(self, keys: list[MemberKey]) -> Script[dict[MemberKey, list[tuple[int, int]]]]:
        return past_of(
            (
                yield from self._by_pairs(
                    "SELECT conv,user_id,from_seq,to_seq FROM member_spans", "conv", "user_id", keys
                )
            )
        )

    def _by_pairs(self, select: str, a: str, b: str, keys: Sequence[Any], tail: str = "") -> Script[list[Any]]:
        found: list[Any] = []
        for chunk in chunks(keys, self._max_keys):
            marks = ",".join(["(?,?)"] * len(chunk))
            found += yield query(
                f"{select} WHERE ({a},{b}) IN ({marks}){tail}", *(part for key in chunk for part in key)
            )
        return found

    def find_conversations(self, names: list[str]) -> Script[dict[str, Conversation]]:
        found: list[Any] = []
        for chunk in chunks(names, self._max_keys):
            marks = ",".join("?" * len(chunk))
            found += yield query(f"SELECT {CONVERSATION} FROM conversations WHERE conversation_id IN ({marks})", *chunk)
        return {row[1]: Conversation(*row) for row in found}

    def find_countable(self, keys: list[SeqKey]) -> Script[dict[SeqKey, int]]:
        found = yield from self._by_pairs("SELECT conv,seq,countable_no FROM messages", "conv", "seq", keys)
        return {(row[0], row[1]): row[2] for row in found}

    def save_members(self, members: list[Member], entries: str | None) -> Script[None]:
        yield from self._update(
            "members", rows.MEMBER_SENT, ("conv", "user_id"), [member_values(item) for item in members]
        )
        if entries is not None:
            yield do(self._journal, entries)

    def store(
        self,
        messages: list[tuple[Any, ...]],
        conversations: list[Conversation],
        members: list[Member],
        mentions: list[tuple[Any, ...]],
        entries: str,
        now_ms: int,
    ) -> Script[None]:
        yield from self._insert(INSERT_MESSAGE, messages)
        yield from self._update(
            "conversations",
            rows.CONVERSATION_SENT,
            ("id",),
            [conversation_values(item) for item in conversations],
        )
        if mentions:
            yield from self._insert(INSERT_MENTION, mentions)
        yield from self.save_members(members, entries)

    def _insert(self, insert: str, values: list[tuple[Any, ...]]) -> Script[None]:
        for chunk in chunks(values, self._max_rows):
            row = f"({','.join('?' * len(chunk[0]))})"
            yield do(insert + ",".join([row] * len(chunk)), *(value for item in chunk for value in item))

    def _update(
        self, table: str, names: Sequence[str], key: Sequence[str], values: list[tuple[Any, ...]]
    ) -> Script[None]:
        """Update many rows at once by joining them with a derived table of the new values."""
        all_names = (*names, *key)
        first = f"SELECT {','.join(f'? AS {name}' for name in all_names)}"
        other = f"SELECT {','.join('?' * len(all_names))}"
        on = " AND ".join(f"t.{name}=v.{name}" for name in key)
        for chunk in chunks(values, self._max_rows):
            source = " UNION ALL ".join([first, *[other] * (len(chunk) - 1)])
            sets = ",".join(f"t.{name}=v.{name}" for name in names)
            yield do(
                f"UPDATE ({source}) v STRAIGHT_JOIN {table} t ON {on} SET {sets}",
                *(value for item in chunk for value in item),
            )
