"""Reads of groups: profiles, members, join requests, and the audience of a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nexo.core import policy
from nexo.core.model import ConversationStatus, Group, GroupMember, JoinRequest, Member, MemberStatus
from nexo.errors import NexoError
from nexo.ids import group_of
from nexo.ports import Audience, Listener
from nexo.store import rows
from nexo.store.engine import NOW, Script
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

NEWCOMER_MS = 30_000  # until then every instance knows of a new member, or that it has missed frames
_GROUP = (
    "g.group_id,g.name,g.introduction,g.announcement,g.avatar,g.group_type,g.creator_id,g.owner_id,g.join_policy,"
    "g.extra,c.status,c.member_count,c.mute_until,g.created_at"
)
_MEMBER = "m.user_id,m.role,u.nickname,m.group_nickname,m.joined_at,m.muted_until,m.group_avatar,m.inviter_id,m.extra"
_GOING_ON = f"{int(ConversationStatus.NORMAL)},{int(ConversationStatus.DISABLED)}"


def read_group(group_id: str) -> Script[Group]:
    found = yield query(
        f"SELECT {_GROUP} FROM chat_groups g JOIN conversations c ON c.id=g.conv WHERE g.group_id=?", group_id
    )
    if not found:
        raise NexoError("group_not_found")
    return _group(found[0])


def view_group(group_id: str, user_id: str) -> Script[tuple[Group, MemberStatus | None]]:
    """Returns the group and the status of the user in it; None: never a member."""
    found = yield query(
        f"SELECT m.status,{_GROUP} FROM chat_groups g JOIN conversations c ON c.id=g.conv "
        "LEFT JOIN members m ON m.conv=g.conv AND m.user_id=? WHERE g.group_id=?",
        user_id,
        group_id,
    )
    if not found:
        raise NexoError("group_not_found")
    status, *group = found[0]
    return _group(group), None if status is None else MemberStatus(status)


def read_groups(sql: Sql, convs: Iterable[int]) -> Script[dict[int, Group]]:
    """Returns groups by the numbers of their conversations."""
    chosen = sql.one_of("g.conv", sorted(convs), "bigint")
    found = yield query(
        f"SELECT g.conv,{_GROUP} FROM chat_groups g JOIN conversations c ON c.id=g.conv WHERE {chosen.sql}",
        *chosen.params,
    )
    return {row[0]: _group(tuple(row)[1:]) for row in found}


def _group(row: Any) -> Group:
    group_id, name, introduction, announcement, *rest = row
    return Group(group_id, name, introduction, announcement or "", *rest)


def groups_of(user_id: str) -> Script[list[Group]]:
    """Returns the groups that a user is a member of now, with disabled ones and without dismissed ones."""
    found = yield query(
        f"SELECT {_GROUP} FROM members m JOIN conversations c ON c.id=m.conv JOIN chat_groups g ON g.conv=c.id "
        f"WHERE m.user_id=? AND m.status=0 AND c.status IN ({_GOING_ON}) ORDER BY m.conv",
        user_id,
    )
    return [_group(row) for row in found]


def read_role(group_id: str, user_id: str) -> Script[Member]:
    """Returns the caller's own row; raises unless they are a member now."""
    found = yield query(
        f"SELECT {rows.columns(rows.MEMBER, 'm')} FROM chat_groups g LEFT JOIN members m "
        "ON m.conv=g.conv AND m.user_id=? WHERE g.group_id=?",
        user_id,
        group_id,
    )
    if not found:
        raise NexoError("group_not_found")
    row = tuple(found[0])
    if row[0] is None or row[rows.MEMBER.index("status")] != MemberStatus.NORMAL:
        raise NexoError("not_group_member")
    return Member(*row)


def read_members(group_id: str, user_id: str, after: str, limit: int) -> Script[tuple[list[GroupMember], bool]]:
    """Returns a page of members in the order of their ids; for members only."""
    me = yield from read_role(group_id, user_id)
    found = yield query(
        f"SELECT {_MEMBER} FROM members m "
        "JOIN users u ON u.user_id=m.user_id WHERE m.conv=? AND m.user_id>? AND m.status=0 "
        "ORDER BY m.user_id LIMIT ?",
        me.conv,
        after,
        limit + 1,
    )
    return [GroupMember(*row) for row in found[:limit]], len(found) > limit


def read_one_member(conv: int, user_id: str) -> Script[GroupMember]:
    """Returns a member as others see it."""
    ((*row,),) = yield query(
        f"SELECT {_MEMBER} FROM members m JOIN users u ON u.user_id=m.user_id WHERE m.conv=? AND m.user_id=?",
        conv,
        user_id,
    )
    return GroupMember(*row)


def read_managers(conv: int) -> Script[list[str]]:
    """Returns the owner and the admins."""
    found = yield query("SELECT user_id FROM members WHERE conv=? AND status=0 AND role>0 ORDER BY user_id", conv)
    return [row[0] for row in found]


def read_join_requests(group_id: str, user_id: str) -> Script[list[JoinRequest]]:
    policy.check_manager((yield from read_role(group_id, user_id)))
    found = yield query(
        "SELECT user_id,message,created_at FROM join_requests WHERE group_id=? ORDER BY created_at,user_id LIMIT 200",
        group_id,
    )
    return [JoinRequest(*row) for row in found]


def audience(conversation_id: str) -> Script[Audience]:
    """Returns the current members of a conversation, what each may see, and their notification settings."""
    now_ms = yield NOW
    found = yield query(
        "SELECT c.member_epoch,m.user_id,m.from_seq,m.recv_msg_opt,m.blocked,m.has_past,m.conv,m.joined_at,"
        "m.silent_until,m.cleared_seq "
        "FROM conversations c JOIN members m ON m.conv=c.id WHERE c.conversation_id=? AND m.status=0",
        conversation_id,
    )
    past: dict[str, list[tuple[int, int]]] = {}
    if any(row[5] for row in found):
        for user_id, low, high in (
            yield query("SELECT user_id,from_seq,to_seq FROM member_spans WHERE conv=?", found[0][6])
        ):
            past.setdefault(user_id, []).append((low, high))
    listeners = {
        row[1]: Listener(row[2], row[3], bool(row[4]), tuple(past.get(row[1], ())) if row[5] else (), row[8], row[9])
        for row in found
    }
    since_ms = now_ms - NEWCOMER_MS if group_of(conversation_id) is not None else now_ms
    newcomers = {row[1]: now_ms - row[7] for row in found if since_ms < row[7] <= now_ms}
    return Audience(found[0][0] if found else 0, listeners, newcomers)
