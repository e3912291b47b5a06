"""The statements of a batch on SQLite: one prepared statement per row (a call costs microseconds; `(a,b) IN (VALUES …)`
would scan), and rows that the last transactions locked are remembered."""

from __future__ import annotations

from typing import Any, TypeVar

from nexo.core.files import StoredFile
from nexo.core.model import Conversation, Member
from nexo.store import rows
from nexo.store.batch import Locked, MemberKey, SentKey, SentRow, SeqKey, Target
from nexo.store.engine import MARK, Mode, Part, Script, Stmt
from nexo.store.engine import rows as query
from nexo.store.engines.statements import (
    CONVERSATION,
    INSERT_MENTION,
    INSERT_MESSAGE,
    MEMBER,
    SENT_ROW,
    TARGET,
    assignments,
    conversation_values,
    epochs_of,
    files_of,
    member_values,
    past_of,
    targets_of,
)
from nexo.store.journal.writing import INSERT as INSERT_JOURNAL

T = TypeVar("T")

REMEMBERED_MAX = 40_000  # rows of conversations and members, some 500 bytes each


class SqliteHot:
    """Remembers the rows that the last transactions locked: no other process writes them. If one does (an
    administrator's command), or another script of this process, the mark differs and they are read again."""

    exclusive = True
    _conversation = f"SELECT {CONVERSATION} FROM conversations WHERE conversation_id=?"
    _sent = f"SELECT {SENT_ROW} FROM messages WHERE sender_id=? AND client_msg_id=?"
    _member = f"SELECT {MEMBER} FROM members WHERE conv=? AND user_id=?"
    _target = f"SELECT {TARGET} FROM messages WHERE server_msg_id=?"
    _past = "SELECT conv,user_id,from_seq,to_seq FROM member_spans WHERE conv=? AND user_id=?"
    _insert = f"{INSERT_MESSAGE}({','.join('?' * len(rows.NEW_MESSAGE))})"
    _grow = f"UPDATE conversations SET {assignments(rows.CONVERSATION_SENT)} WHERE id=?"
    _step = f"UPDATE members SET {assignments(rows.MEMBER_SENT)} WHERE conv=? AND user_id=?"
    _journal = f"{INSERT_JOURNAL}(?,?)"

    def __init__(self) -> None:
        self._mark: Any = None  # of the database as it is remembered
        self._conversations: dict[str, Conversation] = {}
        self._members: dict[MemberKey, Member] = {}

    def beside(self, script: Script[T]) -> Script[T]:
        before, _ = yield MARK
        result = yield from script
        if before == self._mark:
            self._mark, _ = yield MARK
        return result

    def lock_conversations(self, names: list[str], wait: bool) -> Script[Locked]:
        mark, now_ms = yield MARK
        missing = self._missing(names, mark)
        if missing:
            self._remember((yield Stmt(self._conversation, missing, Mode.EACH)))
        known = self._conversations
        return Locked(now_ms, {name: known[name] for name in names if name in known}, set())

    def find_conversations(self, names: list[str]) -> Script[dict[str, Conversation]]:
        return (yield from self.lock_conversations(names, True)).conversations

    def _missing(self, names: list[str], mark: Any) -> list[tuple[str]]:
        """Returns the keys of conversations that are not remembered; forgets all when the database has changed."""
        known = self._conversations
        if mark != self._mark or len(known) + len(self._members) > REMEMBERED_MAX:
            known.clear()
            self._members.clear()
            self._mark = mark
        return [(name,) for name in names if name not in known]

    def _remember(self, found: list[Any]) -> None:
        self._conversations.update((row[1], Conversation(*row)) for row in found if row)

    def find_sent(self, keys: list[SentKey]) -> Script[dict[SentKey, SentRow]]:
        found = yield Stmt(self._sent, keys, Mode.EACH)
        return {key: SentRow(row[0], row[1:-1], row[-1]) for key, row in zip(keys, found, strict=True) if row}

    def lock_members(self, keys: list[MemberKey]) -> Script[dict[MemberKey, Member]]:
        known = self._members
        missing = [key for key in keys if key not in known]
        if missing:
            found = yield Stmt(self._member, missing, Mode.EACH)
            known.update((key, Member(*row)) for key, row in zip(missing, found, strict=True) if row)
        return {key: known[key] for key in keys if key in known}

    def lock_epochs(self, shards: list[int]) -> Script[dict[int, int]]:
        return (yield from epochs_of(shards, ""))

    def lock_files(self, file_ids: list[str]) -> Script[dict[str, StoredFile]]:
        return (yield from files_of(file_ids, ""))

    def find_targets(self, ids: list[int]) -> Script[dict[int, Target]]:
        found = yield Stmt(self._target, [(key,) for key in ids], Mode.EACH)
        return targets_of([row for row in found if row])

    def find_past(self, keys: list[MemberKey]) -> Script[dict[MemberKey, list[tuple[int, int]]]]:
        found: list[Any] = []
        for key in keys:
            found += yield query(self._past, *key)
        return past_of(found)

    def find_countable(self, keys: list[SeqKey]) -> Script[dict[SeqKey, int]]:
        found = yield Stmt("SELECT countable_no FROM messages WHERE conv=? AND seq=?", keys, Mode.EACH)
        return {key: row[0] for key, row in zip(keys, found, strict=True) if row}

    def save_members(self, members: list[Member], entries: str | None) -> Script[None]:
        parts: list[Part] = [(self._step, list(map(member_values, members)))]
        if entries is not None:
            _, now_ms = yield MARK
            parts.append((self._journal, [(now_ms, entries)]))
        self._mark, _ = yield Stmt("", parts, Mode.ALL)

    def store(
        self,
        messages: list[tuple[Any, ...]],
        conversations: list[Conversation],
        members: list[Member],
        mentions: list[tuple[Any, ...]],
        entries: str,
        now_ms: int,
    ) -> Script[None]:
        parts: list[Part] = [
            (self._insert, messages),
            (self._grow, list(map(conversation_values, conversations))),
            (self._step, list(map(member_values, members))),
            (self._journal, [(now_ms, entries)]),
        ]
        if mentions:
            parts.append((f"{INSERT_MENTION}(?,?,?,?)", mentions))
        self._mark, _ = yield Stmt("", parts, Mode.ALL)
