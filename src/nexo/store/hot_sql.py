"""The statements that count (see `batch.HotSql`), per engine: same meaning, each in its fastest form.

SQLite: one prepared statement per row (a call costs microseconds; `(a,b) IN (VALUES …)` would scan).
PostgreSQL: arrays, and everything written in a single statement. MySQL: multi-row lists, kept under the
thousand entries above which MariaDB gives up the index, which a locking read must never do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from nexo.core.model import Conversation, Member
from nexo.store import mysql, postgres, rows
from nexo.store.batch import HotSql, Locked, MemberKey, SentKey, SentRow, SeqKey, Target
from nexo.store.engine import MARK, NOW, Mode, Script, Stmt, do, many
from nexo.store.engine import rows as query

T = TypeVar("T")

_CONVERSATION = rows.columns(rows.CONVERSATION)
_MEMBER = rows.columns(rows.MEMBER)
_SENT_ROW = f"request_hash,{rows.columns(rows.MESSAGE)}"
_TARGET = "server_msg_id,conv,seq,sender_id,msg_type,content,status"
_INSERT_MESSAGE = f"INSERT INTO messages ({rows.columns(rows.NEW_MESSAGE)}) VALUES "
_INSERT_MENTION = "INSERT INTO mentions (conv,user_id,seq,sender_id) VALUES "
REMEMBERED_MAX = 40_000  # rows of conversations and members, some 500 bytes each


def _conversation_values(conversation: Conversation) -> tuple[int, ...]:
    return (
        conversation.head_seq,
        conversation.countable,
        conversation.at_all_count,
        conversation.last_send_at,
        conversation.id,
    )


def _member_values(member: Member) -> tuple[Any, ...]:
    return (
        member.delivered_seq,
        member.read_seq,
        member.read_countable,
        member.own_above,
        member.last_own_seq,
        member.mention_unread,
        member.at_all_base,
        member.conv,
        member.user_id,
    )


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _assignments(names: Sequence[str], source: str = "?") -> str:
    return ",".join(f"{name}={source if source == '?' else f'{source}.{name}'}" for name in names)


def _targets(found: Sequence[Any]) -> dict[int, Target]:
    return {row[0]: Target(*row[1:]) for row in found}


def _past(found: Sequence[Any]) -> dict[MemberKey, list[tuple[int, int]]]:
    spans: dict[MemberKey, list[tuple[int, int]]] = {}
    for conv, user_id, from_seq, to_seq in found:
        spans.setdefault((conv, user_id), []).append((from_seq, to_seq))
    return spans


def _epochs(shards: list[int], lock: str) -> Script[dict[int, int]]:
    marks = ",".join("?" * len(shards))
    found = yield query(f"SELECT shard,epoch FROM stream_owners WHERE shard IN ({marks}) ORDER BY shard{lock}", *shards)
    return {row[0]: row[1] for row in found}


class SqliteHot:
    """Rows that were locked by the last transactions are remembered: nobody else writes here, and if somebody does
    (an administrator's command, another script of ours), the mark tells, and they are read again."""

    exclusive = True
    _conversation = f"SELECT {_CONVERSATION} FROM conversations WHERE conversation_id=?"
    _sent = f"SELECT {_SENT_ROW} FROM messages WHERE sender_id=? AND client_msg_id=?"
    _member = f"SELECT {_MEMBER} FROM members WHERE conv=? AND user_id=?"
    _target = f"SELECT {_TARGET} FROM messages WHERE server_msg_id=?"
    _past = "SELECT conv,user_id,from_seq,to_seq FROM member_spans WHERE conv=? AND user_id=?"
    _insert = f"{_INSERT_MESSAGE}({','.join('?' * len(rows.NEW_MESSAGE))})"
    _grow = f"UPDATE conversations SET {_assignments(rows.CONVERSATION_SENT)} WHERE id=?"
    _step = f"UPDATE members SET {_assignments(rows.MEMBER_SENT)} WHERE conv=? AND user_id=?"

    def __init__(self) -> None:
        self._mark: Any = None  # of the database as it is remembered
        self._conversations: dict[str, Conversation] = {}
        self._members: dict[MemberKey, Member] = {}

    def lock_conversations(self, names: list[str], wait: bool) -> Script[Locked]:
        conversations = yield from self.find_conversations(names)
        now_ms = yield NOW
        return Locked(now_ms, conversations, set())

    def find_conversations(self, names: list[str]) -> Script[dict[str, Conversation]]:
        mark = yield MARK
        known = self._conversations
        if mark != self._mark or len(known) + len(self._members) > REMEMBERED_MAX:
            known.clear()
            self._members.clear()
            self._mark = mark
        missing = [(name,) for name in names if name not in known]
        if missing:
            found = yield Stmt(self._conversation, missing, Mode.EACH)
            known.update((row[1], Conversation(*row)) for row in found if row)
        return {name: known[name] for name in names if name in known}

    def find_sent(self, keys: list[SentKey]) -> Script[dict[SentKey, SentRow]]:
        found = yield Stmt(self._sent, keys, Mode.EACH)
        return {key: SentRow(row[0], row[1:]) for key, row in zip(keys, found, strict=True) if row}

    def lock_members(self, keys: list[MemberKey]) -> Script[dict[MemberKey, Member]]:
        known = self._members
        missing = [key for key in keys if key not in known]
        if missing:
            found = yield Stmt(self._member, missing, Mode.EACH)
            known.update((key, Member(*row)) for key, row in zip(missing, found, strict=True) if row)
        return {key: known[key] for key in keys if key in known}

    def lock_epochs(self, shards: list[int]) -> Script[dict[int, int]]:
        return (yield from _epochs(shards, ""))

    def find_targets(self, ids: list[int]) -> Script[dict[int, Target]]:
        found = yield Stmt(self._target, [(key,) for key in ids], Mode.EACH)
        return _targets([row for row in found if row])

    def find_past(self, keys: list[MemberKey]) -> Script[dict[MemberKey, list[tuple[int, int]]]]:
        found: list[Any] = []
        for key in keys:
            found += yield query(self._past, *key)
        return _past(found)

    def find_countable(self, keys: list[SeqKey]) -> Script[dict[SeqKey, int]]:
        found = yield Stmt("SELECT countable_no FROM messages WHERE conv=? AND seq=?", keys, Mode.EACH)
        return {key: row[0] for key, row in zip(keys, found, strict=True) if row}

    def save_members(self, members: list[Member]) -> Script[None]:
        yield many(self._step, [_member_values(item) for item in members])
        self._mark = yield MARK

    def store(
        self,
        messages: list[tuple[Any, ...]],
        conversations: list[Conversation],
        members: list[Member],
        mentions: list[tuple[Any, ...]],
    ) -> Script[None]:
        yield many(self._insert, messages)
        yield many(self._grow, [_conversation_values(item) for item in conversations])
        yield many(self._step, [_member_values(item) for item in members])
        if mentions:
            yield many(f"{_INSERT_MENTION}(?,?,?,?)", mentions)
        self._mark = yield MARK


class _ServerHot(ABC):
    """What the servers share: a skipped conversation has to be told from one that does not exist."""

    exclusive = False

    def _locked(self, names: list[str], found: Sequence[Any]) -> Script[Locked]:
        conversations = {row[1]: Conversation(*row[:-1]) for row in found}
        now_ms = found[0][-1] if found else (yield NOW)
        missing = [name for name in names if name not in conversations]
        busy: set[str] = set()
        if missing:
            busy = yield from self._existing(missing)
        return Locked(now_ms, conversations, busy)

    @abstractmethod
    def _existing(self, names: list[str]) -> Script[set[str]]:
        """Those that exist, held by somebody or not."""


class PostgresHot(_ServerHot):
    _conversation = (
        f"SELECT {_CONVERSATION},{postgres.CLOCK_MS} FROM conversations "
        "WHERE conversation_id = ANY(?::text[]) ORDER BY conversation_id FOR UPDATE"
    )
    _exists = "SELECT conversation_id FROM conversations WHERE conversation_id = ANY(?::text[])"
    _sent = (
        f"SELECT {rows.columns(_SENT_ROW.split(','), 'm')} FROM unnest(?::text[],?::text[]) AS k(s,c) "
        "JOIN messages m ON m.sender_id=k.s AND m.client_msg_id=k.c"
    )
    _member = (
        f"SELECT {rows.columns(rows.MEMBER, 'm')} FROM unnest(?::bigint[],?::text[]) AS k(c,u) "
        "JOIN members m ON m.conv=k.c AND m.user_id=k.u ORDER BY m.conv,m.user_id FOR UPDATE OF m"
    )
    _target = f"SELECT {_TARGET} FROM messages WHERE server_msg_id = ANY(?::bigint[])"
    _past = (
        "SELECT s.conv,s.user_id,s.from_seq,s.to_seq FROM unnest(?::bigint[],?::text[]) AS k(c,u) "
        "JOIN member_spans s ON s.conv=k.c AND s.user_id=k.u"
    )
    _save = (
        f"UPDATE members m SET {_assignments(rows.MEMBER_SENT, 'v')} "
        f"FROM unnest({','.join(['?::bigint[]'] * 8)},?::text[]) "
        f"AS v({rows.columns(rows.MEMBER_SENT)},conv,user_id) WHERE m.conv=v.conv AND m.user_id=v.user_id"
    )
    # one statement, one round trip: the three parts touch different tables
    _store = (
        f"WITH inserted AS ({_INSERT_MESSAGE.replace(' VALUES ', '')} SELECT * FROM unnest("
        "?::bigint[],?::bigint[],?::bigint[],?::text[],?::text[],?::smallint[],?::text[],?::bytea[],"
        "?::bigint[],?::text[],?::text[],?::bigint[],?::bigint[])), "
        f"grown AS (UPDATE conversations c SET {_assignments(rows.CONVERSATION_SENT, 'v')} "
        f"FROM unnest({','.join(['?::bigint[]'] * 5)}) AS v({rows.columns(rows.CONVERSATION_SENT)},id) "
        f"WHERE c.id=v.id) {_save}"
    )
    _mention = (
        f"{_INSERT_MENTION.replace(' VALUES ', '')} SELECT * FROM unnest(?::bigint[],?::text[],?::bigint[],?::text[])"
    )

    def lock_conversations(self, names: list[str], wait: bool) -> Script[Locked]:
        found = yield query(self._conversation if wait else f"{self._conversation} SKIP LOCKED", names)
        return (yield from self._locked(names, found))

    def _existing(self, names: list[str]) -> Script[set[str]]:
        found = yield query(self._exists, names)
        return {row[0] for row in found}

    def find_sent(self, keys: list[SentKey]) -> Script[dict[SentKey, SentRow]]:
        found = yield query(self._sent, [key[0] for key in keys], [key[1] for key in keys])
        return {(row[4], row[2]): SentRow(row[0], tuple(row)[1:]) for row in found}

    def lock_members(self, keys: list[MemberKey]) -> Script[dict[MemberKey, Member]]:
        found = yield query(self._member, [key[0] for key in keys], [key[1] for key in keys])
        return {(row[0], row[1]): Member(*row) for row in found}

    def lock_epochs(self, shards: list[int]) -> Script[dict[int, int]]:
        return (yield from _epochs(shards, " FOR SHARE"))

    def find_targets(self, ids: list[int]) -> Script[dict[int, Target]]:
        return _targets((yield query(self._target, ids)))

    def find_past(self, keys: list[MemberKey]) -> Script[dict[MemberKey, list[tuple[int, int]]]]:
        return _past((yield query(self._past, [key[0] for key in keys], [key[1] for key in keys])))

    def find_conversations(self, names: list[str]) -> Script[dict[str, Conversation]]:
        found = yield query(f"SELECT {_CONVERSATION} FROM conversations WHERE conversation_id = ANY(?::text[])", names)
        return {row[1]: Conversation(*row) for row in found}

    def find_countable(self, keys: list[SeqKey]) -> Script[dict[SeqKey, int]]:
        found = yield query(
            "SELECT m.conv,m.seq,m.countable_no FROM unnest(?::bigint[],?::bigint[]) AS k(c,s) "
            "JOIN messages m ON m.conv=k.c AND m.seq=k.s",
            [key[0] for key in keys],
            [key[1] for key in keys],
        )
        return {(row[0], row[1]): row[2] for row in found}

    def save_members(self, members: list[Member]) -> Script[None]:
        yield do(self._save, *zip(*(_member_values(item) for item in members), strict=True))

    def store(
        self,
        messages: list[tuple[Any, ...]],
        conversations: list[Conversation],
        members: list[Member],
        mentions: list[tuple[Any, ...]],
    ) -> Script[None]:
        parts = (
            messages,
            [_conversation_values(item) for item in conversations],
            [_member_values(item) for item in members],
        )
        yield do(self._store, *(column for part in parts for column in zip(*part, strict=True)))
        if mentions:
            yield do(self._mention, *zip(*mentions, strict=True))


class MysqlHot(_ServerHot):
    _max_keys = 500
    _max_rows = 1000

    def lock_conversations(self, names: list[str], wait: bool) -> Script[Locked]:
        found: list[Any] = []
        for chunk in _chunks(names, self._max_keys):
            found += yield query(
                f"SELECT {_CONVERSATION},{mysql.CLOCK_MS} FROM conversations FORCE INDEX (conversations_by_name) "
                f"WHERE conversation_id IN ({','.join('?' * len(chunk))}) "
                f"ORDER BY conversation_id FOR UPDATE{'' if wait else ' SKIP LOCKED'}",
                *chunk,
            )
        return (yield from self._locked(names, found))

    def _existing(self, names: list[str]) -> Script[set[str]]:
        existing: set[str] = set()
        for chunk in _chunks(names, self._max_keys):
            found = yield query(
                f"SELECT conversation_id FROM conversations WHERE conversation_id IN ({','.join('?' * len(chunk))})",
                *chunk,
            )
            existing.update(row[0] for row in found)
        return existing

    def find_sent(self, keys: list[SentKey]) -> Script[dict[SentKey, SentRow]]:
        found = yield from self._by_pairs(
            f"SELECT {_SENT_ROW} FROM messages FORCE INDEX (messages_by_client)",
            "sender_id",
            "client_msg_id",
            keys,
        )
        return {(row[4], row[2]): SentRow(row[0], row[1:]) for row in found}

    def lock_members(self, keys: list[MemberKey]) -> Script[dict[MemberKey, Member]]:
        found = yield from self._by_pairs(
            f"SELECT {_MEMBER} FROM members FORCE INDEX (PRIMARY)",
            "conv",
            "user_id",
            keys,
            " ORDER BY conv,user_id FOR UPDATE",
        )
        return {(row[0], row[1]): Member(*row) for row in found}

    def lock_epochs(self, shards: list[int]) -> Script[dict[int, int]]:
        return (yield from _epochs(shards, " LOCK IN SHARE MODE"))

    def find_targets(self, ids: list[int]) -> Script[dict[int, Target]]:
        found: list[Any] = []
        for chunk in _chunks(ids, self._max_keys):
            marks = ",".join("?" * len(chunk))
            found += yield query(f"SELECT {_TARGET} FROM messages WHERE server_msg_id IN ({marks})", *chunk)
        return _targets(found)

    def find_past(self, keys: list[MemberKey]) -> Script[dict[MemberKey, list[tuple[int, int]]]]:
        return _past(
            (
                yield from self._by_pairs(
                    "SELECT conv,user_id,from_seq,to_seq FROM member_spans", "conv", "user_id", keys
                )
            )
        )

    def _by_pairs(self, select: str, a: str, b: str, keys: Sequence[Any], tail: str = "") -> Script[list[Any]]:
        found: list[Any] = []
        for chunk in _chunks(keys, self._max_keys):
            marks = ",".join(["(?,?)"] * len(chunk))
            found += yield query(
                f"{select} WHERE ({a},{b}) IN ({marks}){tail}", *(part for key in chunk for part in key)
            )
        return found

    def find_conversations(self, names: list[str]) -> Script[dict[str, Conversation]]:
        found: list[Any] = []
        for chunk in _chunks(names, self._max_keys):
            marks = ",".join("?" * len(chunk))
            found += yield query(
                f"SELECT {_CONVERSATION} FROM conversations WHERE conversation_id IN ({marks})", *chunk
            )
        return {row[1]: Conversation(*row) for row in found}

    def find_countable(self, keys: list[SeqKey]) -> Script[dict[SeqKey, int]]:
        found = yield from self._by_pairs("SELECT conv,seq,countable_no FROM messages", "conv", "seq", keys)
        return {(row[0], row[1]): row[2] for row in found}

    def save_members(self, members: list[Member]) -> Script[None]:
        yield from self._update(
            "members", rows.MEMBER_SENT, ("conv", "user_id"), [_member_values(item) for item in members]
        )

    def store(
        self,
        messages: list[tuple[Any, ...]],
        conversations: list[Conversation],
        members: list[Member],
        mentions: list[tuple[Any, ...]],
    ) -> Script[None]:
        yield from self._insert(_INSERT_MESSAGE, messages)
        yield from self._update(
            "conversations",
            rows.CONVERSATION_SENT,
            ("id",),
            [_conversation_values(item) for item in conversations],
        )
        yield from self.save_members(members)
        if mentions:
            yield from self._insert(_INSERT_MENTION, mentions)

    def _insert(self, insert: str, values: list[tuple[Any, ...]]) -> Script[None]:
        for chunk in _chunks(values, self._max_rows):
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
        for chunk in _chunks(values, self._max_rows):
            source = " UNION ALL ".join([first, *[other] * (len(chunk) - 1)])
            sets = ",".join(f"t.{name}=v.{name}" for name in names)
            yield do(
                f"UPDATE ({source}) v STRAIGHT_JOIN {table} t ON {on} SET {sets}",
                *(value for item in chunk for value in item),
            )


HOT_SQL: dict[str, type[HotSql]] = {
    "sqlite": SqliteHot,
    "mysql": MysqlHot,
    "postgresql": PostgresHot,
}
