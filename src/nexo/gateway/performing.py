"""Requests that are answered with something from the database: what each command does and is answered with.

Not here: sending and acknowledging (the hot ways, `connection.py`), signing in, and what needs the connection
itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import structs

from nexo.core import commands, events
from nexo.core.model import Message
from nexo.errors import NexoError
from nexo.service.accounts import Accounts
from nexo.service.conversations import Conversations
from nexo.service.groups import Groups
from nexo.service.limits import Limits
from nexo.service.telling import Telling

BASELINES_MAX = 2000

Handler = Callable[[str, Any], Awaitable[events.Event]]


class Performing:
    def __init__(
        self,
        accounts: Accounts,
        conversations: Conversations,
        groups: Groups,
        telling: Telling,
        limits: Limits,
        given: Callable[[Sequence[Message]], None],
    ) -> None:
        """`given` learns of messages that somebody asked for, before they are on their way."""
        self._accounts = accounts
        self._conversations = conversations
        self._groups = groups
        self._telling = telling
        self._limits = limits
        self._given = given
        self._handlers: dict[type, Handler] = {
            commands.Pull: self._pull,
            commands.PullSeqs: self._pull_seqs,
            commands.History: self._history,
            commands.PullOffline: self._pull_offline,
            commands.LastMessages: self._last_messages,
            commands.Recall: self._recall,
            commands.MarkRead: self._mark_read,
            commands.Sync: self._sync,
            commands.Heads: self._heads,
            commands.ListConversations: self._list_conversations,
            commands.DeleteConversation: self._delete_conversation,
            commands.CreateGroup: self._create_group,
            commands.JoinGroup: self._join_group,
            commands.LeaveGroup: self._leave_group,
            commands.DismissGroup: self._dismiss_group,
            commands.InviteMembers: self._invite,
            commands.RemoveMember: self._remove_member,
            commands.TransferOwner: self._transfer_owner,
            commands.SetMemberRole: self._set_member_role,
            commands.UpdateGroup: self._update_group,
            commands.GetGroup: self._get_group,
            commands.ListMembers: self._list_members,
            commands.ListGroups: self._list_groups,
        }

    async def perform(self, user_id: str, command: commands.Command) -> events.Event:
        handler = self._handlers.get(type(command))
        if handler is None:
            raise NexoError("not_implemented")
        return await handler(user_id, command)

    async def perform_for_all(
        self, address: str, command: commands.Register | commands.RefreshToken
    ) -> events.Registered | events.TokensIssued:
        """What nobody has to be signed in for."""
        if isinstance(command, commands.RefreshToken):
            tokens = await self._accounts.refresh(command.refresh_token)
            return events.TokensIssued(*structs.astuple(tokens))
        await self._limits.register(address)
        return events.Registered(
            await self._accounts.register(
                command.password, command.user_id, command.nickname, command.avatar, command.extra
            )
        )

    # -- messages ------------------------------------------------------------------------------------

    async def _pull(self, user_id: str, command: commands.Pull) -> events.Event:
        name = command.conversation_id
        page = await self._conversations.pull(user_id, name, command.begin_seq, command.end_seq, command.limit)
        self._given(page.messages)
        return events.Pulled(name, page, user_id)

    async def _pull_seqs(self, user_id: str, command: commands.PullSeqs) -> events.Event:
        name = command.conversation_id
        page = await self._conversations.pull_seqs(user_id, name, command.seqs)
        self._given(page.messages)
        return events.Pulled(name, page, user_id)

    async def _history(self, user_id: str, command: commands.History) -> events.Event:
        name, before = command.conversation_id, command.before_msg_id
        if before is None:
            page = await self._conversations.history(user_id, name, None, command.limit)
        else:
            page = await self._conversations.history_before(user_id, name, before, command.limit)
        return events.Pulled(name, page, user_id)

    async def _pull_offline(self, user_id: str, command: commands.PullOffline) -> events.Event:
        if len(command.baselines) > BASELINES_MAX:
            raise NexoError("bad_baselines", f"At most {BASELINES_MAX} conversations can be named")
        page = await self._conversations.offline(user_id, command.cursor, command.limit, command.baselines)
        return events.OfflinePulled(page)

    async def _last_messages(self, user_id: str, command: commands.LastMessages) -> events.Event:
        return events.LastMessages(*await self._conversations.last_messages(user_id, command.conversation_ids))

    async def _recall(self, user_id: str, command: commands.Recall) -> events.Event:
        recall = await self._telling.recall(user_id, command.server_msg_id)
        return events.Recalled(recall.server_msg_id, recall.conversation_id, recall.seq)

    async def _mark_read(self, user_id: str, command: commands.MarkRead) -> events.Event:
        name = command.conversation_id
        place = await self._telling.mark_read(user_id, name, seq=command.seq, last_msg_id=command.last_msg_id)
        return events.MarkedRead(name, *place)

    # -- conversations -------------------------------------------------------------------------------

    async def _sync(self, user_id: str, command: commands.Sync) -> events.Event:
        if command.conversation_ids is not None:
            return events.Synced(await self._conversations.heads(user_id, command.conversation_ids))
        heads, next_cursor, has_more = await self._conversations.sync(user_id, command.cursor, command.limit)
        return events.Synced(heads, has_more, next_cursor)

    async def _heads(self, user_id: str, command: commands.Heads) -> events.Event:
        return events.Synced(await self._conversations.heads(user_id, command.conversation_ids))

    async def _list_conversations(self, user_id: str, command: commands.ListConversations) -> events.Event:
        return events.ConversationsListed(*await self._conversations.entries(user_id, command.cursor, command.limit))

    async def _delete_conversation(self, user_id: str, command: commands.DeleteConversation) -> events.Event:
        await self._telling.delete_conversation(user_id, command.conversation_id)
        return events.Done()

    # -- groups --------------------------------------------------------------------------------------

    async def _create_group(self, user_id: str, command: commands.CreateGroup) -> events.Event:
        return events.GroupShown(await self._telling.create_group(user_id, **structs.asdict(command)))

    async def _join_group(self, user_id: str, command: commands.JoinGroup) -> events.Event:
        return events.Joined(await self._telling.join_group(user_id, command.group_id, command.message))

    async def _leave_group(self, user_id: str, command: commands.LeaveGroup) -> events.Event:
        await self._telling.leave_group(user_id, command.group_id)
        return events.Done()

    async def _dismiss_group(self, user_id: str, command: commands.DismissGroup) -> events.Event:
        await self._telling.dismiss_group(user_id, command.group_id)
        return events.Done()

    async def _invite(self, user_id: str, command: commands.InviteMembers) -> events.Event:
        change = await self._telling.invite(user_id, command.group_id, command.user_ids)
        return events.Invited(change.added, change.skipped)

    async def _remove_member(self, user_id: str, command: commands.RemoveMember) -> events.Event:
        await self._telling.remove_member(user_id, command.group_id, command.user_id)
        return events.Done()

    async def _transfer_owner(self, user_id: str, command: commands.TransferOwner) -> events.Event:
        await self._telling.transfer_owner(user_id, command.group_id, command.user_id)
        return events.Done()

    async def _set_member_role(self, user_id: str, command: commands.SetMemberRole) -> events.Event:
        await self._telling.set_member_role(user_id, command.group_id, command.user_id, command.role)
        return events.Done()

    async def _update_group(self, user_id: str, command: commands.UpdateGroup) -> events.Event:
        return events.GroupShown(await self._telling.update_group(user_id, **structs.asdict(command)))

    async def _get_group(self, user_id: str, command: commands.GetGroup) -> events.Event:
        return events.GroupShown(await self._groups.info(command.group_id))

    async def _list_members(self, user_id: str, command: commands.ListMembers) -> events.Event:
        found = await self._groups.members(user_id, command.group_id, command.cursor, command.limit)
        return events.MembersListed(*found)

    async def _list_groups(self, user_id: str, command: commands.ListGroups) -> events.Event:
        return events.GroupsListed(await self._groups.mine(user_id))
