"""Groups behind the port `GroupStore`: each method runs one script on one database."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from nexo.config import Config
from nexo.core import events
from nexo.core.model import (
    Group,
    GroupMember,
    JoinRequest,
    MemberStatus,
    Message,
    Role,
)
from nexo.ids import new_group_id
from nexo.ports import Audience, GroupChange, GroupDraft
from nexo.store import group_reading, groups, own_membership
from nexo.store.database import Database
from nexo.store.engine import Conflict, Stmt
from nexo.store.history import clamp_limit
from nexo.store.paging import encode_cursor, read_user_cursor
from nexo.store.publish_seam import PublishSeam


class SqlGroups:
    def __init__(self, database: Database, seam: PublishSeam, config: Config) -> None:
        self._database = database
        self._sql = database.sql
        self._seam = seam
        self._max_members = config.group.max_members

    async def create(self, draft: GroupDraft) -> str:
        (event_id,) = self._database.ids.take(1)
        founders = [draft.creator_id, *draft.member_ids]

        def publish(event: Message) -> None:
            # epoch 0: a member list of any age is valid, since there was none before
            self._seam.group_changed(GroupChange(event, founders, [], 0))

        while True:
            new = groups.NewGroup(new_group_id(), *draft, event_id)
            try:
                await self._database.change_and_publish(partial(groups.create, self._sql, new), publish)
            except Conflict:  # the id was taken, once in 10²¹
                continue
            return new.group_id

    async def _change(
        self, group_id: str, actor_id: str, script: Callable[[groups.Change], Generator[Stmt, Any, groups.Changed]]
    ) -> GroupChange:
        change = self._begin(group_id, actor_id)
        changed = await self._database.change_and_publish(lambda: script(change), self._publish)
        return GroupChange(*changed)

    def _publish(self, changed: groups.Changed) -> None:
        self._seam.group_changed(GroupChange(*changed))

    def _begin(self, group_id: str, actor_id: str) -> groups.Change:
        (event_id,) = self._database.ids.take(1)
        return groups.Change(self._sql, group_id, actor_id, event_id)

    async def join(self, group_id: str, user_id: str, message: str) -> tuple[str, GroupChange]:
        def publish(joined: groups.JoinResult) -> None:
            self._publish(joined.changed)
            if joined.managers:
                event = events.JoinRequested(group_id, user_id, message, joined.at)
                self._seam.user_event(joined.managers, event)

        change = self._begin(group_id, user_id)
        joined = await self._database.change_and_publish(
            lambda: groups.join(change, message, self._max_members), publish
        )
        return joined.status, GroupChange(*joined.changed)

    async def decide_join(self, group_id: str, actor_id: str, user_id: str, accept: bool) -> GroupChange:
        limit = self._max_members
        return await self._change(group_id, actor_id, lambda change: groups.decide_join(change, user_id, accept, limit))

    async def invite(self, group_id: str, actor_id: str, user_ids: list[str]) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.invite(change, user_ids, self._max_members))

    async def leave(self, group_id: str, user_id: str) -> GroupChange:
        return await self._change(group_id, user_id, groups.leave)

    async def remove(self, group_id: str, actor_id: str, user_id: str) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.remove(change, user_id))

    async def transfer(self, group_id: str, actor_id: str, user_id: str) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.transfer(change, user_id))

    async def set_role(self, group_id: str, actor_id: str, user_id: str, role: Role) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.set_role(change, user_id, role))

    async def mute(self, group_id: str, actor_id: str, user_id: str | None, duration_s: int) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.mute(change, user_id, duration_s))

    async def update(self, group_id: str, actor_id: str, changes: dict[str, Any], shown: dict[str, Any]) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.update(change, changes, shown))

    async def set_own_member(self, group_id: str, user_id: str, changes: dict[str, str | None]) -> GroupMember:
        change = self._begin(group_id, user_id)
        done = await self._database.change_and_publish(
            lambda: own_membership.set_own(change, changes), lambda done: self._publish(done.changed)
        )
        return done.member

    async def dismiss(self, group_id: str, actor_id: str, *, delete: bool) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.dismiss(change, delete=delete))

    async def view(self, group_id: str, user_id: str) -> tuple[Group, MemberStatus | None]:
        return await self._database.look(lambda: group_reading.view_group(group_id, user_id))

    async def info(self, group_id: str) -> Group:
        return await self._database.look(lambda: group_reading.read_group(group_id))

    async def groups_of(self, user_id: str) -> list[Group]:
        return await self._database.look(lambda: group_reading.groups_of(user_id))

    async def members(
        self, group_id: str, user_id: str, cursor: str | None, limit: int | None
    ) -> tuple[list[GroupMember], str, bool]:
        after = read_user_cursor(cursor)
        count = clamp_limit(limit)
        found, has_more = await self._database.look(lambda: group_reading.read_members(group_id, user_id, after, count))
        return found, encode_cursor(found[-1].user_id) if has_more else "", has_more

    async def join_requests(self, group_id: str, user_id: str) -> list[JoinRequest]:
        return await self._database.look(lambda: group_reading.read_join_requests(group_id, user_id))

    async def audience(self, conversation_id: str) -> Audience:
        return await self._database.look(lambda: group_reading.audience(conversation_id))
