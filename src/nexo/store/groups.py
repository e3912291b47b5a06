"""Changes of groups: each under the conversation's lock, each published as an event with its own seq.

A script is run once more when the connection was lost during its commit; the id of its event, made beforehand, shows
whether the first run was committed (`Change.done_before`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from nexo.core import policy
from nexo.core.model import (
    MUTED_FOREVER,
    ROLE_NAMES,
    Conversation,
    ConversationStatus,
    Kind,
    Member,
    MemberStatus,
    Message,
    MsgType,
    Role,
)
from nexo.core.unread import close_span, open_span
from nexo.errors import NexoError
from nexo.ids import group_conversation_id, is_user_id
from nexo.store import rows
from nexo.store.accounts import blockers
from nexo.store.conversations import append_event, lock_conversation, lock_member, lock_members, save_conversation
from nexo.store.engine import NOW, Conflict, Script, Stmt, do, proof
from nexo.store.engine import rows as query
from nexo.store.files.uses import set_avatar
from nexo.store.group_reading import read_managers
from nexo.store.sql import Sql

INSERT_ROWS = 200
_MEMBER_STATE = (
    "role",
    "status",
    "from_seq",
    "to_seq",
    "to_countable",
    "to_at_all",
    "has_past",
    "delivered_seq",
    "read_seq",
    "read_countable",
    "own_above",
    "last_own_seq",
    "mention_unread",
    "at_all_base",
    "deleted_above",
    "muted_until",
)


class Changed(NamedTuple):
    """The result of a change: its event (None when there was nothing to do), the added users, and the users that were
    skipped with the reasons."""

    event: Message | None = None
    added: list[str] = []  # noqa: RUF012 - never changed
    skipped: list[tuple[str, str]] = []  # noqa: RUF012
    member_epoch: int = 0


class Change:
    """One change of one group by one actor, with everything it locked."""

    def __init__(self, sql: Sql, group_id: str, actor_id: str, event_id: int) -> None:
        self.sql = sql
        self.group_id = group_id
        self.actor_id = actor_id
        self.event_id = event_id
        self.now_ms = 0
        self.conversation: Conversation
        self.memo: Changed | None = None  # the result of an earlier attempt, which may be committed

    def open(self) -> Script[bool]:
        """Takes the lock. Returns True if an earlier attempt of this change is committed already."""
        conversation = yield from lock_conversation(self.sql, group_conversation_id(self.group_id))
        if conversation is None:
            raise NexoError("group_not_found")
        self.conversation = conversation
        if self.memo is not None and (yield proof("SELECT 1 FROM messages WHERE server_msg_id=?", self.event_id)):
            return True
        policy.check_open(conversation)
        self.now_ms = yield NOW
        return False

    def actor(self) -> Script[Member]:
        member = yield from lock_member(self.sql, self.conversation.id, self.actor_id)
        if member is None or member.status != MemberStatus.NORMAL:
            raise NexoError("not_group_member")
        return member

    def actor_and(self, user_id: str) -> Script[tuple[Member, Member]]:
        """Returns the actor and the member they act on; raises unless both are members."""
        found = yield from lock_members(self.sql, self.conversation.id, [self.actor_id, user_id])
        actor, target = found.get(self.actor_id), found.get(user_id)
        if actor is None or actor.status != MemberStatus.NORMAL:
            raise NexoError("not_group_member")
        if target is None or target.status != MemberStatus.NORMAL:
            raise NexoError("not_group_member", f"{user_id} is not a member of this group")
        return actor, target

    def finish(
        self,
        msg_type: MsgType,
        content: dict[str, Any],
        added: list[str] | None = None,
        skipped: list[tuple[str, str]] | None = None,
    ) -> Script[Changed]:
        event = yield from append_event(self.conversation, self.event_id, msg_type, content, self.actor_id, self.now_ms)
        yield from save_conversation(self.conversation)
        self.memo = Changed(event, added or [], skipped or [], self.conversation.member_epoch)
        return self.memo

    def done_before(self) -> Changed:
        assert self.memo is not None
        return self.memo


def save_member(member: Member, left_at: int | None) -> Script[None]:
    yield do(
        f"UPDATE members SET {','.join(f'{name}=?' for name in _MEMBER_STATE)},left_at=? WHERE conv=? AND user_id=?",
        *(getattr(member, name) for name in _MEMBER_STATE),
        left_at,
        member.conv,
        member.user_id,
    )


def existing_users(sql: Sql, user_ids: list[str]) -> Script[set[str]]:
    """Returns the users among these whose accounts exist and are not closed."""
    found: set[str] = set()
    for start in range(0, len(user_ids), 500):
        chosen = sql.one_of("user_id", user_ids[start : start + 500])
        statement = f"SELECT user_id FROM users WHERE {chosen.sql} AND deleted_at=0"
        found.update(row[0] for row in (yield query(statement, *chosen.params)))
    return found


class NewGroup(NamedTuple):
    group_id: str
    creator_id: str
    name: str
    member_ids: list[str]  # without the creator
    avatar: str
    introduction: str
    join_policy: str
    extra: str | None
    group_type: int
    event_id: int


def create(sql: Sql, new: NewGroup) -> Script[Message]:
    """Creates a group, its members and event 101 in one transaction. Returns the event."""
    people = [new.creator_id, *new.member_ids]
    found = yield from existing_users(sql, people)
    if unknown := [user_id for user_id in people if user_id not in found]:
        raise NexoError("user_not_found", f"There is no user {', '.join(unknown[:20])}", user_ids=unknown)
    if refusing := sorted((yield from blockers(sql, new.creator_id, new.member_ids))):
        raise NexoError("blocked", f"Blocked by {', '.join(refusing[:20])}", user_ids=refusing)
    now_ms = yield NOW
    name = group_conversation_id(new.group_id)
    insert = sql.insert_ignore(
        "conversations", ("conversation_id", "kind", "member_count", "created_at"), ("conversation_id",)
    )
    yield do(insert, name, int(Kind.GROUP), len(people), now_ms)
    conversation = yield from lock_conversation(sql, name)
    assert conversation is not None
    if conversation.head_seq:  # an earlier attempt was committed, or the id belongs to another group
        found_event = yield query(
            f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE server_msg_id=?", new.event_id
        )
        if not found_event:
            raise Conflict(f"the group id {new.group_id} is taken")
        return rows.message(found_event[0], name)
    if new.avatar:
        yield from set_avatar(sql, f"g:{new.group_id}", new.creator_id, new.avatar)
    yield do(
        "INSERT INTO chat_groups (group_id,conv,name,introduction,avatar,creator_id,owner_id,join_policy,extra,"
        "group_type,created_at,updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        new.group_id,
        conversation.id,
        new.name,
        new.introduction,
        new.avatar,
        new.creator_id,
        new.creator_id,
        new.join_policy,
        new.extra,
        new.group_type,
        now_ms,
        now_ms,
    )
    content = {"group_id": new.group_id, "name": new.name, "by": new.creator_id}
    event = yield from append_event(conversation, new.event_id, MsgType.GROUP_CREATED, content, new.creator_id, now_ms)
    yield from save_conversation(conversation)
    roles = {new.creator_id: Role.OWNER}
    yield from _insert_members(conversation, people, roles, new.creator_id, event.seq, now_ms)
    return event


def _insert_members(
    conversation: Conversation, user_ids: list[str], roles: dict[str, Role], inviter: str, from_seq: int, now_ms: int
) -> Generator[Stmt, Any, None]:
    names = "conv,user_id,role,from_seq,delivered_seq,read_seq,read_countable,at_all_base,inviter_id,joined_at"
    ordered = sorted(user_ids)
    for start in range(0, len(ordered), INSERT_ROWS):
        chunk = ordered[start : start + INSERT_ROWS]
        values: list[Any] = []
        for user_id in chunk:
            values += [conversation.id, user_id, int(roles.get(user_id, Role.MEMBER)), from_seq, from_seq - 1]
            values += [from_seq - 1, conversation.countable, conversation.at_all_count]
            values += ["" if user_id == inviter else inviter, now_ms]
        marks = ",".join(["(?,?,?,?,?,?,?,?,?,?)"] * len(chunk))
        yield do(f"INSERT INTO members ({names}) VALUES {marks}", *values)


def let_in(
    change: Change, user_ids: list[str], max_members: int, *, is_invited: bool = False, inviter: str = ""
) -> Script[Changed]:
    """Opens a span for each user at event 102. Members are skipped, and users that have blocked the member which
    invites them. `inviter` is stored as such, if it is not the actor."""
    sql, conversation = change.sql, change.conversation
    inviter = inviter or change.actor_id
    possible = [user_id for user_id in user_ids if is_user_id(user_id)]  # a driver may refuse malformed ids
    known = yield from existing_users(sql, possible)
    rows_found = yield from lock_members(sql, conversation.id, possible)
    refusing = (yield from blockers(sql, change.actor_id, possible)) if is_invited else set()
    added: list[str] = []
    skipped: list[tuple[str, str]] = []
    for user_id in user_ids:
        if user_id not in known:
            skipped.append((user_id, "user_not_found"))
        elif user_id in rows_found and rows_found[user_id].status == MemberStatus.NORMAL:
            skipped.append((user_id, "already_member"))
        elif user_id in refusing:
            skipped.append((user_id, "blocked"))
        else:
            added.append(user_id)
    if not added:
        return Changed(None, [], skipped, conversation.member_epoch)
    if conversation.member_count + len(added) > max_members:
        raise NexoError("group_full", f"A group has at most {max_members} members")
    from_seq = conversation.head_seq + 1
    fresh = [user_id for user_id in added if user_id not in rows_found]
    yield from _insert_members(conversation, fresh, {}, inviter, from_seq, change.now_ms)
    for user_id in sorted(set(added) - set(fresh)):
        yield from _readmit(conversation, rows_found[user_id], from_seq, change, inviter)
    chosen = sql.one_of("user_id", added)
    yield do(f"DELETE FROM join_requests WHERE group_id=? AND {chosen.sql}", change.group_id, *chosen.params)
    conversation.member_count += len(added)
    conversation.member_epoch += 1
    content = {"user_ids": added, "by": change.actor_id}
    return (yield from change.finish(MsgType.JOINED, content, added, skipped))


def _readmit(conversation: Conversation, member: Member, from_seq: int, change: Change, inviter: str) -> Script[None]:
    """Moves the old span to `member_spans` and opens a new one. Muting continues after leaving."""
    yield do(
        "INSERT INTO member_spans (conv,user_id,from_seq,to_seq) VALUES (?,?,?,?)",
        member.conv,
        member.user_id,
        member.from_seq,
        member.to_seq,
    )
    member.has_past = 1
    member.status, member.role = MemberStatus.NORMAL, Role.MEMBER
    open_span(member, conversation, from_seq)
    yield from save_member(member, None)
    yield do(
        "UPDATE members SET joined_at=?,inviter_id=? WHERE conv=? AND user_id=?",
        change.now_ms,
        "" if member.user_id == inviter else inviter,
        member.conv,
        member.user_id,
    )


def close_membership(change: Change, member: Member, status: MemberStatus) -> Script[None]:
    """Closes the span at the event that is appended next."""
    conversation = change.conversation
    member.status, member.role = status, Role.MEMBER
    close_span(member, conversation, conversation.head_seq + 1)
    yield from save_member(member, max(change.now_ms, conversation.last_send_at + 1))
    conversation.member_count -= 1
    conversation.member_epoch += 1


def _join_policy(group_id: str) -> Script[str]:
    ((join_policy,),) = yield query("SELECT join_policy FROM chat_groups WHERE group_id=?", group_id)
    return str(join_policy)


class JoinResult(NamedTuple):
    status: str
    changed: Changed
    managers: list[str] = []  # noqa: RUF012 - to be notified of a new request
    at: int = 0


def join(change: Change, message: str, max_members: int) -> Script[JoinResult]:
    if (yield from change.open()):
        return JoinResult("joined", change.done_before())
    member = yield from lock_member(change.sql, change.conversation.id, change.actor_id)
    if member is not None and member.status == MemberStatus.NORMAL:
        return JoinResult("joined", Changed())
    join_policy = yield from _join_policy(change.group_id)
    if join_policy == "invite":
        raise NexoError("no_permission", "One joins this group by invitation only")
    if join_policy == "approval":
        key = (change.group_id, change.actor_id)
        if (yield query("SELECT 1 FROM join_requests WHERE group_id=? AND user_id=?", *key)):
            return JoinResult("pending", Changed())
        yield do(
            "INSERT INTO join_requests (group_id,user_id,message,created_at) VALUES (?,?,?,?)",
            *key,
            message,
            change.now_ms,
        )
        managers = yield from read_managers(change.conversation.id)
        return JoinResult("pending", Changed(), managers, change.now_ms)
    return JoinResult("joined", (yield from let_in(change, [change.actor_id], max_members)))


def decide_join(change: Change, user_id: str, accept: bool, max_members: int) -> Script[Changed]:
    if (yield from change.open()):
        return change.done_before()
    policy.check_manager((yield from change.actor()))
    found = yield query("SELECT 1 FROM join_requests WHERE group_id=? AND user_id=?", change.group_id, user_id)
    if not found:
        if change.memo is not None:  # this refusal was committed without an answer
            return change.memo
        raise NexoError("join_request_not_found")
    yield do("DELETE FROM join_requests WHERE group_id=? AND user_id=?", change.group_id, user_id)
    if not accept:
        change.memo = Changed()
        return change.memo
    return (yield from let_in(change, [user_id], max_members))


def invite(change: Change, user_ids: list[str], max_members: int) -> Script[Changed]:
    if (yield from change.open()):
        return change.done_before()
    join_policy = yield from _join_policy(change.group_id)
    policy.check_may_invite((yield from change.actor()), join_policy)
    return (yield from let_in(change, user_ids, max_members, is_invited=True))


def leave(change: Change) -> Script[Changed]:
    if (yield from change.open()):
        return change.done_before()
    member = yield from change.actor()
    policy.check_may_leave(member)
    yield from close_membership(change, member, MemberStatus.LEFT)
    return (yield from change.finish(MsgType.LEFT, {"user_id": change.actor_id}))


def remove(change: Change, user_id: str) -> Script[Changed]:
    if (yield from change.open()):
        return change.done_before()
    actor, target = yield from change.actor_and(user_id)
    policy.check_may_act_on(actor, target)
    yield from close_membership(change, target, MemberStatus.REMOVED)
    return (yield from change.finish(MsgType.REMOVED, {"user_ids": [user_id], "by": change.actor_id}))


def transfer(change: Change, user_id: str) -> Script[Changed]:
    if (yield from change.open()):
        return change.done_before()
    actor, target = yield from change.actor_and(user_id)
    policy.check_owner(actor)
    if target.user_id == actor.user_id:
        raise NexoError("bad_user_id", "The group is yours already")
    for member, role in sorted([(actor, Role.MEMBER), (target, Role.OWNER)], key=lambda pair: pair[0].user_id):
        yield do("UPDATE members SET role=? WHERE conv=? AND user_id=?", int(role), member.conv, member.user_id)
    yield do("UPDATE chat_groups SET owner_id=? WHERE group_id=?", user_id, change.group_id)
    content = {"from": change.actor_id, "to": user_id}
    return (yield from change.finish(MsgType.OWNER_TRANSFERRED, content))


def set_role(change: Change, user_id: str, role: Role) -> Script[Changed]:
    if (yield from change.open()):
        return change.done_before()
    actor, target = yield from change.actor_and(user_id)
    policy.check_owner(actor)
    if target.user_id == actor.user_id:
        raise NexoError("no_permission", "The owner's role changes by transferring the ownership")
    if target.role == role:
        return Changed()
    yield do("UPDATE members SET role=? WHERE conv=? AND user_id=?", int(role), target.conv, user_id)
    content = {"user_id": user_id, "role": ROLE_NAMES[role], "by": change.actor_id}
    return (yield from change.finish(MsgType.ROLE_CHANGED, content))


def mute(change: Change, user_id: str | None, duration_s: int) -> Script[Changed]:
    """Mutes one member, or all but owner and admins."""
    if (yield from change.open()):
        return change.done_before()
    until = duration_s if duration_s in (0, MUTED_FOREVER) else change.now_ms + duration_s * 1000
    if user_id is None:
        policy.check_manager((yield from change.actor()))
        change.conversation.mute_until = until
    else:
        actor, target = yield from change.actor_and(user_id)
        policy.check_may_act_on(actor, target)
        yield do("UPDATE members SET muted_until=? WHERE conv=? AND user_id=?", until, target.conv, user_id)
    return (yield from change.finish(MsgType.MUTED, {"user_id": user_id, "until": until}))


def update(change: Change, changes: dict[str, Any], shown: dict[str, Any]) -> Script[Changed]:
    """Writes `changes` by the names of columns; `shown` is what the event has of them."""
    if (yield from change.open()):
        return change.done_before()
    policy.check_manager((yield from change.actor()))
    if "avatar" in changes:
        yield from set_avatar(change.sql, f"g:{change.group_id}", change.actor_id, changes["avatar"])
    assignments = ",".join(f"{name}=?" for name in changes)
    yield do(
        f"UPDATE chat_groups SET {assignments},updated_at=? WHERE group_id=?",
        *changes.values(),
        change.now_ms,
        change.group_id,
    )
    return (yield from change.finish(MsgType.GROUP_UPDATED, {"changes": shown, "by": change.actor_id}))


def dismiss(change: Change, *, delete: bool) -> Script[Changed]:
    """Closes the group for all members with one row: spans end at `closed_seq`, its last seq."""
    name = group_conversation_id(change.group_id)
    conversation = yield from lock_conversation(change.sql, name)
    if conversation is not None and delete:
        if conversation.status == ConversationStatus.DISMISSED:
            change.conversation = conversation
            policy.check_owner((yield from change.actor()))
            conversation.status = ConversationStatus.DELETED
            yield from save_conversation(conversation)
            change.memo = Changed()
            return change.memo
        if conversation.status == ConversationStatus.DELETED and change.memo == Changed():
            return change.memo  # this deletion was committed without an answer
    if (yield from change.open()):
        return change.done_before()
    policy.check_owner((yield from change.actor()))
    change.conversation.status = ConversationStatus.DELETED if delete else ConversationStatus.DISMISSED
    change.conversation.member_epoch += 1
    yield do("UPDATE chat_groups SET status=1,updated_at=? WHERE group_id=?", change.now_ms, change.group_id)
    return (yield from change.finish(MsgType.DISMISSED, {"by": change.actor_id}))
