"""Whether sends would be allowed now, without a lock. The decision that counts is made when they are written
(`batch.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from nexo.core import policy
from nexo.core.model import Conversation, Draft, Kind, Member
from nexo.errors import NexoError
from nexo.ids import AT_ALL
from nexo.ports import Permission
from nexo.store import rows
from nexo.store.engine import NOW, Script
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

KEYS_AT_ONCE = 100


def may_send(sql: Sql, drafts: Sequence[Draft], *, contacts_only: bool) -> Script[list[Permission]]:
    now_ms = yield NOW
    chosen = sql.one_of("conversation_id", sorted({draft.conversation_id for draft in drafts}))
    found = yield query(
        f"SELECT {rows.columns(rows.CONVERSATION)} FROM conversations WHERE {chosen.sql}", *chosen.params
    )
    conversations = {row[1]: Conversation(*row) for row in found}
    keys = sorted(
        {
            (conversations[draft.conversation_id].id, draft.sender_id)
            for draft in drafts
            if draft.conversation_id in conversations
        }
    )
    members: dict[tuple[int, str], Member] = {}
    for start in range(0, len(keys), KEYS_AT_ONCE):
        chunk = keys[start : start + KEYS_AT_ONCE]
        where = " OR ".join(["(conv=? AND user_id=?)"] * len(chunk))
        values = [value for key in chunk for value in key]
        for row in (yield query(f"SELECT {rows.columns(rows.MEMBER)} FROM members WHERE {where}", *values)):
            members[row[0], row[1]] = Member(*row)
    return [
        _may_send(draft, conversations.get(draft.conversation_id), members, now_ms, contacts_only) for draft in drafts
    ]


def _may_send(
    draft: Draft,
    conversation: Conversation | None,
    members: dict[tuple[int, str], Member],
    now_ms: int,
    contacts_only: bool,
) -> Permission:
    if conversation is None:
        return Permission(None if draft.kind == Kind.SINGLE else False, 0)
    member = members.get((conversation.id, draft.sender_id))
    try:
        policy.check_may_send(conversation, member, now_ms, contacts_only=contacts_only)
        if member is not None and draft.mentions and draft.mentions[0] == AT_ALL:
            policy.check_may_mention_all(conversation, member)
    except NexoError:
        return Permission(False, conversation.member_epoch)
    return Permission(True, conversation.member_epoch)
