"""Handlers of the commands that need the database; each returns the event that answers the command.

In other modules: sending (`sends.py`), acknowledging (`delivery/receipts.py`) and signing in (`sign_in.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import structs

from nexo.core import commands, events
from nexo.core.model import Group, Kind
from nexo.delivery.delivery import Delivery
from nexo.delivery.hub import PRESENCE_MAX
from nexo.errors import NexoError
from nexo.gateway.call_handlers import CallHandlers as CallHandlers
from nexo.gateway.connection import Connection
from nexo.gateway.openim_side import OpenimSide as OpenimSide
from nexo.gateway.session_ends import SessionEnds
from nexo.gateway.sign_in import BASELINES_MAX, SignIn
from nexo.ids import check_user_id, group_conversation_id, is_conversation_id, is_group_id, single_conversation_id
from nexo.service.actions import Actions

Handler = Callable[[str, Any], Awaitable[events.Event]]

_DONE = events.Done()


class CommandHandlers:
    def __init__(
        self,
        actions: Actions,
        delivery: Delivery,
        sign_in: SignIn,
        sessions: SessionEnds,
        calls: CallHandlers,
        openim: OpenimSide | None = None,
    ) -> None:
        self._openim = openim
        self._actions = actions
        self._accounts = actions.accounts
        self._conversations = actions.conversations
        self._groups = actions.groups
        self._delivery = delivery
        self._sign_in = sign_in
        self._sessions = sessions
        self._calls = calls
        self._given = delivery.receipts.given
        self._handlers: dict[type, Handler] = {
            commands.Pull: self._pull,
            commands.PullSeqs: self._pull_seqs,
            commands.History: self._history,
            commands.PullOffline: self._pull_offline,
            commands.LastMessages: self._last_messages,
            commands.Recall: self._recall,
            commands.Edit: self._edit,
            commands.React: self._react,
            commands.Pin: self._pin,
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
            commands.RequestContact: self._request_contact,
            commands.DecideContact: self._decide_contact,
            commands.RemoveContact: self._remove_contact,
            commands.RemarkContact: self._remark_contact,
            commands.ListContacts: self._list_contacts,
            commands.ListContactRequests: self._list_contact_requests,
        }

    async def perform(self, connection: Connection, command: commands.Command, ref: Any) -> None:
        """Run the command and write its answer."""
        match command:
            case commands.Resend():
                await self._sign_in.resend(connection, command.baselines)
            case commands.SubscribePresence():
                await self._subscribe(connection, command, ref)
            case commands.DeleteForMe():
                await self._delete_for_me(connection, command, ref)
            case commands.Logout():
                await self._log_out(connection, ref)
            case commands.Numbers() | commands.PullNumbers():
                await self._by_number(connection, command, ref)
            case commands.Pass():
                connection.reply(_DONE, ref)
                if command.closes:
                    connection.flush()
                    connection.socket.close(1000)
            case commands.Register() | commands.RefreshToken():
                connection.reply(await self._before_sign_in(connection.remote, command), ref)
            case _ if isinstance(command, commands.CALL_COMMANDS):
                await self._calls.perform(connection, command, ref)
            case _:
                if isinstance(command, commands.MarkRead) and is_conversation_id(command.conversation_id):
                    self._delivery.receipts.note_reader(connection, command.conversation_id)
                connection.reply(await self.answer(connection.session.user_id, command), ref)

    async def _by_number(
        self, connection: Connection, command: commands.Numbers | commands.PullNumbers, ref: Any
    ) -> None:
        """Answer a request of an OpenIM client for messages or heads by number."""
        if self._openim is None:
            raise NexoError("not_implemented")
        user_id = connection.session.user_id
        if isinstance(command, commands.Numbers):
            answer: events.Event = events.NumbersListed(await self._openim.heads(user_id, command.conversation_ids))
        else:
            base_url: str = getattr(connection.dialect, "base_url", "")
            parts = await self._openim.pull(user_id, command.spans, base_url)
            for _, part in parts:
                self._given(one.message for one in part.messages)
            answer = events.NumbersPulled(parts)
        connection.reply(answer, ref)

    async def answer(self, user_id: str, command: commands.Command) -> events.Event:
        """Returns the answer to a command of this user."""
        handler = self._handlers.get(type(command))
        if handler is None:
            raise NexoError("not_implemented")
        return await handler(user_id, command)

    # -- the connection itself -------------------------------------------------------------------------

    async def _before_sign_in(
        self, address: str, command: commands.Register | commands.RefreshToken
    ) -> events.Registered | events.TokensIssued:
        """Returns the answer to a command that needs no session."""
        self._actions.limits.request_from(address)
        if isinstance(command, commands.RefreshToken):
            await self._actions.limits.refresh(command.refresh_token)
            tokens = await self._accounts.refresh(command.refresh_token)
            return events.TokensIssued(*structs.astuple(tokens))
        await self._actions.limits.register(address)
        return events.Registered(
            await self._accounts.sign_up(
                command.password,
                command.user_id,
                command.nickname,
                command.avatar,
                command.extra,
                code=command.code,
                address=address,
            )
        )

    async def _log_out(self, connection: Connection, ref: Any) -> None:
        with self._sessions.leaving(connection):
            await self._accounts.logout(connection.session)
            connection.reply(_DONE, ref)
            connection.drop("session_invalid")

    async def _subscribe(self, connection: Connection, command: commands.SubscribePresence, ref: Any) -> None:
        if len(command.user_ids) > PRESENCE_MAX:
            raise NexoError("bad_user_id", f"At most {PRESENCE_MAX} users can be watched")
        for user_id in command.user_ids:
            check_user_id(user_id)
        self._actions.limits.subscribe_presence(connection.session.user_id)
        subscribe = self._delivery.presence.subscribe
        connection.reply(events.Presence(await subscribe(connection, command.user_ids, self._known_users)), ref)

    async def _known_users(self, user_ids: list[str]) -> set[str]:
        return {user.user_id for user in await self._accounts.users(user_ids)}

    def typing(self, connection: Connection, command: commands.Typing) -> None:
        """Push that the user types. Raises NexoError for a receiver or group that cannot exist."""
        user_id = connection.session.user_id
        if command.group_id is not None:
            if not is_group_id(command.group_id):
                raise NexoError("group_not_found")
            conversation_id = group_conversation_id(command.group_id)
            self._delivery.typing.push(user_id, conversation_id, Kind.GROUP, command.on)
        elif command.recv_id is not None:
            check_user_id(command.recv_id, "receiver")
            if command.recv_id != user_id:
                conversation_id = single_conversation_id(user_id, command.recv_id)
                self._delivery.typing.push(user_id, conversation_id, Kind.SINGLE, command.on)

    # -- messages ------------------------------------------------------------------------------------

    async def _pull(self, user_id: str, command: commands.Pull) -> events.Event:
        conversation_id, begin, end = command.conversation_id, command.begin_seq, command.end_seq
        page = await self._conversations.pull(user_id, conversation_id, begin, end, command.limit)
        self._given(page.messages)
        return events.Pulled(conversation_id, page, user_id)

    async def _pull_seqs(self, user_id: str, command: commands.PullSeqs) -> events.Event:
        conversation_id = command.conversation_id
        page = await self._conversations.pull_seqs(user_id, conversation_id, command.seqs)
        self._given(page.messages)
        return events.Pulled(conversation_id, page, user_id)

    async def _history(self, user_id: str, command: commands.History) -> events.Event:
        conversation_id, before = command.conversation_id, command.before_msg_id
        if before is None:
            page = await self._conversations.history(user_id, conversation_id, None, command.limit)
        else:
            page = await self._conversations.history_before(user_id, conversation_id, before, command.limit)
        return events.Pulled(conversation_id, page, user_id)

    async def _pull_offline(self, user_id: str, command: commands.PullOffline) -> events.Event:
        if len(command.baselines) > BASELINES_MAX:
            raise NexoError("bad_baselines", f"At most {BASELINES_MAX} conversations can be named")
        page = await self._conversations.offline(user_id, command.cursor, command.limit, command.baselines)
        return events.OfflinePulled(page)

    async def _last_messages(self, user_id: str, command: commands.LastMessages) -> events.Event:
        return events.LastMessagesListed(*await self._conversations.last_messages(user_id, command.conversation_ids))

    async def _recall(self, user_id: str, command: commands.Recall) -> events.Event:
        recall = await self._actions.recall(user_id, command.server_msg_id)
        return events.Recalled(recall.server_msg_id, recall.conversation_id, recall.seq)

    async def _delete_for_me(self, connection: Connection, command: commands.DeleteForMe, ref: Any) -> None:
        """Delete messages for the user, whose other connections get an event."""
        await self._actions.delete_messages(connection.session.user_id, command.server_msg_ids, connection)
        connection.reply(_DONE, ref)

    async def _edit(self, user_id: str, command: commands.Edit) -> events.Event:
        edited, is_changed = await self._actions.edit(
            user_id, command.server_msg_id, command.content, command.client_msg_id, command.mentions
        )
        content = edited.content if is_changed else None
        return events.Edited(edited.server_msg_id, edited.conversation_id, edited.seq, edited.edited_at, content)

    async def _react(self, user_id: str, command: commands.React) -> events.Event:
        reacted = await self._actions.react(user_id, command.server_msg_id, command.emoji, command.on)
        return events.Reacted(reacted.server_msg_id, reacted.conversation_id, reacted.reactions)

    async def _pin(self, user_id: str, command: commands.Pin) -> events.Event:
        pinned = await self._actions.pin(user_id, command.server_msg_id, command.on)
        return events.PinChanged(pinned.server_msg_id, pinned.conversation_id, pinned.seq)

    async def _mark_read(self, user_id: str, command: commands.MarkRead) -> events.Event:
        conversation_id, last_msg_id = command.conversation_id, command.last_msg_id
        read_seq, unread = await self._actions.mark_read(
            user_id, conversation_id, seq=command.seq, last_msg_id=last_msg_id
        )
        return events.MarkedRead(conversation_id, read_seq, unread)

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
        await self._actions.delete_conversation(user_id, command.conversation_id)
        return events.Done()

    # -- groups --------------------------------------------------------------------------------------

    async def _create_group(self, user_id: str, command: commands.CreateGroup) -> events.Event:
        return events.GroupShown(await self._actions.create_group(user_id, **structs.asdict(command)))

    async def _join_group(self, user_id: str, command: commands.JoinGroup) -> events.Event:
        if command.code is not None:
            return events.Joined("joined", await self._actions.join_by_link(user_id, command.code))
        return events.Joined(await self._actions.join_group(user_id, command.group_id or "", command.message))

    async def _leave_group(self, user_id: str, command: commands.LeaveGroup) -> events.Event:
        await self._actions.leave_group(user_id, command.group_id)
        return events.Done()

    async def _dismiss_group(self, user_id: str, command: commands.DismissGroup) -> events.Event:
        await self._actions.dismiss_group(user_id, command.group_id)
        return events.Done()

    async def _invite(self, user_id: str, command: commands.InviteMembers) -> events.Event:
        change = await self._actions.invite(user_id, command.group_id, command.user_ids)
        return events.Invited(change.added, change.skipped)

    async def _remove_member(self, user_id: str, command: commands.RemoveMember) -> events.Event:
        await self._actions.remove_member(user_id, command.group_id, command.user_id)
        return events.Done()

    async def _transfer_owner(self, user_id: str, command: commands.TransferOwner) -> events.Event:
        await self._actions.transfer_owner(user_id, command.group_id, command.user_id)
        return events.Done()

    async def _set_member_role(self, user_id: str, command: commands.SetMemberRole) -> events.Event:
        await self._actions.set_member_role(user_id, command.group_id, command.user_id, command.role)
        return events.Done()

    async def _update_group(self, user_id: str, command: commands.UpdateGroup) -> events.Event:
        return events.GroupShown(await self._actions.update_group(user_id, **structs.asdict(command)))

    async def _get_group(self, user_id: str, command: commands.GetGroup) -> events.Event:
        group = await self._groups.view(user_id, command.group_id)
        return events.GroupShown(group) if isinstance(group, Group) else events.GroupGlimpsed(group)

    async def _list_members(self, user_id: str, command: commands.ListMembers) -> events.Event:
        found = await self._groups.members(user_id, command.group_id, command.cursor, command.limit)
        return events.MembersListed(*found)

    async def _list_groups(self, user_id: str, command: commands.ListGroups) -> events.Event:
        return events.GroupsListed(await self._groups.mine(user_id))

    # -- contacts ------------------------------------------------------------------------------------

    async def _request_contact(self, user_id: str, command: commands.RequestContact) -> events.Event:
        done = await self._actions.request_contact(user_id, command.user_id, command.message)
        return events.ContactAsked(done.status, done.request_id)

    async def _decide_contact(self, user_id: str, command: commands.DecideContact) -> events.Event:
        done = await self._actions.decide_contact(user_id, command.user_id, command.accept)
        return events.ContactAsked(done.status, done.request_id)

    async def _remove_contact(self, user_id: str, command: commands.RemoveContact) -> events.Event:
        await self._actions.remove_contact(user_id, command.user_id)
        return events.Done()

    async def _remark_contact(self, user_id: str, command: commands.RemarkContact) -> events.Event:
        contacts = self._actions.people.contacts
        return events.ContactShown(await contacts.set_remark(user_id, command.user_id, command.remark))

    async def _list_contacts(self, user_id: str, command: commands.ListContacts) -> events.Event:
        contacts = self._actions.people.contacts
        return events.ContactsListed(*await contacts.contacts(user_id, command.cursor, command.limit))

    async def _list_contact_requests(self, user_id: str, command: commands.ListContactRequests) -> events.Event:
        contacts = self._actions.people.contacts
        found = await contacts.requests(user_id, command.sent, command.cursor, command.limit)
        return events.ContactRequestsListed(*found)
