"""Users, groups and members as clients see them: in replies, events and webhooks alike."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from nexo.core.model import ROLE_NAMES, Group, GroupMember, Role, User


class PrivacyShape(Struct):
    """`last_seen` has one of the values of `LAST_SEEN_VALUES`."""

    last_seen: str


class UserShape(Struct):
    """`last_seen_at` is there for viewers that may see it, `privacy` for the user, `deleted` for closed accounts."""

    user_id: str
    nickname: str
    avatar: str
    extra: Raw | None
    created_at: int
    last_seen_at: int | UnsetType = UNSET
    privacy: PrivacyShape | UnsetType = UNSET
    deleted: bool | UnsetType = UNSET


class GroupShape(Struct):
    """`status` 0 is alive, 1 dismissed, 2 disabled by a moderator. `mute_until` 0 is not muted, -1 without end."""

    group_id: str
    conversation_id: str
    name: str
    avatar: str
    introduction: str
    announcement: str
    group_type: int
    creator_id: str
    owner_id: str
    member_count: int
    status: Literal[0, 1, 2]
    join_policy: str
    mute_until: int
    extra: Raw | None
    created_at: int


class MemberShape(Struct):
    """`nickname` is that in the group, if there is one. `muted_until` 0 is not muted, -1 without end."""

    user_id: str
    role: str
    nickname: str
    joined_at: int
    muted_until: int
    group_nickname: str
    group_avatar: str
    inviter_id: str
    extra: Raw | None


def user_shape(user: User) -> UserShape:
    extra = None if user.extra is None else Raw(user.extra.encode())
    shape = UserShape(user.user_id, user.nickname, user.avatar, extra, user.created_at)
    if user.deleted_at:
        shape.deleted = True
    return shape


def group_shape(group: Group) -> GroupShape:
    return GroupShape(
        group.group_id,
        group.conversation_id,
        group.name,
        group.avatar,
        group.introduction,
        group.announcement,
        group.group_type,
        group.creator_id,
        group.owner_id,
        group.member_count,
        group.shown_status,
        group.join_policy,
        group.mute_until,
        None if group.extra is None else Raw(group.extra.encode()),
        group.created_at,
    )


def member_shape(member: GroupMember) -> MemberShape:
    return MemberShape(
        member.user_id,
        ROLE_NAMES[Role(member.role)],
        member.group_nickname or member.nickname,
        member.joined_at,
        member.muted_until,
        member.group_nickname,
        member.group_avatar,
        member.inviter_id,
        None if member.extra is None else Raw(member.extra.encode()),
    )
