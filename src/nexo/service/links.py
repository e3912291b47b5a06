"""Invite links of groups: the shape of each request is checked here."""

from __future__ import annotations

import re
import secrets
from typing import Protocol

from nexo.core.people import GroupLink, LinkView
from nexo.errors import NexoError
from nexo.ids import is_group_id

EXPIRES_MAX_S = 10 * 366 * 86_400
USES_MAX = 1_000_000
CODE_BYTES = 15

_CODE = re.compile(r"[A-Za-z0-9_-]{1,32}")


class LinkStore(Protocol):
    """Links of groups. Uses are counted exactly, however many users join at once."""

    async def add(self, group_id: str, actor_id: str, code: str, expires_s: int, uses: int) -> GroupLink:
        """Add a link, by the owner or an admin. 0: without end. Raises `too_many_links`."""

    async def join(self, code: str, user_id: str) -> str:
        """Join the group of a link, without approval. Returns the group. Raises `link_expired`, `group_full`,
        `group_not_available`. A member joins again without taking a use."""

    async def revoke(self, code: str, actor_id: str) -> None:
        """End a link, by its creator, the owner or an admin."""

    async def view(self, code: str, user_id: str) -> LinkView:
        """Or `link_expired`, `group_not_available`."""

    async def links(self, group_id: str, user_id: str) -> list[GroupLink]:
        """Returns the open links of a group, for its owner and admins."""


class Links:
    def __init__(self, store: LinkStore) -> None:
        self._store = store

    async def add(self, actor_id: str, group_id: str, expires_s: int | None, uses: int | None) -> GroupLink:
        if expires_s is not None and not 1 <= expires_s <= EXPIRES_MAX_S:
            raise NexoError("bad_expires", f"expires_s is a number of seconds from 1 to {EXPIRES_MAX_S}")
        if uses is not None and not 1 <= uses <= USES_MAX:
            raise NexoError("bad_uses", f"uses is a number from 1 to {USES_MAX}")
        code = secrets.token_urlsafe(CODE_BYTES)
        return await self._store.add(_known(group_id), actor_id, code, expires_s or 0, uses or 0)

    async def join(self, user_id: str, code: str) -> str:
        return await self._store.join(_possible(code), user_id)

    async def revoke(self, actor_id: str, code: str) -> None:
        await self._store.revoke(_possible(code), actor_id)

    async def view(self, user_id: str, code: str) -> LinkView:
        return await self._store.view(_possible(code), user_id)

    async def links(self, user_id: str, group_id: str) -> list[GroupLink]:
        return await self._store.links(_known(group_id), user_id)


def _possible(code: str) -> str:
    if not _CODE.fullmatch(code):
        raise NexoError("link_expired")
    return code


def _known(group_id: str) -> str:
    if not is_group_id(group_id):
        raise NexoError("group_not_found")
    return group_id
