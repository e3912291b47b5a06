"""A conversation as the application sees it: a row of the list and the view of its messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import UNSET, UnsetType, to_builtins

from nexo_client.core.conversation_state import ConversationState
from nexo_client.core.ids import group_of, peer_of
from nexo_client.core.message_changes import Edit
from nexo_client.core.options import TYPING_AGAIN_S
from nexo_client.http import NULL
from nexo_client.message_calls import MessageCalls, MessageOrId, id_of
from nexo_client.outgoing_message import OnProgress, OutgoingMessage
from nexo_client.types import (
    Draft,
    EditResult,
    MediaPage,
    Message,
    PinResult,
    Reaction,
    ReactionsPage,
    RecallResult,
    Receipts,
    ReceiptState,
    Upload,
)
from nexo_client.upload_source import describe_file, media_type

PAGE = 50


class Page(NamedTuple):
    messages: list[Message]
    head_seq: int
    next_seq: int
    has_more: bool


class ConversationOwner(Protocol):
    """The client's part that a conversation needs."""

    def _send(self, conversation_id: str, fields: Mapping[str, Any], client_msg_id: str | None) -> OutgoingMessage: ...

    def _send_file(
        self,
        conversation_id: str,
        fields: Mapping[str, Any],
        client_msg_id: str | None,
        upload: Upload,
        content: bytes | None,
    ) -> OutgoingMessage:
        """`content` has the bytes of a file without a path."""

    def _pending_of(self, conversation_id: str) -> list[OutgoingMessage]: ...

    def _mark_read(self, conversation_id: str, seq: int | None) -> None: ...

    def _send_typing(self, target: Mapping[str, str], on: bool) -> None: ...

    def _typists_of(self, conversation_id: str) -> list[str]: ...

    def _touch(self, conversation_id: str) -> None:
        """Notes that it is in use: the messages of unused conversations are dropped first."""

    async def _load_page(self, path: str, conversation_id: str, **params: int | None) -> Page: ...

    @property
    def message_calls(self) -> MessageCalls: ...

    def _apply_edit(self, conversation_id: str, server_msg_id: str, edit: Edit) -> None: ...

    def _apply_reactions(
        self, conversation_id: str, server_msg_id: str, reactions: Sequence[Reaction], emoji: str
    ) -> None: ...

    def _apply_deleted(self, conversation_id: str, server_msg_ids: Sequence[str], up_to_seq: int | None) -> None: ...

    async def _update_conversation(self, conversation_id: str, changes: Mapping[str, Any]) -> None: ...

    def _watch_conversation(self, conversation_id: str, notify: Callable[[], object]) -> Callable[[], None]: ...


