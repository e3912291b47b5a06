"""Requests that are answered with something from the database: what each command does and is answered with.

Not here: sending and acknowledging (the hot ways, `connection.py`), signing in, and what needs the connection
itself.
"""

from __future__ import annotations

from nexo.core import commands, events
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.ports import Publisher
from nexo.service.conversations import Conversations
from nexo.service.receipts import Acknowledging


class Performing:
    def __init__(self, acknowledging: Acknowledging, conversations: Conversations, publisher: Publisher) -> None:
        self._acknowledging = acknowledging
        self._conversations = conversations
        self._publisher = publisher

    async def perform(self, session: Session, command: commands.Command) -> events.Event:
        user_id = session.user_id
        match command:
            case commands.Pull(conversation_id, begin_seq, end_seq, limit):
                page = await self._conversations.pull(user_id, conversation_id, begin_seq, end_seq, limit)
                return events.Pulled(conversation_id, page)
            case commands.Sync(cursor, limit, None):
                heads, next_cursor, has_more = await self._conversations.sync(user_id, cursor, limit)
                return events.Synced(heads, has_more, next_cursor)
            case commands.Sync(_, _, conversation_ids):
                return events.Synced(await self._conversations.heads(user_id, conversation_ids))
            case commands.Recall(server_msg_id):
                recall = await self._conversations.recall(user_id, server_msg_id)
                self._publisher.recalled(recall)
                return events.Recalled(recall.server_msg_id, recall.conversation_id, recall.seq)
            case commands.MarkRead(conversation_id, seq, last_msg_id):
                read_seq, unread = await self._acknowledging.mark_read(
                    user_id, conversation_id, seq=seq, last_msg_id=last_msg_id
                )
                return events.MarkedRead(conversation_id, read_seq, unread)
        raise NexoError("not_implemented")
