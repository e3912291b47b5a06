"""Groups: the shape of each request is checked here; permission is checked in the store, under the lock."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from nexo.config import Config
from nexo.core import content as form
from nexo.core.model import (
    JOIN_POLICIES,
    MUTED_FOREVER,
    Group,
    GroupGlimpse,
    GroupMember,
    JoinRequest,
    MemberStatus,
    Role,
)
from nexo.errors import NexoError
from nexo.ids import check_user_id, is_group_id, is_user_id
from nexo.ports import GroupChange, GroupDraft, GroupStore

NAME_MAX = 128
AVATAR_MAX = 512
INTRODUCTION_MAX = 512
ANNOUNCEMENT_MAX = 4096
MESSAGE_MAX = 512
INVITE_MAX = 500
GROUP_TYPE_MAX = 32_767
MUTE_MAX_S = 10 * 366 * 86_400

_ROLES = {"admin": Role.ADMIN, "member": Role.MEMBER}


class Groups:
    def __init__(self, groups: GroupStore, config: Config) -> None:
        self._groups = groups
        self._min_members = config.group.min_create_members
        self._max_members = config.group.max_members

    async def create(
        self,
        creator_id: str,
        *,
        name: str,
        member_ids: list[str],
        avatar: str = "",
        introduction: str = "",
        join_policy: str = "open",
        extra: Any = None,
        group_type: int = 0,
        min_members: int | None = None,
    ) -> Group:
        """`min_members` replaces `group.min_create_members`, for clients whose protocol has no such rule."""
        _check_name(name)
        form.check_avatar(avatar, AVATAR_MAX)
        form.check_text(introduction, "introduction", INTRODUCTION_MAX)
        _check_join_policy(join_policy)
        _check_group_type(group_type)
        others = [user_id for user_id in dict.fromkeys(member_ids) if user_id != creator_id]
        if bad := [user_id for user_id in others if not is_user_id(user_id)]:
            raise NexoError("user_not_found", f"There is no user {', '.join(bad[:20])}", user_ids=bad)
        least = self._min_members if min_members is None else min_members
        if len(others) + 1 < least:
            raise NexoError("group_members_too_few", f"A new group needs at least {least} members")
        if len(others) + 1 > self._max_members:
            raise NexoError("group_full", f"A group has at most {self._max_members} members")
        extra_text = form.encode_extra(extra)
        group_id = await self._groups.create(
            GroupDraft(creator_id, name, others, avatar, introduction, join_policy, extra_text, group_type)
        )
        return await self._groups.info(group_id)

    async def join(self, user_id: str, group_id: str, message: str = "") -> tuple[str, GroupChange]:
        form.check_text(message, "message", MESSAGE_MAX)
        return await self._groups.join(_known(group_id), user_id, message)

    async def decide_join(self, actor_id: str, group_id: str, user_id: str, accept: bool) -> GroupChange:
        check_user_id(user_id)
        return await self._groups.decide_join(_known(group_id), actor_id, user_id, accept)

    async def invite(self, actor_id: str, group_id: str, user_ids: list[str]) -> GroupChange:
        wanted = list(dict.fromkeys(user_ids))
        if not wanted:
            raise NexoError("missing_member_ids", "Name at least one user")
        if len(wanted) > INVITE_MAX:
            raise NexoError("bad_member_ids", f"At most {INVITE_MAX} users can be invited at once")
        return await self._groups.invite(_known(group_id), actor_id, wanted)

    async def leave(self, user_id: str, group_id: str) -> GroupChange:
        return await self._groups.leave(_known(group_id), user_id)

    async def remove(self, actor_id: str, group_id: str, user_id: str) -> GroupChange:
        check_user_id(user_id)
        return await self._groups.remove(_known(group_id), actor_id, user_id)

    async def transfer(self, actor_id: str, group_id: str, user_id: str) -> GroupChange:
        check_user_id(user_id)
        return await self._groups.transfer(_known(group_id), actor_id, user_id)

    async def set_role(self, actor_id: str, group_id: str, user_id: str, role: str) -> GroupChange:
        check_user_id(user_id)
        if role not in _ROLES:
            raise NexoError("bad_role", "role is admin or member")
        return await self._groups.set_role(_known(group_id), actor_id, user_id, _ROLES[role])

    async def mute(self, actor_id: str, group_id: str, user_id: str | None, duration_s: int) -> GroupChange:
        if user_id is not None:
            check_user_id(user_id)
        if not MUTED_FOREVER <= duration_s <= MUTE_MAX_S:
            raise NexoError("bad_duration", "duration_s is a number of seconds, 0 to lift, -1 for no end")
        return await self._groups.mute(_known(group_id), actor_id, user_id, duration_s)

    async def update(
        self,
        actor_id: str,
        group_id: str,
        *,
        name: str | None = None,
        avatar: str | None = None,
        introduction: str | None = None,
        announcement: str | None = None,
        join_policy: str | None = None,
        group_type: int | None = None,
        extra: Any = UNSET,
    ) -> Group:
        """None leaves a field as it is, an `extra` of None empties that."""
        changes: dict[str, Any] = {}
        if name is not None:
            changes["name"] = _check_name(name)
        if avatar is not None:
            changes["avatar"] = form.check_avatar(avatar, AVATAR_MAX)
        if introduction is not None:
            changes["introduction"] = form.check_text(introduction, "introduction", INTRODUCTION_MAX)
        if announcement is not None:
            changes["announcement"] = form.check_text(announcement, "announcement", ANNOUNCEMENT_MAX)
        if join_policy is not None:
            changes["join_policy"] = _check_join_policy(join_policy)
        if group_type is not None:
            changes["group_type"] = _check_group_type(group_type)
        shown = dict(changes)
        if extra is not UNSET:
            changes["extra"], shown["extra"] = form.encode_extra(extra), extra
        if not changes:
            raise NexoError("bad_request", "Name at least one field to change")
        await self._groups.update(_known(group_id), actor_id, changes, shown)
        return await self._groups.info(group_id)

    async def set_own_member(
        self,
        user_id: str,
        group_id: str,
        *,
        group_nickname: str | None = None,
        group_avatar: str | None = None,
        extra: Any = UNSET,
    ) -> GroupMember:
        """Changes what the members of a group see of the caller there. None leaves a field as it is."""
        changes: dict[str, str | None] = {}
        if group_nickname is not None:
            changes["group_nickname"] = form.check_text(group_nickname, "nickname", NAME_MAX)
        if group_avatar is not None:
            changes["group_avatar"] = form.check_avatar(group_avatar, AVATAR_MAX)
        if extra is not UNSET:
            changes["extra"] = form.encode_extra(extra)
        if not changes:
            raise NexoError("bad_request", "Name at least one field to change")
        return await self._groups.set_own_member(_known(group_id), user_id, changes)

    async def dismiss(self, actor_id: str, group_id: str, *, delete: bool = False) -> GroupChange:
        return await self._groups.dismiss(_known(group_id), actor_id, delete=delete)

    async def info(self, group_id: str) -> Group:
        return await self._groups.info(_known(group_id))

    async def view(self, user_id: str, group_id: str) -> Group | GroupGlimpse:
        """Returns the group for a member, and what others may know of it: of a group that one joins by invitation only,
        a stranger learns only that it exists."""
        group, status = await self._groups.view(_known(group_id), user_id)
        if status is MemberStatus.NORMAL:
            return group
        if status is None and group.join_policy == "invite":
            return GroupGlimpse(group.group_id, group.join_policy)
        return GroupGlimpse(group.group_id, group.join_policy, group.name, group.avatar, group.member_count)

    async def mine(self, user_id: str) -> list[Group]:
        return await self._groups.groups_of(user_id)

    async def members(
        self, user_id: str, group_id: str, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[GroupMember], str, bool]:
        return await self._groups.members(_known(group_id), user_id, cursor, limit)

    async def join_requests(self, user_id: str, group_id: str) -> list[JoinRequest]:
        return await self._groups.join_requests(_known(group_id), user_id)


def _known(group_id: str) -> str:
    if not is_group_id(group_id):
        raise NexoError("group_not_found")
    return group_id


def _check_name(name: str) -> str:
    form.check_text(name, "name", NAME_MAX)
    if not name.strip():
        raise NexoError("missing_name", "A group needs a name")
    return name


def _check_group_type(group_type: int) -> int:
    if not 0 <= group_type <= GROUP_TYPE_MAX:
        raise NexoError("bad_kind", f"group_type is a number from 0 to {GROUP_TYPE_MAX}")
    return group_type


def _check_join_policy(join_policy: str) -> str:
    if join_policy not in JOIN_POLICIES:
        raise NexoError("bad_join_policy", f"join_policy is one of {', '.join(JOIN_POLICIES)}")
    return join_policy