class Conversation:
    """Always the same object for the same id. Its properties change while the client is connected."""

    def __init__(self, owner: ConversationOwner, state: ConversationState) -> None:
        self._owner = owner
        self._state = state
        self._typing_at: float | None = None

    def __repr__(self) -> str:
        return f"<Conversation {self.id}>"

    @property
    def id(self) -> str:
        return self._state.conversation_id

    @property
    def type(self) -> Literal["single", "group"]:
        return "single" if self.group_id is None else "group"

    @property
    def peer_id(self) -> str | None:
        """The other user of a single chat."""
        return peer_of(self.id, self._state.user_id)

    @property
    def group_id(self) -> str | None:
        return group_of(self.id)

    @property
    def _target(self) -> dict[str, str]:
        return {"to": self.peer_id or ""} if self.group_id is None else {"groupId": self.group_id}

    # -- the row of the list ---------------------------------------------------------------------------------

    @property
    def head_seq(self) -> int:
        return self._state.head_seq

    @property
    def min_seq(self) -> int:
        return self._state.min_seq

    @property
    def read_seq(self) -> int:
        return self._state.read_seq

    @property
    def delivered_seq(self) -> int:
        return max(self._state.delivered_seq, self._state.acknowledged)

    @property
    def synced_seq(self) -> int:
        """The contiguous point: everything up to it was given to the application."""
        return self._state.synced_seq

    @property
    def unread(self) -> int:
        return self._state.unread

    @property
    def unread_mentions(self) -> int:
        return self._state.unread_mentions

    @property
    def last_message(self) -> Message | None:
        return self._state.last_message

    @property
    def updated_at(self) -> int:
        return self._state.updated_at

    @property
    def pinned(self) -> bool:
        return self._state.settings.pinned

    @property
    def recv_msg_opt(self) -> int:
        return self._state.settings.recv_msg_opt

    @property
    def archived(self) -> bool:
        """Until the next message, unless it is muted."""
        return self._state.settings.archived

    @property
    def silent_until(self) -> int:
        """Until this time as with `recv_msg_opt` 2."""
        return self._state.settings.silent_until

    @property
    def marked_unread(self) -> bool:
        return self._state.settings.marked_unread

    @property
    def draft(self) -> Draft | None:
        return self._state.settings.draft

    @property
    def message_ttl_s(self) -> int:
        """How many seconds later messages are shown, to all members; 0: without end."""
        return self._state.settings.message_ttl_s

    @property
    def extra(self) -> Any:
        """An object of your own."""
        return self._state.settings.extra

    @property
    def peer_read_seq(self) -> int:
        return self._state.peer_read_seq

    @property
    def peer_delivered_seq(self) -> int:
        return self._state.peer_delivered_seq

    @property
    def typists(self) -> list[str]:
        """The users that are typing."""
        return self._owner._typists_of(self.id)

    # -- messages --------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """The messages in memory by seq, without gaps; provisional copies at the end."""
        self._owner._touch(self.id)
        return self._state.messages

    @property
    def pending(self) -> list[OutgoingMessage]:
        """The messages that were sent and are not in `messages` yet, in order."""
        return self._owner._pending_of(self.id)

    @property
    def has_earlier(self) -> bool:
        return self._state.window.has_earlier

    @property
    def has_later(self) -> bool:
        return self._state.window.has_later

    @property
    def keeps_place(self) -> bool:
        """Set it while the user reads older messages: new ones are then left out of full `messages` instead of
        dropping the oldest, and `has_later` becomes true."""
        return self._state.window.keeps_place

    @keeps_place.setter
    def keeps_place(self, on: bool) -> None:
        self._state.window.keeps_place = on

    async def load_earlier(self, limit: int = PAGE) -> int:
        """Loads older messages into `messages`; returns how many were added."""
        self._owner._touch(self.id)
        before_seq = self._state.first_seq
        page = await self._load_history(before_seq, limit)
        return self._state.add_earlier(before_seq, page.messages, page.has_more)

    async def load_later(self, limit: int = PAGE) -> int:
        """Loads newer messages after paging back; returns how many were added."""
        self._owner._touch(self.id)
        if not self.has_later:
            return 0
        after_seq = self._state.last_seq
        page = await self._owner._load_page("/msg/pull", self.id, begin_seq=after_seq + 1, limit=limit)
        return self._state.add_later(after_seq, page.messages, page.next_seq, page.has_more)

    async def load_latest(self, limit: int = PAGE) -> int:
        """Replaces `messages` by the newest ones; returns how many were loaded."""
        self._owner._touch(self.id)
        page = await self._load_history(None, limit)
        return self._state.set_window(page.messages, page.has_more, page.head_seq)

    async def load_around(self, seq: int, limit: int = PAGE) -> int:
        """Replaces `messages` by those around `seq`, as for a quoted message; returns how many were loaded."""
        self._owner._touch(self.id)
        upto = seq + limit // 2
        page = await self._load_history(upto + 1, limit)
        return self._state.set_window(page.messages, page.has_more, upto)

    async def _load_history(self, before_seq: int | None, limit: int) -> Page:
        return await self._owner._load_page("/msg/history", self.id, before_seq=before_seq, limit=limit)

    def state_of(self, message: Message) -> ReceiptState:
        """Returns `saved`, `delivered` or `read` for an own message; in groups for at least one member."""
        return self._state.state_of(message.seq or 0)

    # -- actions ---------------------------------------------------------------------------------------------

    def send(
        self,
        content: Any,
        *,
        msg_type: int = 1,
        mentions: Sequence[str] = (),
        reply_to: str | None = None,
        extra: Mapping[str, Any] | None = None,
        expires_s: int | None = None,
        client_msg_id: str | None = None,
    ) -> OutgoingMessage:
        """Returns at once and never fails because of the network: the message is kept until it is saved. Messages
        with the same `client_msg_id` of one user are stored once. With `expires_s` its content is shown for so many
        seconds."""
        fields = self._fields(content, msg_type, mentions, reply_to, extra, expires_s)
        return self._owner._send(self.id, fields, client_msg_id)

    def send_file(
        self,
        file: str | Path | bytes,
        *,
        name: str = "",
        caption: str = "",
        on_progress: OnProgress | None = None,
        msg_type: int | None = None,
        mentions: Sequence[str] = (),
        reply_to: str | None = None,
        extra: Mapping[str, Any] | None = None,
        expires_s: int | None = None,
        client_msg_id: str | None = None,
    ) -> OutgoingMessage:
        """Uploads a file, given as path or bytes, and then sends its message; returns at once, as `send` does. What is
        sent later does not wait for it. A path must lead to the same file until it is uploaded, also after a restart;
        bytes are kept in the storage. `on_progress` is called with the bytes that the server has, and their number."""
        upload = describe_file(file, name)
        body = {"text": caption} if caption else {}
        kind = media_type(upload.name) if msg_type is None else msg_type
        fields = self._fields(body, kind, mentions, reply_to, extra, expires_s)
        content = file if isinstance(file, bytes) else None
        outgoing = self._owner._send_file(self.id, fields, client_msg_id, upload, content)
        outgoing.on_progress = on_progress
        return outgoing

    def _fields(
        self,
        content: Any,
        msg_type: int,
        mentions: Sequence[str],
        reply_to: str | None,
        extra: Mapping[str, Any] | None,
        expires_s: int | None,
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {**self._target, "body": content}
        if msg_type != 1:
            fields["msgType"] = msg_type
        if mentions:
            fields["mentions"] = list(mentions)
        if reply_to is not None:
            fields["replyToServerMsgId"] = reply_to
        if extra is not None:
            fields["extra"] = dict(extra)
        if expires_s is not None:
            fields["expiresS"] = expires_s
        self._typing_at = None
        return fields

    def send_custom(self, content: Mapping[str, Any], **options: Any) -> OutgoingMessage:
        return self.send(dict(content), msg_type=6, **options)

    def mark_read(self, seq: int | None = None) -> None:
        """Marks everything up to `seq`, or up to the newest given message, as read. Repeated after a reconnect."""
        self._owner._mark_read(self.id, seq)

    def typing(self, on: bool = True) -> None:
        """Call it with each key: the server is informed every few seconds."""
        now = time.monotonic()
        is_sent = self._typing_at is not None and (not on or now < self._typing_at + TYPING_AGAIN_S)
        if on == is_sent:
            return
        self._typing_at = now if on else None
        self._owner._send_typing(self._target, on)

    async def recall(self, server_msg_id: str) -> RecallResult:
        return await self._owner.message_calls.recall(server_msg_id)

    async def edit(
        self,
        message: MessageOrId,
        content: Any,
        *,
        mentions: Sequence[str] | None = None,
        client_msg_id: str | None = None,
    ) -> EditResult:
        """Changes the content of an own message; without `mentions` these stay. Tried until the server has answered,
        after earlier changes of the same message."""
        result = await self._owner.message_calls.edit(message, content, mentions, client_msg_id)
        if result.edited_at is not None:
            known = self._state.find(result.server_msg_id)
            named = (() if known is None else known.mentions) if mentions is None else tuple(mentions)
            edit = Edit(content if result.content is None else result.content, named, result.edited_at)
            self._owner._apply_edit(self.id, result.server_msg_id, edit)
        return result

    async def react(self, message: MessageOrId, emoji: str, on: bool = True) -> list[Reaction]:
        """Adds a reaction, or takes it back; returns all reactions to the message. Tried until the server has
        answered."""
        reactions = await self._owner.message_calls.react(message, emoji, on)
        self._owner._apply_reactions(self.id, id_of(message), reactions, emoji)
        return reactions

    async def reactions(
        self, message: MessageOrId, *, cursor: str | None = None, limit: int | None = None
    ) -> ReactionsPage:
        """Returns who reacted to a message."""
        return await self._owner.message_calls.reactions(message, cursor, limit)

    async def pin(self, message: MessageOrId, on: bool = True) -> PinResult:
        """Pins a message for all members, or unpins it. Tried until the server has answered."""
        return await self._owner.message_calls.pin(message, on)

    async def pins(self) -> list[Message]:
        """Returns the pinned messages, the last pinned first."""
        return await self._owner.message_calls.pins(self.id)

    async def delete_for_me(self, messages: Iterable[MessageOrId]) -> None:
        """Deletes messages for yourself, on all your devices."""
        server_msg_ids = await self._owner.message_calls.delete_for_me(messages)
        self._owner._apply_deleted(self.id, server_msg_ids, None)

    async def clear(self) -> None:
        """Deletes everything there is for yourself, on all your devices."""
        self._owner._apply_deleted(self.id, (), await self._owner.message_calls.clear(self.id))

    async def at(self, time: int) -> int | None:
        """Returns the seq of the first message at or after a time; None when there is none."""
        return await self._owner.message_calls.at(self.id, time)

    async def media(
        self,
        kind: Literal["photo", "video", "voice", "file", "link"],
        *,
        before_seq: int | None = None,
        limit: int | None = None,
    ) -> MediaPage:
        """Returns photos, videos, voice messages, files or links, newest first."""
        return await self._owner.message_calls.media(self.id, kind, before_seq, limit)

    async def receipts(self, server_msg_id: str) -> Receipts:
        """Returns the users who have read a message, and those it was delivered to."""
        return await self._owner.message_calls.receipts(server_msg_id)

    async def update(
        self,
        *,
        pinned: bool | None = None,
        recv_msg_opt: int | None = None,
        hidden: bool | None = None,
        archived: bool | None = None,
        silent_until: int | None = None,
        marked_unread: bool | None = None,
        draft: Draft | UnsetType | None = UNSET,
        message_ttl_s: int | None = None,
        extra: Any = UNSET,
    ) -> None:
        """Changes settings of your own, on all your devices; and `message_ttl_s`, which is for all members. None as
        `draft` or `extra` removes it."""
        chosen = {"pinned": pinned, "recv_msg_opt": recv_msg_opt, "hidden": hidden, "archived": archived}
        chosen |= {"silent_until": silent_until, "marked_unread": marked_unread, "message_ttl_s": message_ttl_s}
        changes = {name: value for name, value in chosen.items() if value is not None}
        if draft is not UNSET:
            changes["draft"] = NULL if draft is None else to_builtins(draft)
        if extra is not UNSET:
            changes["extra"] = NULL if extra is None else extra
        await self._owner._update_conversation(self.id, changes)

    def on(self, name: Literal["change"], handler: Callable[[Conversation], object]) -> Callable[[], None]:
        """Calls `handler` after any of the properties has changed, at most once per iteration of the event loop;
        returns the function that unsubscribes it."""
        return self._owner._watch_conversation(self.id, lambda: handler(self))
