"""A conversation and a message on its way, as a caller holds them: live views with verbs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from nexo.client.delivery import state_at
from nexo.client.failures import ClientError
from nexo.client.model import Message, SendState
from nexo.client.options import TYPING_AGAIN_S
from nexo.client.outbox import Outgoing
from nexo.client.shapes import RecallResult, Receipts
from nexo.client.view import View
from nexo.ids import peers_of

PAGE = 50


class Page(NamedTuple):
    messages: list[Message]
    head_seq: int
    next_seq: int
    has_more: bool


class Owner(Protocol):
    """What a conversation needs of the client it belongs to."""

    @property
    def user_id(self) -> str | None: ...

    def _send(self, conversation_id: str, fields: Mapping[str, Any], client_msg_id: str | None) -> OutgoingMessage: ...

    def _pending_of(self, conversation_id: str) -> list[OutgoingMessage]: ...

    def _retry(self, outgoing: Outgoing) -> bool: ...

    def _cancel(self, outgoing: Outgoing) -> bool: ...

    def _mark_read(self, conversation_id: str, seq: int | None) -> None: ...

    def _tell_typing(self, target: Mapping[str, str], on: bool) -> None: ...

    def _typists_of(self, conversation_id: str) -> list[str]: ...

    def _touch(self, conversation_id: str) -> None:
        """It is in use: its messages are the last to be forgotten."""

    async def _load_history(self, view: View, before_seq: int | None, limit: int) -> Page: ...

    async def _load_range(self, view: View, begin_seq: int, limit: int) -> Page: ...

    async def _recall(self, conversation_id: str, server_msg_id: str) -> RecallResult: ...

    async def _receipts(self, server_msg_id: str) -> Receipts: ...

    async def _update_conversation(self, conversation_id: str, changes: Mapping[str, Any]) -> None: ...

    def _watch_conversation(self, conversation_id: str, tell: Callable[[], object]) -> Callable[[], None]: ...


class OutgoingMessage:
    """What `send` gives back, at once. It stays the same object through all attempts."""

    def __init__(self, owner: Owner, outgoing: Outgoing) -> None:
        self._owner = owner
        self._outgoing = outgoing
        self._ended: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<OutgoingMessage {self.client_msg_id} {self.state}>"

    @property
    def client_msg_id(self) -> str:
        return self._outgoing.client_msg_id

    @property
    def order(self) -> str:
        """Sorts by when it was made."""
        return self._outgoing.order

    @property
    def conversation_id(self) -> str:
        return self._outgoing.conversation_id

    @property
    def content(self) -> Any:
        return self._outgoing.fields.get("body")

    @property
    def msg_type(self) -> int:
        return int(self._outgoing.fields.get("msgType", 1))

    @property
    def mentions(self) -> list[str]:
        return list(self._outgoing.fields.get("mentions") or ())

    @property
    def reply_to(self) -> str | None:
        return self._outgoing.fields.get("replyToServerMsgId")

    @property
    def extra(self) -> Any:
        return self._outgoing.fields.get("extra")

    @property
    def created_at(self) -> int:
        return self._outgoing.created_at

    @property
    def state(self) -> SendState:
        return self._outgoing.state

    @property
    def error(self) -> ClientError | None:
        reason = self._outgoing.reason
        return None if reason is None else ClientError(reason, self._outgoing.detail)

    @property
    def server_msg_id(self) -> str | None:
        return self._outgoing.server_msg_id

    @property
    def seq(self) -> int | None:
        return self._outgoing.seq

    @property
    def send_at(self) -> int | None:
        return self._outgoing.send_at

    async def when_saved(self) -> OutgoingMessage:
        """Itself, once the server has it; raises the error when it fails."""
        while self.state in ("sending", "accepted"):
            if self._ended is None:
                self._ended = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._ended)
        if self.error is not None:
            raise self.error
        return self

    def retry(self) -> bool:
        """After `failed`: once more, with the same id. Whether it had failed."""
        return self._owner._retry(self._outgoing)

    def cancel(self) -> bool:
        """Out of the outbox, if it is surely not stored; whether it was."""
        return self._owner._cancel(self._outgoing)

    def _changed(self) -> None:
        if self.state not in ("sending", "accepted") and self._ended is not None:
            ended, self._ended = self._ended, None
            if not ended.done():
                ended.set_result(None)


class Conversation:
    """The row of the list and the view of its messages. Always the same object for the same id."""

    def __init__(self, owner: Owner, view: View) -> None:
        self._owner = owner
        self._view = view
        self._typing_at: float | None = None

    def __repr__(self) -> str:
        return f"<Conversation {self.id}>"

    # -- what it is ------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._view.conversation_id

    @property
    def type(self) -> Literal["single", "group"]:
        return "group" if self.id.startswith("sg_") else "single"

    @property
    def peer_id(self) -> str | None:
        """The other one of a single chat."""
        peers = peers_of(self.id)
        if peers is None:
            return None
        return peers[1] if peers[0] == self._owner.user_id else peers[0]

    @property
    def group_id(self) -> str | None:
        return self.id[3:] if self.type == "group" else None

    @property
    def _target(self) -> dict[str, str]:
        return {"groupId": self.id[3:]} if self.type == "group" else {"to": self.peer_id or ""}

    # -- what is known of it ---------------------------------------------------------------------------------

    @property
    def head_seq(self) -> int:
        return self._view.head_seq

    @property
    def min_seq(self) -> int:
        return self._view.min_seq

    @property
    def read_seq(self) -> int:
        return self._view.read_seq

    @property
    def delivered_seq(self) -> int:
        return max(self._view.delivered_seq, self._view.acknowledged)

    @property
    def synced_seq(self) -> int:
        """Everything up to here was given."""
        return self._view.synced_seq

    @property
    def unread(self) -> int:
        return self._view.unread

    @property
    def unread_mentions(self) -> int:
        return self._view.unread_mentions

    @property
    def last_message(self) -> Message | None:
        return self._view.last_message

    @property
    def updated_at(self) -> int:
        return self._view.updated_at

    @property
    def pinned(self) -> bool:
        return self._view.pinned

    @property
    def recv_msg_opt(self) -> int:
        return self._view.recv_msg_opt

    @property
    def peer_read_seq(self) -> int:
        return self._view.peer_read_seq

    @property
    def peer_delivered_seq(self) -> int:
        return self._view.peer_delivered_seq

    @property
    def typists(self) -> list[str]:
        """Who types now."""
        return self._owner._typists_of(self.id)

    # -- messages --------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """What is in memory, by seq, without holes; provisional copies at the end."""
        self._owner._touch(self.id)
        return self._view.messages

    @property
    def pending(self) -> list[OutgoingMessage]:
        """What you sent and is not in `messages` yet, in order."""
        return self._owner._pending_of(self.id)

    @property
    def has_earlier(self) -> bool:
        return self._view.has_earlier

    @property
    def has_later(self) -> bool:
        return self._view.has_later

    @property
    def keeps_place(self) -> bool:
        """Set it while somebody reads in the middle of `messages`: when they are at their limit, the oldest are
        not pushed out by what comes; then `has_later` is true."""
        return self._view.keeps_place

    @keeps_place.setter
    def keeps_place(self, on: bool) -> None:
        self._view.keeps_place = on

    async def load_earlier(self, limit: int = PAGE) -> int:
        """Older messages into `messages`; how many came."""
        self._owner._touch(self.id)
        before_seq = self._view.first_seq
        page = await self._owner._load_history(self._view, before_seq, limit)
        return self._view.add_earlier(before_seq, page.messages, page.has_more)

    async def load_later(self, limit: int = PAGE) -> int:
        """Newer messages, after paging back lost them; how many came."""
        self._owner._touch(self.id)
        if not self._view.has_later:
            return 0
        after_seq = self._view.last_seq
        page = await self._owner._load_range(self._view, after_seq + 1, limit)
        return self._view.add_later(after_seq, page.messages, page.next_seq, page.has_more)

    async def load_latest(self, limit: int = PAGE) -> int:
        """The window anew, at the newest end."""
        self._owner._touch(self.id)
        page = await self._owner._load_history(self._view, None, limit)
        return self._view.set_window(page.messages, page.has_more, page.head_seq)

    async def load_around(self, seq: int, limit: int = PAGE) -> int:
        """The window around a place, as for a quoted message."""
        self._owner._touch(self.id)
        upto = seq + limit // 2
        page = await self._owner._load_history(self._view, upto + 1, limit)
        return self._view.set_window(page.messages, page.has_more, upto)

    def state_of(self, message: Message) -> Literal["saved", "delivered", "read"]:
        """Of your own message; in groups by at least one member, as far as the server tells."""
        return state_at(self._view, message.seq or 0)

    # -- what one does ---------------------------------------------------------------------------------------

    def send(
        self,
        content: Any,
        *,
        msg_type: int = 1,
        mentions: Sequence[str] = (),
        reply_to: str | None = None,
        extra: Mapping[str, Any] | None = None,
        client_msg_id: str | None = None,
    ) -> OutgoingMessage:
        """At once, and never fails for the network: it is kept until it is saved. With a `client_msg_id` of your own
        it is stored once, whoever sends it again, and when."""
        fields: dict[str, Any] = {**self._target, "body": content}
        if msg_type != 1:
            fields["msgType"] = msg_type
        if mentions:
            fields["mentions"] = list(mentions)
        if reply_to is not None:
            fields["replyToServerMsgId"] = reply_to
        if extra is not None:
            fields["extra"] = dict(extra)
        self._typing_at = None
        return self._owner._send(self.id, fields, client_msg_id)

    def send_custom(self, content: Mapping[str, Any], **options: Any) -> OutgoingMessage:
        return self.send(dict(content), msg_type=6, **options)

    def mark_read(self, seq: int | None = None) -> None:
        """Up to the newest given, or to `seq`. Kept and repeated while offline."""
        self._owner._mark_read(self.id, seq)

    def typing(self, on: bool = True) -> None:
        """Call it with each key: it is told every few seconds."""
        now = time.monotonic()
        is_told = self._typing_at is not None and (not on or now < self._typing_at + TYPING_AGAIN_S)
        if on == is_told:
            return
        self._typing_at = now if on else None
        self._owner._tell_typing(self._target, on)

    async def recall(self, server_msg_id: str) -> RecallResult:
        return await self._owner._recall(self.id, server_msg_id)

    async def receipts(self, server_msg_id: str) -> Receipts:
        """Who has read it, and to whom it was delivered."""
        return await self._owner._receipts(server_msg_id)

    async def update(
        self, *, pinned: bool | None = None, recv_msg_opt: int | None = None, hidden: bool | None = None
    ) -> None:
        chosen = {"pinned": pinned, "recv_msg_opt": recv_msg_opt, "hidden": hidden}
        await self._owner._update_conversation(self.id, {k: v for k, v in chosen.items() if v is not None})

    def on(self, name: Literal["change"], handler: Callable[[Conversation], object]) -> Callable[[], None]:
        """Call `handler` when anything above has changed, at most once per turn of the event loop; the result
        ends that."""
        return self._owner._watch_conversation(self.id, lambda: handler(self))
