"""What notes should show, read right before they are sent: through the visibility gate, and never what the member has
read, deleted or muted, whose sender the member has blocked, or what was recalled or has expired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nexo.core.model import ConversationStatus, MemberStatus, MessageStatus
from nexo.core.push import Composed, Note, PushTarget, ShownMessage
from nexo.core.unread import countable_sql, unread, unread_sql
from nexo.core.visibility import clip, visible_head_sql
from nexo.errors import NexoError
from nexo.ids import AT_ALL
from nexo.store import rows
from nexo.store.engine import NOW, Script
from nexo.store.engine import rows as query
from nexo.store.hiding import not_deleted_by
from nexo.store.history import ConversationView, open_view
from nexo.store.push.targets import JOINED, LIVE
from nexo.store.reader_view import complete
from nexo.store.sql import Sql

_MESSAGE = rows.columns(rows.MESSAGE, "t")
_NAME = "COALESCE(NULLIF(k.remark,''),NULLIF(g.group_nickname,''),NULLIF(s.nickname,''),t.sender_id)"
_MENTIONED = "EXISTS (SELECT 1 FROM mentions x WHERE x.conv=t.conv AND x.seq=t.seq AND x.user_id IN (?,?))"
_DELETED = int(ConversationStatus.DELETED)


class _Found(NamedTuple):
    """A note with its device, its conversation and what the member has set for it."""

    note: Note
    target: PushTarget
    conversation_id: str
    group_name: str | None
    option: int
    silent_until: int


def compose(sql: Sql, notes: Sequence[Note]) -> Script[list[Composed]]:
    """Returns what each note should show."""
    now_ms = yield NOW
    found = yield from _find(sql, notes, now_ms)
    badges = yield from _badges(sql, sorted({one.target.user_id for one in found.values()}))
    made: list[Composed] = []
    for note in notes:
        one = found.get(note[:2])
        if one is None:
            made.append(Composed(note, None))
        else:
            made.append((yield from _compose(sql, one, now_ms, badges.get(one.target.user_id, 0))))
    return made


def _find(sql: Sql, notes: Sequence[Note], now_ms: int) -> Script[dict[tuple[int, int], _Found]]:
    by_key = {note[:2]: note for note in notes}
    chosen = sql.one_of("n.push_id", sorted({note.push_id for note in notes}), "bigint")
    convs = sql.one_of("n.conv", sorted({note.conv for note in notes}), "bigint")
    rows_found = yield query(
        "SELECT n.push_id,n.conv,p.user_id,p.kind,p.address,p.device_id,p.lang,c.conversation_id,g.name,"
        f"COALESCE(m.recv_msg_opt,1),COALESCE(m.silent_until,0) FROM {JOINED} "
        "JOIN push_notes n ON n.push_id=p.push_id JOIN conversations c ON c.id=n.conv "
        "LEFT JOIN chat_groups g ON g.conv=c.id LEFT JOIN members m ON m.conv=n.conv AND m.user_id=p.user_id "
        f"WHERE {LIVE} AND {chosen.sql} AND {convs.sql}",
        now_ms,
        *chosen.params,
        *convs.params,
    )
    found: dict[tuple[int, int], _Found] = {}
    for push_id, conv, user_id, kind, address, device_id, lang, *rest in rows_found:
        note = by_key.get((push_id, conv))
        if note is not None:
            found[push_id, conv] = _Found(note, PushTarget(push_id, user_id, kind, address, device_id, lang), *rest)
    return found


def _badges(sql: Sql, user_ids: Sequence[str]) -> Script[dict[str, int]]:
    """Returns the unread messages of all conversations of each user."""
    chosen = sql.one_of("m.user_id", user_ids)
    found = yield query(
        f"SELECT m.user_id,SUM({unread_sql('m', 'c')}) FROM members m JOIN conversations c ON c.id=m.conv "
        f"WHERE {chosen.sql} AND c.status<>{_DELETED} AND {visible_head_sql('m', 'c')}>0 GROUP BY m.user_id",
        *chosen.params,
    )
    return {row[0]: int(row[1] or 0) for row in found}


def _compose(sql: Sql, one: _Found, now_ms: int, badge: int) -> Script[Composed]:
    note = one.note
    try:
        view = yield from open_view(one.target.user_id, one.conversation_id)
    except NexoError:
        view = ConversationView(None, None, ())
    member, conversation = view.member, view.conversation
    newest: ShownMessage | None = None
    count = 0
    is_new = False
    is_gone = note.shown_seq > 0
    if member is not None and conversation is not None and conversation.status != _DELETED:
        count = unread(member, conversation)
        mentions_only = one.option == 2 or one.silent_until > now_ms
        if one.option != 1 and count > 0 and member.status == MemberStatus.NORMAL:
            newest = yield from _newest(sql, one, view, note.want_seq, now_ms, mentions_only)
            is_new = newest is not None and newest.seq > max(note.sent_seq, member.delivered_seq)
            if is_new and conversation.head_seq > note.want_seq:  # what followed needs none of its own
                newest = yield from _newest(sql, one, view, conversation.head_seq, now_ms, mentions_only)
            still = newest
            if note.shown_seq and newest is not None and newest.seq > note.shown_seq:
                still = yield from _newest(sql, one, view, note.shown_seq, now_ms, mentions_only)
            is_gone = note.shown_seq > 0 and (still is None or still.seq != note.shown_seq)
    place = (one.conversation_id, one.group_name)
    return Composed(note, one.target, *place, newest, is_new, is_gone, count, badge)


def _newest(
    sql: Sql, one: _Found, view: ConversationView, up_to: int, now_ms: int, mentions_only: bool
) -> Script[ShownMessage | None]:
    """Returns the newest unread message up to a seq that may be shown to the member."""
    assert view.member is not None
    user_id, conv = one.target.user_id, one.note.conv
    kept = not_deleted_by(view.member, "t.seq")
    for low, high in reversed(clip(view.shown, view.member.read_seq + 1, up_to)):
        params: list[Any] = [user_id, AT_ALL, user_id, conv, low, high, user_id, user_id, now_ms, *kept.params]
        if mentions_only:
            params += [user_id, AT_ALL]
        found = yield query(
            f"SELECT CASE WHEN {_MENTIONED} THEN 1 ELSE 0 END,{_NAME},{_MESSAGE} FROM messages t "
            "LEFT JOIN users s ON s.user_id=t.sender_id "
            "LEFT JOIN members g ON g.conv=t.conv AND g.user_id=t.sender_id "
            "LEFT JOIN contacts k ON k.user_id=? AND k.contact_id=t.sender_id "
            f"WHERE t.conv=? AND t.seq>=? AND t.seq<=? AND t.sender_id<>? AND {countable_sql('t')} "
            f"AND t.status={int(MessageStatus.NORMAL)} "
            "AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.user_id=? AND b.blocked_id=t.sender_id) "
            f"AND (t.expires_at IS NULL OR t.expires_at>?) AND {kept.sql} "
            f"{f'AND {_MENTIONED}' if mentions_only else ''} ORDER BY t.seq DESC LIMIT 1",
            *params,
        )
        if found:
            is_mention, name, *row = found[0]
            message = rows.message(row, one.conversation_id)
            yield from complete(sql, user_id, [message], {one.conversation_id: view.shown})
            return ShownMessage(
                message.server_msg_id,
                message.seq,
                message.sender_id,
                name,
                message.msg_type,
                message.content,
                bool(is_mention),
            )
    return None
