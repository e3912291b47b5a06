"""Calls about groups: `client.groups`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nexo_client.http import Call, decode
from nexo_client.types import Group, GroupLink, Invited, JoinRequest, LinkedGroup, Member, MembersPage


class Groups:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def create(
        self,
        name: str,
        member_ids: Iterable[str],
        *,
        avatar: str | None = None,
        introduction: str | None = None,
        join_policy: str | None = None,
        extra: Any = None,
        group_type: int | None = None,
    ) -> Group:
        about = {"avatar": avatar, "introduction": introduction, "join_policy": join_policy, "extra": extra}
        about |= {"group_type": group_type}
        made = await self._call("POST", "/group/create", {"name": name, "member_ids": list(member_ids)} | about)
        return decode(made, Group)

    async def info(self, group_id: str) -> Group:
        return decode(await self._call("GET", "/group/info", {"group_id": group_id}), Group)

    async def list(self) -> list[Group]:
        return decode((await self._call("GET", "/group/list", {}))["groups"], list[Group])

    async def members(self, group_id: str, *, cursor: str | None = None, limit: int | None = None) -> MembersPage:
        asked = {"group_id": group_id, "cursor": cursor or None, "limit": limit}
        return decode(await self._call("GET", "/group/members", asked), MembersPage)

    async def join(self, group_id: str, message: str | None = None) -> str:
        """Returns `joined` or `pending`."""
        return str((await self._call("POST", "/group/join", {"group_id": group_id, "message": message}))["status"])

    async def join_requests(self, group_id: str) -> Sequence[JoinRequest]:
        found = await self._call("GET", "/group/join_requests", {"group_id": group_id})
        return decode(found["requests"], tuple[JoinRequest, ...])

    async def decide_join(self, group_id: str, user_id: str, accept: bool) -> None:
        await self._call("POST", "/group/join_decide", {"group_id": group_id, "user_id": user_id, "accept": accept})

    async def quit(self, group_id: str) -> None:
        await self._call("POST", "/group/quit", {"group_id": group_id})

    async def dismiss(self, group_id: str) -> None:
        await self._call("POST", "/group/dismiss", {"group_id": group_id})

    async def invite(self, group_id: str, user_ids: Iterable[str]) -> Invited:
        asked = {"group_id": group_id, "user_ids": [*user_ids]}
        return decode(await self._call("POST", "/group/invite", asked), Invited)

    async def remove_member(self, group_id: str, user_id: str) -> None:
        await self._call("POST", "/group/remove_member", {"group_id": group_id, "user_id": user_id})

    async def transfer_owner(self, group_id: str, user_id: str) -> None:
        await self._call("POST", "/group/transfer_owner", {"group_id": group_id, "user_id": user_id})

    async def set_member_role(self, group_id: str, user_id: str, role: str) -> None:
        await self._call("POST", "/group/set_member_role", {"group_id": group_id, "user_id": user_id, "role": role})

    async def mute(self, group_id: str, *, user_id: str | None = None, duration_s: int) -> None:
        """Mutes one member, or all; a duration of 0 unmutes, -1 mutes without end."""
        asked = {"group_id": group_id, "user_id": user_id, "duration_s": duration_s}
        await self._call("POST", "/group/mute", asked)

    async def update(
        self,
        group_id: str,
        *,
        name: str | None = None,
        avatar: str | None = None,
        introduction: str | None = None,
        announcement: str | None = None,
        join_policy: str | None = None,
        extra: Any = None,
        group_type: int | None = None,
    ) -> Group:
        about = {"name": name, "avatar": avatar, "introduction": introduction, "announcement": announcement}
        changes = about | {"join_policy": join_policy, "extra": extra, "group_type": group_type}
        return decode(await self._call("PUT", "/group/update", {"group_id": group_id} | changes), Group)

    async def update_member(
        self,
        group_id: str,
        *,
        group_nickname: str | None = None,
        group_avatar: str | None = None,
        extra: Any = None,
    ) -> Member:
        """Changes what members see of yourself in this group."""
        changes = {"group_nickname": group_nickname, "group_avatar": group_avatar, "extra": extra}
        return decode(await self._call("PUT", "/group/member", {"group_id": group_id} | changes), Member)

    async def create_link(self, group_id: str, *, expires_s: int | None = None, uses: int | None = None) -> GroupLink:
        """Makes an invite link; without an end where nothing else is named."""
        asked = {"group_id": group_id, "expires_s": expires_s, "uses": uses}
        return decode(await self._call("POST", "/group/link", asked), GroupLink)

    async def links(self, group_id: str) -> Sequence[GroupLink]:
        """Returns the open ones."""
        found = await self._call("GET", "/group/links", {"group_id": group_id})
        return decode(found["links"], tuple[GroupLink, ...])

    async def link_info(self, code: str) -> LinkedGroup:
        """Returns the group that a link leads to."""
        return decode(await self._call("GET", "/group/link", {"code": code}), LinkedGroup)

    async def revoke_link(self, code: str) -> None:
        await self._call("POST", "/group/link/revoke", {"code": code})

    async def join_by_code(self, code: str) -> str:
        """Joins by an invite link; returns the id of the group."""
        return str((await self._call("POST", "/group/join", {"code": code}))["group_id"])
