"""Everything a user can do: the one way in for the HTTP API and the dialects, sends, blocks and settings included.

An action checks the shape of its request and the limits and hands it to the store. Nothing is published here: what was
committed becomes known by the publish seam of the store (`ports.CommitListener`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexo.core.events import Accepted, Saved
from nexo.core.model import ConversationEntry, Group, GroupMember, Sent
from nexo.core.people import ContactChange, GroupLink
from nexo.ports import Deletion, EditResult, GroupChange, PinResult, ReactResult, RecallResult
from nexo.service.accounts import Accounts
from nexo.service.conversations import Conversations
from nexo.service.forwarding import Forwarded, Forwarding, ForwardTarget
from nexo.service.groups import Groups
from nexo.service.limits import Limits
from nexo.service.message_changes import MessageChanges
from nexo.service.people import People
from nexo.service.receipts import Acknowledging
from nexo.service.send import Sending


class Actions:
    def __init__(
        self,
        accounts: Accounts,
        sending: Sending,
        acknowledging: Acknowledging,
        conversations: Conversations,
        groups: Groups,
        limits: Limits,
        changes: MessageChanges,
        forwarding: Forwarding,
        people: People,
    ) -> None:
        self.accounts = accounts
        self.sending = sending
        self.acknowledging = acknowledging
        self.conversations = conversations
        self.groups = groups
        self.limits = limits
        self.changes = changes
        self.forwarding = forwarding
        self.people = people

    # -- messages and conversations ------------------------------------------------------------------

    async def send(self, user_id: str, **fields: Any) -> Sent | Saved | Accepted:
        """Returns the saved message, or that it was accepted and is not saved yet. Connections send by
        `Sending.submit`, without waiting."""
        self.limits.send(user_id)
        return await self.sending.send_or_accept(user_id, **fields)

    async def recall(self, user_id: str, server_msg_id: str | int) -> RecallResult:
        return await self.conversations.recall(user_id, server_msg_id)

    async def edit(
        self, user_id: str, server_msg_id: str | int, content: Any, client_msg_id: str | None, mentions: Any = None
    ) -> tuple[EditResult, bool]:
        """Returns the result, and whether the stored content differs from the one that was sent."""
        self.limits.send(user_id)
        return await self.changes.edit(user_id, server_msg_id, content, client_msg_id, mentions)

    async def react(self, user_id: str, server_msg_id: str | int, emoji: Any, on: bool) -> ReactResult:
        self.limits.send(user_id)
        return await self.changes.react(user_id, server_msg_id, emoji, on)

    async def pin(self, user_id: str, server_msg_id: str | int, on: bool) -> PinResult:
        self.limits.send(user_id)
        return await self.changes.pin(user_id, server_msg_id, on)

    async def forward(
        self,
        user_id: str,
        client_msg_id: str,
        server_msg_ids: Sequence[str | int],
        targets: Sequence[ForwardTarget],
        *,
        merge: bool = False,
        title: str | None = None,
    ) -> list[Forwarded]:
        plan = self.forwarding.plan(client_msg_id, server_msg_ids, targets, merge=merge, title=title)
        self.limits.send(user_id, plan.copies)
        return await self.forwarding.forward(user_id, plan)

    async def mark_read(
        self, user_id: str, conversation_id: str, *, seq: int | None = None, last_msg_id: str | int | None = None
    ) -> tuple[int, int]:
        """Returns `read_seq` and the number of unread messages, as committed."""
        return await self.acknowledging.mark_read(user_id, conversation_id, seq=seq, last_msg_id=last_msg_id)

    async def change_settings(
        self,
        user_id: str,
        conversation_id: str,
        *,
        pinned: bool | None = None,
        recv_msg_opt: int | None = None,
        hidden: bool | None = None,
        **others: Any,
    ) -> ConversationEntry:
        """Returns the conversation after the change; `others` as of `Conversations.change_settings`."""
        if others.get("message_ttl_s") is not None:
            self.limits.send(user_id)  # it appends an event
        return await self.conversations.change_settings(
            user_id, conversation_id, pinned=pinned, recv_msg_opt=recv_msg_opt, hidden=hidden, **others
        )

    async def delete_messages(
        self, user_id: str, server_msg_ids: Sequence[str | int], origin: object | None = None
    ) -> list[Deletion]:
        """Hide messages from this user on all their devices. Returns what changed, per conversation."""
        return await self.conversations.delete_messages(user_id, server_msg_ids, origin)

    async def clear_conversation(self, user_id: str, conversation_id: str) -> Deletion:
        return await self.conversations.clear(user_id, conversation_id)

    async def delete_conversation(self, user_id: str, conversation_id: str) -> None:
        await self.limits.change_group(user_id)
        await self.conversations.delete(user_id, conversation_id)

    # -- users ---------------------------------------------------------------------------------------

    async def block(self, user_id: str, other_id: str) -> list[str]:
        """Returns all users whom this one blocks now."""
        return await self.accounts.block(user_id, other_id)

    async def unblock(self, user_id: str, other_id: str) -> list[str]:
        return await self.accounts.unblock(user_id, other_id)

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
        group_type: int = 0,
        min_members: int | None = None,
    ) -> Group:
        await self.limits.create_group(user_id)
        return await self.groups.create(
            user_id,
            name=name,
            member_ids=list(member_ids),
            avatar=avatar,
            introduction=introduction,
            join_policy=join_policy,
            extra=extra,
            group_type=group_type,
            min_members=min_members,
        )

    async def join_group(self, user_id: str, group_id: str, message: str = "") -> str:
        """Returns `joined` or `pending`."""
        await self.limits.change_group(user_id)
        status, _ = await self.groups.join(user_id, group_id, message)
        return status

    async def join_by_link(self, user_id: str, code: str) -> str:
        """Returns the group."""
        await self.limits.change_group(user_id)
        return await self.people.links.join(user_id, code)

    async def decide_join(self, actor_id: str, group_id: str, user_id: str, accept: bool) -> None:
        await self.limits.change_group(actor_id)
        await self.groups.decide_join(actor_id, group_id, user_id, accept)

    async def leave_group(self, user_id: str, group_id: str) -> None:
        await self.limits.change_group(user_id)
        await self.groups.leave(user_id, group_id)

    async def dismiss_group(self, actor_id: str, group_id: str) -> None:
        await self.limits.change_group(actor_id)
        await self.groups.dismiss(actor_id, group_id)

    async def invite(self, actor_id: str, group_id: str, user_ids: Sequence[str]) -> GroupChange:
        await self.limits.change_group(actor_id)
        return await self.groups.invite(actor_id, group_id, list(user_ids))

    async def remove_member(self, actor_id: str, group_id: str, user_id: str) -> GroupChange:
        await self.limits.change_group(actor_id)
        return await self.groups.remove(actor_id, group_id, user_id)

    async def transfer_owner(self, actor_id: str, group_id: str, user_id: str) -> None:
        await self.limits.change_group(actor_id)
        await self.groups.transfer(actor_id, group_id, user_id)

    async def set_member_role(self, actor_id: str, group_id: str, user_id: str, role: str) -> None:
        await self.limits.change_group(actor_id)
        await self.groups.set_role(actor_id, group_id, user_id, role)

    async def mute(self, actor_id: str, group_id: str, user_id: str | None, duration_s: int) -> None:
        await self.limits.change_group(actor_id)
        await self.groups.mute(actor_id, group_id, user_id, duration_s)

    async def update_group(self, actor_id: str, group_id: str, **changes: Any) -> Group:
        await self.limits.change_group(actor_id)
        return await self.groups.update(actor_id, group_id, **changes)

    async def add_link(self, actor_id: str, group_id: str, expires_s: int | None, uses: int | None) -> GroupLink:
        await self.limits.change_group(actor_id)
        return await self.people.links.add(actor_id, group_id, expires_s, uses)

    async def revoke_link(self, actor_id: str, code: str) -> None:
        await self.limits.change_group(actor_id)
        await self.people.links.revoke(actor_id, code)

    async def set_own_member(self, user_id: str, group_id: str, **changes: Any) -> GroupMember:
        await self.limits.change_group(user_id)
        return await self.groups.set_own_member(user_id, group_id, **changes)

    # -- people --------------------------------------------------------------------------------------

    async def request_contact(self, user_id: str, other_id: str, message: str = "") -> ContactChange:
        await self.limits.change_contact(user_id)
        return await self.people.contacts.request(user_id, other_id, message)

    async def decide_contact(self, user_id: str, other_id: str, accept: bool) -> ContactChange:
        await self.limits.change_contact(user_id)
        return await self.people.contacts.decide(user_id, other_id, accept)

    async def remove_contact(self, user_id: str, other_id: str) -> None:
        await self.limits.change_contact(user_id)
        await self.people.contacts.remove(user_id, other_id)

    async def report(self, user_id: str, server_msg_id: str, reason: str) -> int:
        """Returns the number of the report."""
        await self.limits.report(user_id)
        return await self.people.reports.add(user_id, server_msg_id, reason)
