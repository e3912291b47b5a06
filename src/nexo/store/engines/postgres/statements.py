"""The statements of a batch on PostgreSQL: arrays, and everything written in a single statement."""

from __future__ import annotations

from typing import Any

from nexo.core.model import Conversation, Member
from nexo.store import rows
from nexo.store.batch import Locked, MemberKey, SentKey, SentRow, SeqKey, Target
from nexo.store.engine import Script, do
from nexo.store.engine import rows as query
from nexo.store.engines.postgres import sql as postgres
from nexo.store.engines.statements import (
    CONVERSATION,
    INSERT_MENTION,
    INSERT_MESSAGE,
    SENT_ROW,
    TARGET,
    ServerStatements,
    assignments,
    conversation_values,
    epochs_of,
    member_values,
    past_of,
    targets_of,
)
from nexo.store.journal.writing import INSERT as INSERT_JOURNAL


class PostgresHot(ServerStatements):
    _conversation = (
        f"SELECT {CONVERSATION},{postgres.CLOCK_MS} FROM conversations "
        "WHERE conversation_id = ANY(?::text[]) ORDER BY conversation_id FOR UPDATE"
    )
    _exists = "SELECT conversation_id FROM conversations WHERE conversation_id = ANY(?::text[])"
    _sent = (
        f"SELECT {rows.columns(SENT_ROW.split(','), 'm')} FROM unnest(?::text[],?::text[]) AS k(s,c) "
        "JOIN messages m ON m.sender_id=k.s AND m.client_msg_id=k.c"
    )
    _member = (
        f"SELECT {rows.columns(rows.MEMBER, 'm')} FROM unnest(?::bigint[],?::text[]) AS k(c,u) "
        "JOIN members m ON m.conv=k.c AND m.user_id=k.u ORDER BY m.conv,m.user_id FOR UPDATE OF m"
    )
    _target = f"SELECT {TARGET} FROM messages WHERE server_msg_id = ANY(?::bigint[])"
    _past = (
        "SELECT s.conv,s.user_id,s.from_seq,s.to_seq FROM unnest(?::bigint[],?::text[]) AS k(c,u) "
        "JOIN member_spans s ON s.conv=k.c AND s.user_id=k.u"
    )
    _save = (
        f"UPDATE members m SET {assignments(rows.MEMBER_SENT, 'v')} "
        f"FROM unnest({','.join(['?::bigint[]'] * 8)},?::text[]) "
        f"AS v({rows.columns(rows.MEMBER_SENT)},conv,user_id) WHERE m.conv=v.conv AND m.user_id=v.user_id"
    )
    _noted = f"noted AS ({INSERT_JOURNAL}({postgres.CLOCK_MS},?))"
    # one statement, one round trip: the parts touch different tables
    _store = (
        f"WITH inserted AS ({INSERT_MESSAGE.replace(' VALUES ', '')} SELECT * FROM unnest("
        f"{','.join(f'?::{kind}[]' for kind in rows.NEW_MESSAGE_TYPES)})), "
        f"grown AS (UPDATE conversations c SET {assignments(rows.CONVERSATION_SENT, 'v')} "
        f"FROM unnest({','.join(['?::bigint[]'] * 5)}) AS v({rows.columns(rows.CONVERSATION_SENT)},id) "
        f"WHERE c.id=v.id), {_noted} {_save}"
    )
    _mention = (
        f"{INSERT_MENTION.replace(' VALUES ', '')} SELECT * FROM unnest(?::bigint[],?::text[],?::bigint[],?::text[])"
    )

    def lock_conversations(self, names: list[str], wait: bool) -> Script[Locked]:
        found = yield query(self._conversation if wait else f"{self._conversation} SKIP LOCKED", names)
        return (yield from self._locked(names, found))

    def _existing(self, names: list[str]) -> Script[set[str]]:
        found = yield query(self._exists, names)
        return {row[0] for row in found}

    def find_sent(self, keys: list[SentKey]) -> Script[dict[SentKey, SentRow]]:
        found = yield query(self._sent, [key[0] for key in keys], [key[1] for key in keys])
        return {(row[4], row[2]): SentRow(row[0], tuple(row)[1:-1], row[-1]) for row in found}

    def lock_members(self, keys: list[MemberKey]) -> Script[dict[MemberKey, Member]]:
        found = yield query(self._member, [key[0] for key in keys], [key[1] for key in keys])
        return {(row[0], row[1]): Member(*row) for row in found}

    def lock_epochs(self, shards: list[int]) -> Script[dict[int, int]]:
        return (yield from epochs_of(shards, " FOR SHARE"))

    def find_targets(self, ids: list[int]) -> Script[dict[int, Target]]:
        return targets_of((yield query(self._target, ids)))

    def find_past(self, keys: list[MemberKey]) -> Script[dict[MemberKey, list[tuple[int, int]]]]:
        return past_of((yield query(self._past, [key[0] for key in keys], [key[1] for key in keys])))

    def find_conversations(self, names: list[str]) -> Script[dict[str, Conversation]]:
        found = yield query(f"SELECT {CONVERSATION} FROM conversations WHERE conversation_id = ANY(?::text[])", names)
        return {row[1]: Conversation(*row) for row in found}

    def find_countable(self, keys: list[SeqKey]) -> Script[dict[SeqKey, int]]:
        found = yield query(
            "SELECT m.conv,m.seq,m.countable_no FROM unnest(?::bigint[],?::bigint[]) AS k(c,s) "
            "JOIN messages m ON m.conv=k.c AND m.seq=k.s",
            [key[0] for key in keys],
            [key[1] for key in keys],
        )
        return {(row[0], row[1]): row[2] for row in found}

    def save_members(self, members: list[Member], entries: str | None) -> Script[None]:
        columns = zip(*(member_values(item) for item in members), strict=True)
        if entries is None:
            yield do(self._save, *columns)
        else:
            yield do(f"WITH {self._noted} {self._save}", entries, *columns)

    def store(
        self,
        messages: list[tuple[Any, ...]],
        conversations: list[Conversation],
        members: list[Member],
        mentions: list[tuple[Any, ...]],
        entries: str,
        now_ms: int,
    ) -> Script[None]:
        grown = [conversation_values(item) for item in conversations]
        stepped = [member_values(item) for item in members]
        yield do(
            self._store,
            *zip(*messages, strict=True),
            *zip(*grown, strict=True),
            entries,
            *zip(*stepped, strict=True),
        )
        if mentions:
            yield do(self._mention, *zip(*mentions, strict=True))
