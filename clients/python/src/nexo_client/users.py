"""Calls about users: `client.users`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nexo_client.http import Call, decode
from nexo_client.types import User, UserOnline


class Users:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def info(self, user_id: str | None = None) -> User:
        """Returns a user; without an id the signed-in one."""
        return decode(await self._call("GET", "/user/info", {"user_id": user_id}), User)

    async def search(self, q: str) -> list[User]:
        return decode((await self._call("GET", "/user/search", {"q": q}))["users"], list[User])

    async def update(
        self,
        *,
        nickname: str | None = None,
        avatar: str | None = None,
        extra: Any = None,
        privacy: Mapping[str, str] | None = None,
    ) -> User:
        """`privacy` is `{"last_seen": …}` with a value of `Privacy`."""
        changes = {"nickname": nickname, "avatar": avatar, "extra": extra, "privacy": privacy}
        return decode(await self._call("PUT", "/user/update", changes), User)

    async def online(self, user_ids: Iterable[str]) -> list[UserOnline]:
        found = await self._call("GET", "/user/online", {"user_ids": ",".join(user_ids)})
        return decode(found["users"], list[UserOnline])

    async def block(self, user_id: str) -> list[str]:
        """Returns the ids of all users that are blocked now."""
        return decode((await self._call("POST", "/user/block", {"user_id": user_id}))["user_ids"], list[str])

    async def unblock(self, user_id: str) -> list[str]:
        """Returns the ids of all users that are blocked now."""
        return decode((await self._call("POST", "/user/unblock", {"user_id": user_id}))["user_ids"], list[str])

    async def blocks(self) -> list[str]:
        return decode((await self._call("GET", "/user/blocks", {}))["user_ids"], list[str])
