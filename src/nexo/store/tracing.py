"""What the database knows about the delivery of a message: its row without the content, and the cursors of its
receivers."""

from __future__ import annotations

from typing import Any

from nexo.core.tracing import OfflinePush, StoredTrace, TracedMessage, TracedReceiver
from nexo.errors import NexoError
from nexo.store.database import Database
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

LISTED = 50
_MESSAGE = (
    "m.server_msg_id,m.client_msg_id,c.conversation_id,m.seq,m.sender_id,m.msg_type,m.status,m.send_at,m.recalled_at"
)


def trace(sql: Sql, server_msg_id: int, user_id: str | None) -> Script[StoredTrace]:
    """Returns the message with one receiver, or with the first of them. Raises `message_not_found`."""
    found = yield query(
        f"SELECT m.conv,{_MESSAGE} FROM messages m JOIN conversations c ON c.id=m.conv WHERE m.server_msg_id=?",
        server_msg_id,
    )
    if not found:
        raise NexoError("message_not_found")
    conv, *fields = found[0]
    message = TracedMessage(*fields)
    concerned = "FROM members WHERE conv=? AND user_id<>? AND from_seq<=? AND (to_seq IS NULL OR to_seq>=?)"
    params = (conv, message.sender_id, message.seq, message.seq)
    ((total, delivered, read),) = yield query(
        "SELECT COUNT(*),COALESCE(SUM(CASE WHEN delivered_seq>=? THEN 1 ELSE 0 END),0),"
        f"COALESCE(SUM(CASE WHEN read_seq>=? THEN 1 ELSE 0 END),0) {concerned}",
        message.seq,
        message.seq,
        *params,
    )
    if user_id is not None:
        receivers = [(yield from _receiver(conv, message, user_id))]
    else:
        rows = yield query(
            f"SELECT user_id,delivered_seq,read_seq,recv_msg_opt {concerned} ORDER BY user_id LIMIT {LISTED}", *params
        )
        receivers = [_member(message, row) for row in rows]
    offline = yield from _offline(sql, conv, message, [one.user_id for one in receivers])
    return StoredTrace(message, receivers, int(total), int(delivered), int(read), offline)


def _offline(sql: Sql, conv: int, message: TracedMessage, user_ids: list[str]) -> Script[list[OfflinePush]]:
    """Returns the notifications of these receivers that concern the message."""
    chosen = sql.one_of("p.user_id", user_ids)
    rows = yield query(
        "SELECT p.user_id,n.kind,p.device_id,n.sent_seq,n.shown_seq,n.result,n.sent_at FROM push_targets p "
        f"JOIN push_notes n ON n.push_id=p.push_id WHERE {chosen.sql} AND n.conv=? AND n.want_seq>=? "
        f"ORDER BY p.user_id,p.push_id LIMIT {LISTED * 2}",
        *chosen.params,
        conv,
        message.seq,
    )
    made = []
    for user_id, kind, device_id, sent_seq, shown_seq, result, sent_at in rows:
        state = "waiting" if sent_seq < message.seq else "sent" if shown_seq or result[:1] == "2" else "not_sent"
        made.append(OfflinePush(user_id, kind, device_id, state, result, sent_at))
    return made


def _member(message: TracedMessage, row: Any) -> TracedReceiver:
    user_id, delivered_seq, read_seq, option = row
    is_sender = user_id == message.sender_id
    return TracedReceiver(user_id, True, delivered_seq >= message.seq, read_seq >= message.seq, option, is_sender)


def _receiver(conv: int, message: TracedMessage, user_id: str) -> Script[TracedReceiver]:
    """Returns one user, by the span that contains the message: cursors of an earlier span are not kept."""
    rows = yield query(
        "SELECT user_id,delivered_seq,read_seq,recv_msg_opt FROM members WHERE conv=? AND user_id=? "
        "AND from_seq<=? AND (to_seq IS NULL OR to_seq>=?)",
        conv,
        user_id,
        message.seq,
        message.seq,
    )
    if rows:
        return _member(message, rows[0])
    past = yield query(
        "SELECT 1 FROM member_spans WHERE conv=? AND user_id=? AND from_seq<=? AND to_seq>=?",
        conv,
        user_id,
        message.seq,
        message.seq,
    )
    return TracedReceiver(user_id, bool(past), False, False, 0)


class SqlTracing:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def trace(self, server_msg_id: int, user_id: str | None) -> StoredTrace:
        return await self._database.look(lambda: trace(self._database.sql, server_msg_id, user_id))
