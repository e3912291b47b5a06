"""Closing of accounts as scripts: at once for the account, then in steps for what it has left.

`close` ends the account in one transaction and leaves a row of `account_closings`. Each step takes the lock of that row
and does a little: a conversation of the account, or some of its messages. So any instance may do the next step, and a
crash repeats none.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from nexo.core.model import Blocked, Conversation, ConversationStatus, Kind, Member, MemberStatus, MessageStatus, Role
from nexo.core.model import MsgType as T
from nexo.core.people import DELETED_NICKNAME
from nexo.errors import NexoError
from nexo.ids import group_of
from nexo.ports import GroupChange, RecallResult
from nexo.store import audit, recall, sessions
from nexo.store.account_admin import NO_PASSWORD, locked_state
from nexo.store.conversations import append_event, lock_conversation, lock_member, save_conversation
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.files.uses import set_avatar
from nexo.store.groups import Change, close_membership
from nexo.store.journal import writing
from nexo.store.own_membership import member_subject
from nexo.store.push.targets import forget_targets
from nexo.store.sql import Sql

MESSAGES_AT_ONCE = 50
EVENTS_EACH = 2  # a conversation gets at most the events of a new owner and of leaving


class ClosingStage(IntEnum):
    CONVERSATIONS = 0
    MESSAGES = 1
    REST = 2


class Closing(NamedTuple):
    user_id: str
    erases: int
    stage: int
    conv: int
    client_msg_id: str


class StepDone(NamedTuple):
    """What one step has changed, to be published."""

    groups: list[GroupChange]
    recalls: list[RecallResult]
    audiences: list[str]
    is_over: bool


def close(sql: Sql, user_id: str, erases: bool, actor: str, memo: list[list[str]]) -> Script[list[str]]:
    """Closes an account: it cannot be used from now on, and its profile is erased. Returns the sids of its sessions.
    `memo` has the result of an earlier attempt, which may be committed."""
    try:
        yield from locked_state(sql, user_id)
    except NexoError as error:
        if memo and error.name == "user_deleted":
            return memo[0]
        raise
    now_ms = yield NOW
    yield do(
        "UPDATE users SET password_hash=?,nickname=?,nickname_key='',avatar='',extra=NULL,is_admin=0,"
        "session_version=session_version+1,updated_at=?,deleted_at=?,last_seen_at=0,last_seen_for=0,disabled_at=0,"
        "disabled_reason='' WHERE user_id=?",
        NO_PASSWORD,
        DELETED_NICKNAME,
        now_ms,
        now_ms,
        user_id,
    )
    insert = sql.insert_ignore("account_closings", ("user_id", "erases", "created_at"), ("user_id",))
    yield do(insert, user_id, int(erases), now_ms)
    for column in ("from_id", "to_id"):
        yield do(f"DELETE FROM contact_requests WHERE {column}=?", user_id)
    yield do("DELETE FROM join_requests WHERE user_id=?", user_id)
    yield from set_avatar(sql, f"u:{user_id}", user_id, "")
    yield do("DELETE FROM export_parts WHERE user_id=?", user_id)
    yield do("DELETE FROM exports WHERE user_id=?", user_id)
    yield from forget_targets(user_id)
    yield from writing.note(now_ms, writing.user(user_id, "deleted"))
    yield from audit.write(actor, "user.delete", user_id, {"erase_messages": erases})
    yield do("UPDATE api_keys SET revoked_at=? WHERE user_id=? AND revoked_at=0", now_ms, user_id)
    memo[:] = [(yield from sessions.revoke_others(sql, user_id, ""))]
    return memo[0]


def waiting() -> Script[str | None]:
    """Returns an account whose traces are not all removed, the one that was closed first."""
    found = yield query("SELECT user_id FROM account_closings ORDER BY created_at,user_id LIMIT 1")
    return found[0][0] if found else None


def step(sql: Sql, user_id: str, event_ids: list[int]) -> Script[StepDone]:
    """Does the next step for an account. `event_ids`: as many as a step may need."""
    found = yield query(
        f"SELECT user_id,erases,stage,conv,client_msg_id FROM account_closings WHERE user_id=?{sql.for_update}", user_id
    )
    done = StepDone([], [], [], not found)
    if not found:
        return done
    closing = Closing(*found[0])
    ids = iter(event_ids)
    if closing.stage == ClosingStage.CONVERSATIONS:
        yield from _leave_conversation(sql, closing, ids, done)
    elif closing.stage == ClosingStage.MESSAGES:
        yield from _erase_messages(sql, closing, ids, done)
    else:
        yield from _free_files(user_id)
        yield do("DELETE FROM sessions WHERE user_id=?", user_id)
        yield do("DELETE FROM account_closings WHERE user_id=?", user_id)
        return done._replace(is_over=True)
    return done


def events_needed() -> int:
    return max(EVENTS_EACH, MESSAGES_AT_ONCE)


# -- conversations -------------------------------------------------------------------------------------


def _leave_conversation(sql: Sql, closing: Closing, ids: Iterator[int], done: StepDone) -> Script[None]:
    found = yield query(
        "SELECT m.conv,c.conversation_id FROM members m JOIN conversations c ON c.id=m.conv "
        "WHERE m.user_id=? AND m.conv>? ORDER BY m.conv LIMIT 1",
        closing.user_id,
        closing.conv,
    )
    if not found:
        stage = ClosingStage.MESSAGES if closing.erases else ClosingStage.REST
        yield do("UPDATE account_closings SET stage=?,conv=0 WHERE user_id=?", int(stage), closing.user_id)
        return
    ((conv, name),) = found
    conversation = yield from lock_conversation(sql, name)
    assert conversation is not None
    if conversation.kind == Kind.SINGLE:
        yield from _leave_single(conversation, closing.user_id)
        done.audiences.append(name)
    else:
        yield from _leave_group(sql, conversation, closing.user_id, ids, done)
    yield do("UPDATE account_closings SET conv=? WHERE user_id=?", conv, closing.user_id)


def _leave_single(conversation: Conversation, user_id: str) -> Script[None]:
    """Closes a chat of two for the other one, with contact and block of the closed account."""
    peers = yield query("SELECT peer_id FROM members WHERE conv=? AND user_id=?", conversation.id, user_id)
    for (peer_id,) in peers:
        for owner, other in sorted(((user_id, peer_id), (peer_id, user_id))):
            yield do("DELETE FROM contacts WHERE user_id=? AND contact_id=?", owner, other)
        yield do("DELETE FROM blocks WHERE user_id=? AND blocked_id=?", user_id, peer_id)
        yield do("UPDATE members SET contact=0 WHERE conv=?", conversation.id)
        yield do(
            "UPDATE members SET blocked=? WHERE conv=? AND user_id=?",
            int(Blocked.PEER_CLOSED),
            conversation.id,
            peer_id,
        )
    conversation.member_epoch += 1
    yield from save_conversation(conversation)


def _leave_group(
    sql: Sql, conversation: Conversation, user_id: str, ids: Iterator[int], done: StepDone
) -> Script[None]:
    """Ends the membership of the account; a group that it owned gets another owner, or is dismissed."""
    member = yield from lock_member(sql, conversation.id, user_id)
    yield from set_avatar(sql, member_subject(conversation.id, user_id), user_id, "")
    yield do(
        "UPDATE members SET group_nickname='',group_avatar='',extra=NULL WHERE conv=? AND user_id=?",
        conversation.id,
        user_id,
    )
    is_open = conversation.status in (ConversationStatus.NORMAL, ConversationStatus.DISABLED)
    if member is None or member.status != MemberStatus.NORMAL or not is_open:
        return
    group_id = group_of(conversation.conversation_id)
    assert group_id is not None
    now_ms = yield NOW
    if member.role == Role.OWNER:
        heir = yield from _heir(conversation.id, user_id)
        if heir is None:
            conversation.status = ConversationStatus.DISMISSED
            conversation.member_epoch += 1
            yield do("UPDATE chat_groups SET status=1,updated_at=? WHERE group_id=?", now_ms, group_id)
            yield from _append(conversation, user_id, T.DISMISSED, {"by": user_id}, now_ms, ids, done)
            return
        for name, role in sorted(((user_id, Role.MEMBER), (heir, Role.OWNER))):
            yield do("UPDATE members SET role=? WHERE conv=? AND user_id=?", int(role), conversation.id, name)
        yield do("UPDATE chat_groups SET owner_id=? WHERE group_id=?", heir, group_id)
        member.role = Role.MEMBER
        content = {"from": user_id, "to": heir}
        yield from _append(conversation, user_id, T.OWNER_TRANSFERRED, content, now_ms, ids, done)
    yield from _end_membership(sql, conversation, member, group_id, now_ms)
    yield from _append(conversation, user_id, T.LEFT, {"user_id": user_id}, now_ms, ids, done)


def _end_membership(sql: Sql, conversation: Conversation, member: Member, group_id: str, now_ms: int) -> Script[None]:
    change = Change(sql, group_id, member.user_id, 0)
    change.conversation, change.now_ms = conversation, now_ms
    yield from close_membership(change, member, MemberStatus.LEFT)


def _append(
    conversation: Conversation,
    user_id: str,
    msg_type: T,
    content: dict[str, str],
    now_ms: int,
    ids: Iterator[int],
    done: StepDone,
) -> Script[None]:
    event_id = next(ids)
    event = yield from append_event(conversation, event_id, msg_type, content, user_id, now_ms)
    yield from save_conversation(conversation)
    done.groups.append(GroupChange(event, [], [], conversation.member_epoch))


def _heir(conv: int, user_id: str) -> Script[str | None]:
    """Returns the oldest admin, or else the oldest member."""
    for role in (Role.ADMIN, Role.MEMBER):
        found = yield query(
            "SELECT user_id FROM members WHERE conv=? AND status=0 AND role=? AND user_id<>? "
            "ORDER BY joined_at,user_id LIMIT 1",
            conv,
            int(role),
            user_id,
        )
        if found:
            return str(found[0][0])
    return None


# -- messages ------------------------------------------------------------------------------------------


def _erase_messages(sql: Sql, closing: Closing, ids: Iterator[int], done: StepDone) -> Script[None]:
    """Erases some of the messages, in the order of the key that has the sender, with all their versions. Clients
    learn of it as of a recall."""
    found = yield query(
        "SELECT m.client_msg_id,m.server_msg_id,c.conversation_id FROM messages m JOIN conversations c ON c.id=m.conv "
        f"WHERE m.sender_id=? AND m.client_msg_id>? ORDER BY m.client_msg_id LIMIT {MESSAGES_AT_ONCE}",
        closing.user_id,
        closing.client_msg_id,
    )
    if not found:
        yield do("UPDATE account_closings SET stage=? WHERE user_id=?", int(ClosingStage.REST), closing.user_id)
        return
    now_ms = yield NOW
    for _, server_msg_id, _ in sorted(found, key=lambda row: (row[2], row[1])):
        locked = yield from recall.lock_message(sql, server_msg_id)
        if locked.message.status == MessageStatus.NORMAL and not locked.message.is_event:
            event_id = next(ids)
            by = closing.user_id
            done.recalls.append((yield from recall.blank(locked, event_id, by, by, now_ms, False)))
        yield do("DELETE FROM message_versions WHERE server_msg_id=?", server_msg_id)
        yield do("UPDATE file_uses SET ended_at=1 WHERE server_msg_id=?", server_msg_id)  # long ago: not kept
    yield do("UPDATE account_closings SET client_msg_id=? WHERE user_id=?", found[-1][0], closing.user_id)


def _free_files(user_id: str) -> Script[None]:
    """Lets the files of the account be deleted that no message and no profile names."""
    now_ms = yield NOW
    yield do(
        "UPDATE files SET free_at=? WHERE owner_id=? AND (free_at=0 OR free_at>?) "
        "AND NOT EXISTS (SELECT 1 FROM file_uses u WHERE u.file_id=files.file_id) "
        "AND NOT EXISTS (SELECT 1 FROM file_avatars a WHERE a.file_id=files.file_id)",
        now_ms,
        user_id,
        now_ms,
    )
    yield do("UPDATE uploads SET expires_at=? WHERE owner_id=? AND expires_at>?", now_ms, user_id, now_ms)
