"""Groups: the shape of each request is checked here; who may do it is decided under the lock."""

from __future__ import annotations

from typing import Any

from nexo.config import Config
from nexo.core import content as form
from nexo.core.model import JOIN_POLICIES, MUTED_FOREVER, Group, GroupMember, JoinRequest, Message, Role
from nexo.errors import NexoError
from nexo.ids import check_user_id, is_group_id, is_user_id
from nexo.ports import GroupChange, GroupDraft, GroupStore

NAME_MAX = 128
AVATAR_MAX = 512
INTRODUCTION_MAX = 512
ANNOUNCEMENT_MAX = 4096
MESSAGE_MAX = 512
INVITE_MAX = 500
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
    ) -> tuple[Group, Message]:
        _check_name(name)
        form.check_text(avatar, "avatar", AVATAR_MAX)
        form.check_text(introduction, "introduction", INTRODUCTION_MAX)
        _check_join_policy(join_policy)
        others = [user_id for user_id in dict.fromkeys(member_ids) if user_id != creator_id]
        if bad := [user_id for user_id in others if not is_user_id(user_id)]:
            raise NexoError("user_not_found", f"There is no user {', '.join(bad[:20])}", user_ids=bad)
        if len(others) + 1 < self._min_members:
            raise NexoError("group_members_too_few", f"A new group needs at least {self._min_members} members")
        if len(others) + 1 > self._max_members:
            raise NexoError("group_full", f"A group has at most {self._max_members} members")
        extra_text = None if extra is None else form.encode_json(extra, "extra", form.EXTRA_MAX_BYTES)
        group_id, event = await self._groups.create(
            GroupDraft(creator_id, name, others, avatar, introduction, join_policy, extra_text)
        )
        return await self._groups.info(group_id), event

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
    ) -> tuple[Group, GroupChange | None]:
        changes: dict[str, str] = {}
        if name is not None:
            changes["name"] = _check_name(name)
        if avatar is not None:
            changes["avatar"] = form.check_text(avatar, "avatar", AVATAR_MAX)
        if introduction is not None:
            changes["introduction"] = form.check_text(introduction, "introduction", INTRODUCTION_MAX)
        if announcement is not None:
            changes["announcement"] = form.check_text(announcement, "announcement", ANNOUNCEMENT_MAX)
        if join_policy is not None:
            changes["join_policy"] = _check_join_policy(join_policy)
        if not changes:
            raise NexoError("bad_request", "Name at least one field to change")
        change = await self._groups.update(_known(group_id), actor_id, changes)
        return await self._groups.info(group_id), change

    async def dismiss(self, actor_id: str, group_id: str, *, delete: bool = False) -> GroupChange:
        return await self._groups.dismiss(_known(group_id), actor_id, delete=delete)

    async def info(self, group_id: str) -> Group:
        return await self._groups.info(_known(group_id))

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


def _check_join_policy(join_policy: str) -> str:
    if join_policy not in JOIN_POLICIES:
        raise NexoError("bad_join_policy", f"join_policy is one of {', '.join(JOIN_POLICIES)}")
    return join_policy
