"""Users, groups and presence: `client.users`, `client.groups`, `client.presence`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nexo.client.events import UserPresence
from nexo.client.http import Call, read
from nexo.client.options import PRESENCE_MAX
from nexo.client.shapes import Group, Invited, JoinRequest, MembersPage, User, UserOnline


class Users:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def info(self, user_id: str | None = None) -> User:
        """A user, or yourself."""
        return read(await self._call("GET", "/user/info", {"user_id": user_id}), User)

    async def search(self, q: str) -> list[User]:
        return read((await self._call("GET", "/user/search", {"q": q}))["users"], list[User])

    async def update(self, *, nickname: str | None = None, avatar: str | None = None, extra: Any = None) -> User:
        changes = {"nickname": nickname, "avatar": avatar, "extra": extra}
        return read(await self._call("PUT", "/user/update", changes), User)

    async def online(self, user_ids: Iterable[str]) -> list[UserOnline]:
        found = await self._call("GET", "/user/online", {"user_ids": ",".join(user_ids)})
        return read(found["users"], list[UserOnline])

    async def block(self, user_id: str) -> list[str]:
        """All who are blocked now."""
        return read((await self._call("POST", "/user/block", {"user_id": user_id}))["user_ids"], list[str])

    async def unblock(self, user_id: str) -> list[str]:
        return read((await self._call("POST", "/user/unblock", {"user_id": user_id}))["user_ids"], list[str])

    async def blocks(self) -> list[str]:
        return read((await self._call("GET", "/user/blocks", {}))["user_ids"], list[str])


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
    ) -> Group:
        about = {"avatar": avatar, "introduction": introduction, "join_policy": join_policy, "extra": extra}
        made = await self._call("POST", "/group/create", {"name": name, "member_ids": list(member_ids)} | about)
        return read(made, Group)

    async def info(self, group_id: str) -> Group:
        return read(await self._call("GET", "/group/info", {"group_id": group_id}), Group)

    async def list(self) -> list[Group]:
        return read((await self._call("GET", "/group/list", {}))["groups"], list[Group])

    async def members(self, group_id: str, *, cursor: str | None = None, limit: int | None = None) -> MembersPage:
        asked = {"group_id": group_id, "cursor": cursor or None, "limit": limit}
        return read(await self._call("GET", "/group/members", asked), MembersPage)

    async def join(self, group_id: str, message: str | None = None) -> str:
        """`joined` or `pending`."""
        return str((await self._call("POST", "/group/join", {"group_id": group_id, "message": message}))["status"])

    async def join_requests(self, group_id: str) -> Sequence[JoinRequest]:
        found = await self._call("GET", "/group/join_requests", {"group_id": group_id})
        return read(found["requests"], tuple[JoinRequest, ...])

    async def decide_join(self, group_id: str, user_id: str, accept: bool) -> None:
        await self._call("POST", "/group/join_decide", {"group_id": group_id, "user_id": user_id, "accept": accept})

    async def quit(self, group_id: str) -> None:
        await self._call("POST", "/group/quit", {"group_id": group_id})

    async def dismiss(self, group_id: str) -> None:
        await self._call("POST", "/group/dismiss", {"group_id": group_id})

    async def invite(self, group_id: str, user_ids: Iterable[str]) -> Invited:
        asked = {"group_id": group_id, "user_ids": [*user_ids]}
        return read(await self._call("POST", "/group/invite", asked), Invited)

    async def remove_member(self, group_id: str, user_id: str) -> None:
        await self._call("POST", "/group/remove_member", {"group_id": group_id, "user_id": user_id})

    async def transfer_owner(self, group_id: str, user_id: str) -> None:
        await self._call("POST", "/group/transfer_owner", {"group_id": group_id, "user_id": user_id})

    async def set_member_role(self, group_id: str, user_id: str, role: str) -> None:
        await self._call("POST", "/group/set_member_role", {"group_id": group_id, "user_id": user_id, "role": role})

    async def mute(self, group_id: str, *, user_id: str | None = None, duration_s: int) -> None:
        """One member, or all; 0 lifts it, -1 is without end."""
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
    ) -> Group:
        about = {"name": name, "avatar": avatar, "introduction": introduction, "announcement": announcement}
        changes = about | {"join_policy": join_policy}
        return read(await self._call("PUT", "/group/update", {"group_id": group_id} | changes), Group)


class Presence:
    """Who is connected, of those subscribed to. The subscription is repeated after a reconnect."""

    def __init__(self, watch: Callable[[list[str]], None], look: Callable[[str], UserPresence | None]) -> None:
        self._watch = watch
        self._look = look
        self._watched: dict[str, None] = {}

    @property
    def watched(self) -> list[str]:
        return list(self._watched)

    def subscribe(self, user_ids: Iterable[str]) -> None:
        """Beyond a hundred the oldest subscriptions end."""
        for user_id in user_ids:
            self._watched.pop(user_id, None)
            self._watched[user_id] = None
        self._watched = dict.fromkeys(list(self._watched)[-PRESENCE_MAX:])
        self._watch(self.watched)

    def unsubscribe(self, user_ids: Iterable[str]) -> None:
        for user_id in user_ids:
            self._watched.pop(user_id, None)
        self._watch(self.watched)

    def of(self, user_id: str) -> UserPresence | None:
        """None while it is not known."""
        return self._look(user_id)
