"""What users do that others learn of: it is done, and once it is committed those connected are told.

Every way in (the HTTP API, each dialect) goes through here, so none of them can forget somebody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexo.core.model import Group
from nexo.ports import GroupChange, Publisher, Recall
from nexo.service.conversations import Conversations
from nexo.service.groups import Groups
from nexo.service.limits import Limits
from nexo.service.receipts import Acknowledging


class Telling:
    def __init__(
        self,
        groups: Groups,
        conversations: Conversations,
        acknowledging: Acknowledging,
        limits: Limits,
        publisher: Publisher,
    ) -> None:
        self._groups = groups
        self._conversations = conversations
        self._acknowledging = acknowledging
        self._limits = limits
        self._publisher = publisher

    # -- messages and conversations ------------------------------------------------------------------

    async def recall(self, user_id: str, server_msg_id: str | int) -> Recall:
        recall = await self._conversations.recall(user_id, server_msg_id)
        if recall.event is not None:
            self._publisher.recalled(recall)
        return recall

    async def mark_read(
        self, user_id: str, conversation_id: str, *, seq: int | None = None, last_msg_id: str | int | None = None
    ) -> tuple[int, int]:
        read_seq, unread = await self._acknowledging.mark_read(
            user_id, conversation_id, seq=seq, last_msg_id=last_msg_id
        )
        self._publisher.conversation_read(user_id, conversation_id, read_seq, unread)
        return read_seq, unread

    async def delete_conversation(self, user_id: str, conversation_id: str) -> None:
        self._tell(await self._conversations.delete(user_id, conversation_id))

    # -- groups --------------------------------------------------------------------------------------

    async def create_group(
        self,
        user_id: str,
        *,
        name: str,
        member_ids: Sequence[str],
        avatar: str = "",
        introduction: str = "",
        join_policy: str = "open",
        extra: Any = None,
    ) -> Group:
        await self._limits.create_group(user_id)
        group, event = await self._groups.create(
            user_id,
            name=name,
            member_ids=list(member_ids),
            avatar=avatar,
            introduction=introduction,
            join_policy=join_policy,
            extra=extra,
        )
        founders = list(dict.fromkeys((user_id, *member_ids)))
        # epoch 0: a member list of any age will do, since there was none before
        self._tell(GroupChange(event, founders, [], 0))
        return group

    async def join_group(self, user_id: str, group_id: str, message: str = "") -> str:
        """`joined` or `pending`."""
        status, change = await self._groups.join(user_id, group_id, message)
        self._tell(change)
        return status

    async def decide_join(self, actor_id: str, group_id: str, user_id: str, accept: bool) -> None:
        self._tell(await self._groups.decide_join(actor_id, group_id, user_id, accept))

    async def leave_group(self, user_id: str, group_id: str) -> None:
        self._tell(await self._groups.leave(user_id, group_id))

    async def dismiss_group(self, actor_id: str, group_id: str) -> None:
        self._tell(await self._groups.dismiss(actor_id, group_id))

    async def invite(self, actor_id: str, group_id: str, user_ids: Sequence[str]) -> GroupChange:
        change = await self._groups.invite(actor_id, group_id, list(user_ids))
        self._tell(change)
        return change

    async def remove_member(self, actor_id: str, group_id: str, user_id: str) -> GroupChange:
        change = await self._groups.remove(actor_id, group_id, user_id)
        self._tell(change)
        return change

    async def transfer_owner(self, actor_id: str, group_id: str, user_id: str) -> None:
        self._tell(await self._groups.transfer(actor_id, group_id, user_id))

    async def set_member_role(self, actor_id: str, group_id: str, user_id: str, role: str) -> None:
        self._tell(await self._groups.set_role(actor_id, group_id, user_id, role))

    async def mute(self, actor_id: str, group_id: str, user_id: str | None, duration_s: int) -> None:
        self._tell(await self._groups.mute(actor_id, group_id, user_id, duration_s))

    async def update_group(self, actor_id: str, group_id: str, **changes: str | None) -> Group:
        group, change = await self._groups.update(actor_id, group_id, **changes)
        if change is not None:
            self._tell(change)
        return group

    def _tell(self, change: GroupChange) -> None:
        if change.event is not None:
            self._publisher.group_changed(change)
