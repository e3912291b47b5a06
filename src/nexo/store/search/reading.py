"""What a search reads for one user: the conversations, and the messages that the user may see of the candidates.

Everything goes through the visibility gate (`open_view`): the index decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nexo.core.model import Message, MessageStatus
from nexo.core.visibility import clip
from nexo.errors import NexoError
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.expiry import hide_expired
from nexo.store.hiding import not_deleted_by
from nexo.store.history import LIMIT_MAX, open_view, pull_seqs
from nexo.store.sql import Sql

SCAN_ROWS = 5000  # of a conversation that one request for media looks at
_UNCUT = 1 << 40  # bytes: the caller cuts


def conversations_of(user_id: str, conversation_id: str | None) -> Script[dict[int, str]]:
    """Returns the conversations of a user with their numbers, or the one that is named. Raises as reading it does."""
    if conversation_id is not None:
        view = yield from open_view(user_id, conversation_id)
        return {} if view.conversation is None else {view.conversation.id: conversation_id}
    found = yield query(
        "SELECT c.id,c.conversation_id FROM members m JOIN conversations c ON c.id=m.conv WHERE m.user_id=?", user_id
    )
    return {conv: name for conv, name in found}


def visible(sql: Sql, user_id: str, wanted: Mapping[str, Sequence[int]]) -> Script[dict[tuple[str, int], Message]]:
    """Returns those of the messages that the user may see and that are not blank, by conversation and seq."""
    found: dict[tuple[str, int], Message] = {}
    for name, seqs in wanted.items():
        for start in range(0, len(seqs), LIMIT_MAX):
            try:
                page = yield from pull_seqs(sql, user_id, name, seqs[start : start + LIMIT_MAX], _UNCUT)
            except NexoError:  # no part in it any more
                break
            yield from hide_expired(page.messages)
            for message in page.messages:
                if message.status == MessageStatus.NORMAL:
                    found[name, message.seq] = message
    return found


def seqs_of_types(
    sql: Sql, user_id: str, conversation_id: str, msg_types: Sequence[int], before_seq: int | None, limit: int
) -> Script[tuple[list[int], int]]:
    """Returns the newest visible seqs below `before_seq` of messages of these types, and the seq down to which there
    are no others; 0: there are none at all. Looks at `SCAN_ROWS` messages at most."""
    view = yield from open_view(user_id, conversation_id)
    if view.conversation is None:
        return [], 0
    end = view.head_seq if before_seq is None else min(before_seq - 1, view.head_seq)
    low = max(0, end - SCAN_ROWS)
    chosen = sql.one_of("msg_type", msg_types, "smallint")
    found: list[int] = []
    kept = not_deleted_by(view.member)
    for first, last in reversed(clip(view.shown, low + 1, end)):
        rows = yield query(
            f"SELECT seq FROM messages WHERE conv=? AND seq>=? AND seq<=? AND status=0 AND {chosen.sql} "
            f"AND {kept.sql} ORDER BY seq DESC LIMIT ?",
            view.conversation.id,
            first,
            last,
            *chosen.params,
            *kept.params,
            limit - len(found),
        )
        found += [row[0] for row in rows]
        if len(found) >= limit:
            return found, found[-1]
    return found, low + 1 if low else 0
