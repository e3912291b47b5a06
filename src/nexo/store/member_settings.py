"""Settings that a member makes for a conversation: how they are stored, changed and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from nexo.core.model import ConversationEntry, DraftText, Head
from nexo.core.visibility import last_activity_sql, last_seq_sql, visible_head
from nexo.ports import MemberSettings
from nexo.store.engine import Script, do
from nexo.store.engine import rows as query
from nexo.store.history import ConversationView

# after the expression of `archived_sql`
OWN = "m.deleted_rev,m.silent_until,m.marked_unread,c.message_ttl_s,m.draft,m.own_extra"
OWN_WIDTH = 7
_HEAD_WIDTH = 6

_decode_draft = msgspec.json.Decoder(DraftText).decode


def archived_sql(head: str, updated: str) -> str:
    """Returns whether the member `m` has archived a conversation: it returns with the next message, unless it is muted
    or was silent when that message was sent."""
    stays = f"{head}<=m.archived_seq OR m.recv_msg_opt<>0 OR {updated}<=m.silent_until"
    return f"CASE WHEN m.archived_seq>0 AND ({stays}) THEN 1 ELSE 0 END AS archived"


def head_with_own(row: Sequence[Any]) -> tuple[Head, int]:
    """Returns an entry of SYNC, with the settings that differ from their defaults, and the bytes of the texts in it."""
    head = Head(*row[:_HEAD_WIDTH])
    pinned, option, hidden, archived, head.deleted_rev, silent_until, marked, ttl_s, draft, extra = row[_HEAD_WIDTH:]
    if pinned:
        head.pinned = True
    if option:
        head.recv_msg_opt = option
    if hidden:
        head.hidden = True
    if archived:
        head.archived = True
    if silent_until:
        head.silent_until = silent_until
    if marked:
        head.marked_unread = True
    if ttl_s:
        head.message_ttl_s = ttl_s
    if draft is not None:
        head.draft = _decode_draft(draft)
    if extra is not None:
        head.extra = Raw(extra.encode())
    return head, len(draft or "") + len(extra or "")


def entry_with_own(entry: ConversationEntry, own: Sequence[Any]) -> ConversationEntry:
    archived, entry.deleted_rev, entry.silent_until, marked, entry.message_ttl_s, draft, entry.extra = own
    entry.archived, entry.marked_unread = bool(archived), bool(marked)
    entry.draft = None if draft is None else _decode_draft(draft)
    return entry


def change_settings(view: ConversationView, settings: MemberSettings) -> Script[None]:
    """Changes settings of a member. Hiding and archiving store the visible head: the next message shows the
    conversation again."""
    assert view.conversation is not None
    assert view.member is not None
    head = visible_head(view.member, view.conversation)
    changes: dict[str, Any] = {}
    if settings.pinned is not None:
        changes["pinned"] = int(settings.pinned)
    if settings.recv_msg_opt is not None:
        changes["recv_msg_opt"] = settings.recv_msg_opt
    if settings.hidden is not None:
        changes["hidden_seq"] = head if settings.hidden else 0
    if settings.silent_until is not None:
        changes["silent_until"] = settings.silent_until
    if settings.archived is not None:
        changes["archived_seq"] = head if settings.archived else 0
    elif ("recv_msg_opt" in changes or "silent_until" in changes) and (yield from _is_archived(view)):
        changes["archived_seq"] = head  # what arrived while it was muted does not bring it back now
    if settings.marked_unread is not None:
        changes["marked_unread"] = int(settings.marked_unread)
    if settings.draft is not UNSET:
        changes["draft"] = settings.draft
    if settings.extra is not UNSET:
        changes["own_extra"] = settings.extra
    if changes:
        yield do(
            f"UPDATE members SET {','.join(f'{name}=?' for name in changes)} WHERE conv=? AND user_id=?",
            *changes.values(),
            view.member.conv,
            view.member.user_id,
        )


def _is_archived(view: ConversationView) -> Script[bool]:
    assert view.member is not None
    last, updated = last_seq_sql("m", "c"), last_activity_sql("m", "c")
    ((archived,),) = yield query(
        f"SELECT {archived_sql(last, updated)} FROM members m JOIN conversations c ON c.id=m.conv "
        "WHERE m.conv=? AND m.user_id=?",
        view.member.conv,
        view.member.user_id,
    )
    return bool(archived)
