"""Conversations as rows: creating single chats, taking the lock, appending events, settings."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from nexo.core.model import ENDED, Conversation, Kind, Member, Message
from nexo.core.visibility import Ranges, visible_ranges
from nexo.errors import NexoError
from nexo.ids import peers_of
from nexo.store import rows
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.journal import writing
from nexo.store.sql import Sql

_CONVERSATION = rows.columns(rows.CONVERSATION)
_MEMBER = rows.columns(rows.MEMBER)


def create_singles(sql: Sql, names: list[str]) -> Script[None]:
    """Create the single chats that do not exist yet, each with its two members. With head 0 they are invisible.

    Sorted to avoid deadlock between processes that create the same chats.
    """
    pairs = {name: peers_of(name) for name in sorted(names)}
    people = {user_id for pair in pairs.values() if pair for user_id in pair}
    chosen = sql.one_of("user_id", sorted(people))
    statement = f"SELECT user_id FROM users WHERE {chosen.sql} AND deleted_at=0"
    found = {row[0] for row in (yield query(statement, *chosen.params))}
    if unknown := sorted(people - found):
        raise NexoError("user_not_found", f"There is no user {unknown[0]}", user_ids=unknown)
    now_ms = yield NOW
    insert = sql.insert_ignore(
        "conversations", ("conversation_id", "kind", "member_count", "created_at"), ("conversation_id",)
    )
    add = sql.insert_ignore("members", ("conv", "user_id", "peer_id", "joined_at"), ("conv", "user_id"), 2)
    for name, pair in pairs.items():
        if pair is None:
            raise NexoError("bad_conversation_id")
        yield do(insert, name, int(Kind.SINGLE), 2, now_ms)
        ((conv,),) = yield query("SELECT id FROM conversations WHERE conversation_id=?", name)
        low, high = pair
        yield do(add, conv, low, high, now_ms, conv, high, low, now_ms)


def lock_conversation(sql: Sql, conversation_id: str) -> Script[Conversation | None]:
    """Returns a conversation and locks it, as sending, joining, leaving, muting and recalling do."""
    found = yield query(
        f"SELECT {_CONVERSATION} FROM conversations WHERE conversation_id=?{sql.for_update}", conversation_id
    )
    if not found:
        return None
    conversation = Conversation(*found[0])
    if sql.locks_need_a_write:
        yield do("UPDATE conversations SET erasures=erasures+1 WHERE id=?", conversation.id)
    return conversation


def lock_member(sql: Sql, conv: int, user_id: str) -> Script[Member | None]:
    found = yield query(f"SELECT {_MEMBER} FROM members WHERE conv=? AND user_id=?{sql.for_update}", conv, user_id)
    return Member(*found[0]) if found else None


def lock_members(sql: Sql, conv: int, user_ids: list[str]) -> Script[dict[str, Member]]:
    """Returns members of one conversation, locked in the order that all transactions use."""
    found: dict[str, Member] = {}
    for start in range(0, len(user_ids), 500):
        chosen = sql.one_of("user_id", sorted(user_ids)[start : start + 500])
        for row in (
            yield query(
                f"SELECT {_MEMBER} FROM members WHERE conv=? AND {chosen.sql} ORDER BY conv,user_id{sql.for_update}",
                conv,
                *chosen.params,
            )
        ):
            member = Member(*row)
            found[member.user_id] = member
    return found


def read_member(conversation_id: str, user_id: str) -> Script[tuple[Conversation | None, Member | None]]:
    """Returns a conversation and one of its members, in one statement."""
    found = yield query(
        f"SELECT {rows.columns(rows.CONVERSATION, 'c')},{rows.columns(rows.MEMBER, 'm')} FROM conversations c "
        "LEFT JOIN members m ON m.conv=c.id AND m.user_id=? WHERE c.conversation_id=?",
        user_id,
        conversation_id,
    )
    if not found:
        return None, None
    row = tuple(found[0])
    width = len(rows.CONVERSATION)
    return Conversation(*row[:width]), Member(*row[width:]) if row[width] is not None else None


def read_past(member: Member) -> Script[list[tuple[int, int]]]:
    """Returns earlier spans. Most members have none and cost no statement."""
    if not member.has_past:
        return []
    found = yield query(
        "SELECT from_seq,to_seq FROM member_spans WHERE conv=? AND user_id=?", member.conv, member.user_id
    )
    return [(row[0], row[1]) for row in found]


def read_ranges(member: Member | None, conversation: Conversation) -> Script[Ranges]:
    past = (yield from read_past(member)) if member is not None else []
    return visible_ranges(member, conversation, past)


def append_event(
    conversation: Conversation,
    server_msg_id: int,
    msg_type: int,
    content: dict[str, Any],
    actor: str,
    now_ms: int,
    *,
    mentions: tuple[str, ...] = (),
    request: tuple[str, bytes] | None = None,
    counted: bool = False,
) -> Script[Message]:
    """Appends an event at the head of a locked conversation, and into the journal. The caller writes the conversation
    row. `request`: client_msg_id and hash of the request, by which its retry is known; clients do not see them.
    `counted`: it counts as unread."""
    conversation.head_seq += 1
    conversation.countable += counted
    conversation.last_send_at = max(now_ms, conversation.last_send_at + 1)
    event = Message(
        server_msg_id,
        None,
        conversation.conversation_id,
        conversation.head_seq,
        actor,
        int(msg_type),
        msgspec.json.encode(content).decode(),
        conversation.last_send_at,
        mentions,
    )
    client_msg_id, request_hash = request or (None, None)
    stored = structs.replace(event, client_msg_id=client_msg_id)
    (values,) = rows.new_rows([(stored, conversation.id, request_hash, conversation.countable)])
    yield do(
        f"INSERT INTO messages ({rows.columns(rows.NEW_MESSAGE)}) VALUES ({','.join('?' * len(values))})",
        *values,
    )
    if counted:
        yield do("UPDATE messages SET counted_event=1 WHERE server_msg_id=?", server_msg_id)
    changed = writing.changed({conversation.id: event.seq}, {conversation.id: conversation})
    yield from writing.note(now_ms, changed)
    return event


def append_quiet(
    conversation: Conversation,
    server_msg_id: int,
    msg_type: int,
    content: dict[str, Any],
    actor: str,
    now_ms: int,
    *,
    mentions: tuple[str, ...] = (),
    request: tuple[str, bytes] | None = None,
) -> Script[Message]:
    """As `append_event`, for an event about an earlier message: the last message and the last activity of the
    conversation stay as they are. Writes the conversation row too."""
    ((quiet_head, last_seq, last_at),) = yield query(
        "SELECT quiet_head,last_seq,last_at FROM conversations WHERE id=?", conversation.id
    )
    if quiet_head != conversation.head_seq:
        last_seq, last_at = conversation.head_seq, conversation.last_send_at
    event = yield from append_event(
        conversation, server_msg_id, msg_type, content, actor, now_ms, mentions=mentions, request=request
    )
    yield from save_conversation(conversation)
    yield do(
        "UPDATE conversations SET quiet_head=?,last_seq=?,last_at=? WHERE id=?",
        event.seq,
        last_seq,
        last_at,
        conversation.id,
    )
    return event


def save_conversation(conversation: Conversation) -> Script[None]:
    yield do(
        "UPDATE conversations SET status=?,head_seq=?,closed_seq=?,countable=?,at_all_count=?,last_send_at=?,"
        "mute_until=?,member_epoch=?,member_count=? WHERE id=?",
        conversation.status,
        conversation.head_seq,
        conversation.head_seq if conversation.status in ENDED else 0,
        conversation.countable,
        conversation.at_all_count,
        conversation.last_send_at,
        conversation.mute_until,
        conversation.member_epoch,
        conversation.member_count,
        conversation.id,
    )
