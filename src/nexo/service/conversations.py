"""A user's conversations: the list, SYNC, reading them, settings, recalling and deleting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nexo.core.model import ConversationEntry, Head, Kind, Message, OfflinePage, Page
from nexo.errors import NexoError
from nexo.ids import group_of, parse_server_msg_id, peers_of
from nexo.ports import ConversationStore, GroupChange, MessageStore, Recall, Settings
from nexo.service.groups import Groups

RECV_MSG_OPTIONS = (0, 1, 2)
SEQS_MAX = 200
NAMES_MAX = 1000


class Conversations:
    def __init__(self, messages: MessageStore, conversations: ConversationStore, groups: Groups) -> None:
        self._messages = messages
        self._conversations = conversations
        self._groups = groups

    async def entries(
        self, user_id: str, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[ConversationEntry], str, bool]:
        return await self._conversations.entries(user_id, cursor, limit)

    async def sync(
        self, user_id: str, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[Head], str, bool]:
        return await self._conversations.sync(user_id, cursor, limit)

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None = None) -> list[Head]:
        if conversation_ids is not None and len(conversation_ids) > NAMES_MAX:
            raise NexoError("bad_conversation_id", f"At most {NAMES_MAX} conversations can be asked for at once")
        if conversation_ids is not None:
            conversation_ids = [name for name in conversation_ids if peers_of(name) or group_of(name)]
        return await self._conversations.heads(user_id, conversation_ids)

    async def pull(
        self,
        user_id: str,
        conversation_id: str,
        begin_seq: int = 1,
        end_seq: int | None = None,
        limit: int | None = None,
    ) -> Page:
        return await self._messages.pull(user_id, conversation_id, begin_seq, end_seq, limit)

    async def pull_since(self, user_id: str, conversation_id: str, since_seq: int, limit: int | None = None) -> Page:
        return await self._messages.pull(user_id, conversation_id, since_seq + 1, None, limit)

    async def pull_seqs(self, user_id: str, conversation_id: str, seqs: Sequence[int]) -> Page:
        if len(seqs) > SEQS_MAX:
            raise NexoError("bad_seq", f"At most {SEQS_MAX} messages can be asked for at once")
        return await self._messages.pull_seqs(user_id, conversation_id, seqs)

    async def history(
        self, user_id: str, conversation_id: str, before_seq: int | None = None, limit: int | None = None
    ) -> Page:
        return await self._messages.history(user_id, conversation_id, before_seq, limit)

    async def history_before(
        self, user_id: str, conversation_id: str, before_msg_id: str | int, limit: int | None = None
    ) -> Page:
        """As `history`, below a message: one of another conversation, or that the user may not see, is unknown."""
        message = await self._messages.find(user_id, parse_server_msg_id(before_msg_id))
        if message.conversation_id != conversation_id:
            raise NexoError("message_not_found")
        return await self._messages.history(user_id, conversation_id, message.seq, limit)

    async def last_messages(self, user_id: str, conversation_ids: Sequence[str]) -> tuple[list[Message], bool]:
        """The last message of each; whether some did not fit into a reply."""
        if len(conversation_ids) > SEQS_MAX:
            raise NexoError("bad_conversation_id", f"At most {SEQS_MAX} messages can be asked for at once")
        known = [name for name in conversation_ids if peers_of(name) or group_of(name)]
        return await self._messages.last_messages(user_id, known)

    async def offline(
        self,
        user_id: str,
        cursor: str | None = None,
        limit: int | None = None,
        baselines: Mapping[str, int] | None = None,
    ) -> OfflinePage:
        return await self._messages.offline(user_id, cursor, limit, baselines or {})

    async def resend(
        self, user_id: str, limit: int = 200, baselines: Mapping[str, int] | None = None
    ) -> tuple[list[Message], bool]:
        """Undelivered messages: at most `limit` from single chats and as many from groups."""
        found: list[Message] = []
        has_more = False
        for kind in Kind:
            messages, more = await self._messages.resend(user_id, kind, limit, baselines or {})
            found += messages
            has_more = has_more or more
        return found, has_more

    async def silenced(self, user_id: str) -> set[str]:
        return await self._conversations.silenced(user_id)

    async def change_settings(
        self,
        user_id: str,
        conversation_id: str,
        *,
        pinned: bool | None = None,
        recv_msg_opt: int | None = None,
        hidden: bool | None = None,
    ) -> ConversationEntry:
        if recv_msg_opt is not None and recv_msg_opt not in RECV_MSG_OPTIONS:
            raise NexoError("bad_recv_msg_opt", "recv_msg_opt is 0, 1 or 2")
        return await self._conversations.change_settings(
            user_id, conversation_id, Settings(pinned, recv_msg_opt, hidden)
        )

    async def recall(self, user_id: str, server_msg_id: str | int) -> Recall:
        return await self._messages.recall(user_id, parse_server_msg_id(server_msg_id))

    async def delete(self, user_id: str, conversation_id: str) -> GroupChange:
        """A group's conversation, by its owner: dismissed, and gone from every list."""
        if peers_of(conversation_id) is not None:
            raise NexoError("conversation_private_cannot_delete")
        group_id = group_of(conversation_id)
        if group_id is None:
            raise NexoError("bad_conversation_id", "A conversation_id is si_{user}:{user} or sg_{group}")
        return await self._groups.dismiss(user_id, group_id, delete=True)
