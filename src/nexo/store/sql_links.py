"""Invite links behind the port `service.links.LinkStore`: each method runs one script on one database."""

from __future__ import annotations

from nexo.config import Config
from nexo.core.people import GroupLink, LinkView
from nexo.ports import GroupChange
from nexo.store import groups, links
from nexo.store.database import Database
from nexo.store.publish_seam import PublishSeam


class SqlLinks:
    def __init__(self, database: Database, seam: PublishSeam, config: Config) -> None:
        self._database = database
        self._sql = database.sql
        self._seam = seam
        self._max_members = config.group.max_members
        self._max_links = config.group.max_links

    def _begin(self, group_id: str, actor_id: str) -> groups.Change:
        (event_id,) = self._database.ids.take(1)
        return groups.Change(self._sql, group_id, actor_id, event_id)

    async def _group_of(self, code: str) -> str:
        return await self._database.look(lambda: links.group_of_link(code))

    async def add(self, group_id: str, actor_id: str, code: str, expires_s: int, uses: int) -> GroupLink:
        change = self._begin(group_id, actor_id)
        return await self._database.change(lambda: links.add(change, code, expires_s, uses, self._max_links))

    async def join(self, code: str, user_id: str) -> str:
        change = self._begin(await self._group_of(code), user_id)
        joined = await self._database.change_and_publish(
            lambda: links.join(change, code, self._max_members),
            lambda joined: self._seam.group_changed(GroupChange(*joined.changed)),
        )
        return joined.group_id

    async def revoke(self, code: str, actor_id: str) -> None:
        change = self._begin(await self._group_of(code), actor_id)
        await self._database.change(lambda: links.revoke(change, code))

    async def view(self, code: str, user_id: str) -> LinkView:
        return await self._database.look(lambda: links.view(code, user_id))

    async def links(self, group_id: str, user_id: str) -> list[GroupLink]:
        return await self._database.look(lambda: links.read_links(group_id, user_id))
