"""A user's conversations: the list, SYNC, reading them, settings, recalling and deleting.

Users take turns at reading: a user that reads much delays another user by one read at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from nexo.core.content import check_draft, check_expires, encode_extra
from nexo.core.model import ConversationEntry, DraftText, Head, Kind, Message, OfflinePage, Page
from nexo.errors import NexoError
from nexo.ids import group_of, parse_server_msg_id, peers_of
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports import (
    ConversationStore,
    DeletedSince,
    Deletion,
    GroupChange,
    MemberSettings,
    MessageStore,
    RecallResult,
)
from nexo.service.fair_turns import FairTurns
from nexo.service.groups import Groups

RECV_MSG_OPTIONS = (0, 1, 2)
SEQS_MAX = 200
DELETED_AT_ONCE = 1000
TIME_MAX_MS = 10**15
NAMES_MAX = 1000
HISTORY_WAITING_MAX = 4_096
HEADS_WAITING_MAX = 20_000  # all clients of an instance may sign in again at once


class Conversations:
    def __init__(
        self, messages: MessageStore, conversations: ConversationStore, groups: Groups, reads_at_once: int = 8
    ) -> None:
        """`reads_at_once` is how many reads of each kind the database is given at a time."""
        self._messages = messages
        self._conversations = conversations
        self._groups = groups
        # Of two kinds, so that signing in does not wait for pages of history.
        self._history = FairTurns(reads_at_once, HISTORY_WAITING_MAX, "Too many requests wait for messages")
        self._heads = FairTurns(reads_at_once, HEADS_WAITING_MAX, "Too many requests wait for heads")

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(self._history.waiting, "history")
        yield f.QUEUE_LIMIT(HISTORY_WAITING_MAX, "history")
        yield f.QUEUE(self._heads.waiting, "heads")
        yield f.QUEUE_LIMIT(HEADS_WAITING_MAX, "heads")

    async def entries(
        self, user_id: str, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[ConversationEntry], str, bool]:
        async with self._history.turn(user_id):
            return await self._conversations.entries(user_id, cursor, limit)

    async def sync(
        self, user_id: str, cursor: str | None = None, limit: int | None = None
    ) -> tuple[list[Head], str, bool]:
        async with self._heads.turn(user_id):
            return await self._conversations.sync(user_id, cursor, limit)

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None = None) -> list[Head]:
        if conversation_ids is not None and len(conversation_ids) > NAMES_MAX:
            raise NexoError("bad_conversation_id", f"At most {NAMES_MAX} conversations can be asked for at once")
        if conversation_ids is not None:
            conversation_ids = [name for name in conversation_ids if peers_of(name) or group_of(name)]
        async with self._heads.turn(user_id):
            return await self._conversations.heads(user_id, conversation_ids)

    async def pull(
        self,
        user_id: str,
        conversation_id: str,
        begin_seq: int = 1,
        end_seq: int | None = None,
        limit: int | None = None,
    ) -> Page:
        async with self._history.turn(user_id):
            return await self._messages.pull(user_id, conversation_id, begin_seq, end_seq, limit)

    async def pull_since(self, user_id: str, conversation_id: str, since_seq: int, limit: int | None = None) -> Page:
        async with self._history.turn(user_id):
            return await self._messages.pull(user_id, conversation_id, since_seq + 1, None, limit)

    async def pull_seqs(self, user_id: str, conversation_id: str, seqs: Sequence[int]) -> Page:
        if len(seqs) > SEQS_MAX:
            raise NexoError("bad_seq", f"At most {SEQS_MAX} messages can be asked for at once")
        async with self._history.turn(user_id):
            return await self._messages.pull_seqs(user_id, conversation_id, seqs)

    async def history(
        self, user_id: str, conversation_id: str, before_seq: int | None = None, limit: int | None = None
    ) -> Page:
        async with self._history.turn(user_id):
            return await self._messages.history(user_id, conversation_id, before_seq, limit)

    async def history_before(
        self, user_id: str, conversation_id: str, before_msg_id: str | int, limit: int | None = None
    ) -> Page:
        """As `history`, below a message. A message of another conversation, or one that the user may not see, is
        unknown."""
        seq = await self._messages.seq_of(user_id, conversation_id, parse_server_msg_id(before_msg_id))
        async with self._history.turn(user_id):
            return await self._messages.history(user_id, conversation_id, seq, limit)

    async def last_messages(self, user_id: str, conversation_ids: Sequence[str]) -> tuple[list[Message], bool]:
        """The last message of each; whether some did not fit into a reply."""
        if len(conversation_ids) > SEQS_MAX:
            raise NexoError("bad_conversation_id", f"At most {SEQS_MAX} messages can be asked for at once")
        known = [name for name in conversation_ids if peers_of(name) or group_of(name)]
        async with self._history.turn(user_id):
            return await self._messages.last_messages(user_id, known)

    async def offline(
        self,
        user_id: str,
        cursor: str | None = None,
        limit: int | None = None,
        baselines: Mapping[str, int] | None = None,
    ) -> OfflinePage:
        async with self._history.turn(user_id):
            return await self._messages.offline(user_id, cursor, limit, baselines or {})

    async def resend(
        self, user_id: str, limit: int = 200, baselines: Mapping[str, int] | None = None
    ) -> tuple[list[Message], bool]:
        """Undelivered messages: at most `limit` from single chats and as many from groups."""
        found: list[Message] = []
        has_more = False
        for kind in Kind:
            async with self._history.turn(user_id):
                messages, more = await self._messages.resend(user_id, kind, limit, baselines or {})
            found += messages
            has_more = has_more or more
        return found, has_more

    async def silenced(self, user_id: str) -> set[str]:
        async with self._heads.turn(user_id):
            return await self._conversations.silenced(user_id)

    async def change_settings(
        self,
        user_id: str,
        conversation_id: str,
        *,
        pinned: bool | None = None,
        recv_msg_opt: int | None = None,
        hidden: bool | None = None,
        archived: bool | None = None,
        silent_until: int | None = None,
        marked_unread: bool | None = None,
        message_ttl_s: int | None = None,
        draft: DraftText | UnsetType | None = UNSET,
        extra: Any = UNSET,
    ) -> ConversationEntry:
        """Returns the conversation after the change. `message_ttl_s` is for all members; the rest is the user's own.
        None leaves a setting as it is; draft and extra are removed by it."""
        if recv_msg_opt is not None and recv_msg_opt not in RECV_MSG_OPTIONS:
            raise NexoError("bad_recv_msg_opt", "recv_msg_opt is 0, 1 or 2")
        if silent_until is not None and not 0 <= silent_until < TIME_MAX_MS:
            raise NexoError("bad_time", "silent_until is a time in milliseconds; 0 for none")
        own = MemberSettings(pinned, recv_msg_opt, hidden, archived, silent_until, marked_unread)
        if isinstance(draft, DraftText):
            own = own._replace(draft=_encode_draft(draft))
        elif draft is None:
            own = own._replace(draft=None)
        if extra is not UNSET:
            own = own._replace(extra=encode_extra(extra))
        if message_ttl_s is not None:
            ttl_s = check_expires(message_ttl_s, "ttl") if message_ttl_s else 0
            await self._conversations.set_message_ttl(user_id, conversation_id, ttl_s)
        return await self._conversations.change_settings(user_id, conversation_id, own)

    async def delete_messages(
        self, user_id: str, server_msg_ids: Sequence[str | int], origin: object | None = None
    ) -> list[Deletion]:
        """Hide messages from this user; `origin` is the connection that asks."""
        if not server_msg_ids:
            raise NexoError("missing_server_msg_ids", "Name at least one message")
        if len(server_msg_ids) > DELETED_AT_ONCE:
            raise NexoError("bad_server_msg_ids", f"At most {DELETED_AT_ONCE} messages can be deleted at once")
        ids = [parse_server_msg_id(one, "server_msg_ids") for one in server_msg_ids]
        return await self._conversations.delete_messages(user_id, ids, origin)

    async def clear(self, user_id: str, conversation_id: str) -> Deletion:
        return await self._conversations.clear(user_id, conversation_id)

    async def deleted_since(
        self, user_id: str, conversation_id: str, after: int = 0, limit: int | None = None
    ) -> DeletedSince:
        async with self._history.turn(user_id):
            return await self._conversations.deleted_since(user_id, conversation_id, after, limit)

    async def seq_at(self, user_id: str, conversation_id: str, time_ms: int) -> int | None:
        if not 0 <= time_ms < TIME_MAX_MS:
            raise NexoError("bad_time", "time is in milliseconds since 1970")
        async with self._history.turn(user_id):
            return await self._conversations.seq_at(user_id, conversation_id, time_ms)

    async def recall(self, user_id: str, server_msg_id: str | int) -> RecallResult:
        return await self._messages.recall(user_id, parse_server_msg_id(server_msg_id))

    async def delete(self, user_id: str, conversation_id: str) -> GroupChange:
        """A group's conversation, by its owner: dismissed, and gone from every list."""
        if peers_of(conversation_id) is not None:
            raise NexoError("conversation_private_cannot_delete")
        group_id = group_of(conversation_id)
        if group_id is None:
            raise NexoError("bad_conversation_id", "A conversation_id is si_{user}:{user} or sg_{group}")
        return await self._groups.dismiss(user_id, group_id, delete=True)


def _encode_draft(draft: DraftText) -> str:
    reply_to = None
    if draft.reply_to is not None:
        try:
            reply_to = str(parse_server_msg_id(draft.reply_to))
        except NexoError as error:
            raise NexoError("bad_draft", error.detail) from None
    return check_draft(draft.text, reply_to)
