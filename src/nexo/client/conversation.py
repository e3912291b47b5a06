"""A conversation and a message on its way, as a caller holds them: live views with verbs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from nexo.client.delivery import state_at
from nexo.client.failures import ClientError
from nexo.client.model import Message, SendState
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

    def send(self, conversation_id: str, fields: Mapping[str, Any]) -> OutgoingMessage: ...

    def pending_of(self, conversation_id: str) -> list[OutgoingMessage]: ...

    def retry(self, outgoing: Outgoing) -> None: ...

    def cancel(self, outgoing: Outgoing) -> bool: ...

    def mark_read(self, conversation_id: str, seq: int | None) -> None: ...

    def tell_typing(self, target: Mapping[str, str], on: bool) -> None: ...

    def typists_of(self, conversation_id: str) -> list[str]: ...

    def touch(self, conversation_id: str) -> None:
        """It is in use: its messages are the last to be forgotten."""

    async def load_history(self, view: View, before_seq: int | None, limit: int) -> Page: ...

    async def load_range(self, view: View, begin_seq: int, limit: int) -> Page: ...

    async def recall(self, conversation_id: str, server_msg_id: str) -> RecallResult: ...

    async def receipts(self, server_msg_id: str) -> Receipts: ...

    async def update_conversation(self, conversation_id: str, changes: Mapping[str, Any]) -> None: ...

    def watch_conversation(self, conversation_id: str, tell: Callable[[], object]) -> Callable[[], None]: ...


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

    def retry(self) -> None:
        """After `failed`: once more, with the same id."""
        self._owner.retry(self._outgoing)

    def cancel(self) -> bool:
        """Out of the outbox, if it is surely not stored; whether it was."""
        return self._owner.cancel(self._outgoing)

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

    def __repr__(self) -> str:
        return f"<Conversation {self.id}>"

    # -- what it is ------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._view.conversation_id

    @property
    def kind(self) -> Literal["single", "group"]:
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
        return self.id[3:] if self.kind == "group" else None

    @property
    def _target(self) -> dict[str, str]:
        return {"groupId": self.id[3:]} if self.kind == "group" else {"to": self.peer_id or ""}

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
        return self._owner.typists_of(self.id)

    # -- messages --------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """What is in memory, by seq, without holes; provisional copies at the end."""
        self._owner.touch(self.id)
        return self._view.messages

    @property
    def pending(self) -> list[OutgoingMessage]:
        """What you sent and is not in `messages` yet, in order."""
        return self._owner.pending_of(self.id)

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
        self._owner.touch(self.id)
        before_seq = self._view.first_seq
        page = await self._owner.load_history(self._view, before_seq, limit)
        return self._view.add_earlier(before_seq, page.messages, page.has_more)

    async def load_later(self, limit: int = PAGE) -> int:
        """Newer messages, after paging back lost them; how many came."""
        self._owner.touch(self.id)
        if not self._view.has_later:
            return 0
        after_seq = self._view.last_seq
        page = await self._owner.load_range(self._view, after_seq + 1, limit)
        return self._view.add_later(after_seq, page.messages, page.next_seq, page.has_more)

    async def load_latest(self, limit: int = PAGE) -> int:
        """The window anew, at the newest end."""
        self._owner.touch(self.id)
        page = await self._owner.load_history(self._view, None, limit)
        return self._view.set_window(page.messages, page.has_more, page.head_seq)

    async def load_around(self, seq: int, limit: int = PAGE) -> int:
        """The window around a place, as for a quoted message."""
        self._owner.touch(self.id)
        upto = seq + limit // 2
        page = await self._owner.load_history(self._view, upto + 1, limit)
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
    ) -> OutgoingMessage:
        """At once, and never fails for the network: it is kept until it is saved."""
        fields: dict[str, Any] = {**self._target, "body": content}
        if msg_type != 1:
            fields["msgType"] = msg_type
        if mentions:
            fields["mentions"] = list(mentions)
        if reply_to is not None:
            fields["replyToServerMsgId"] = reply_to
        if extra is not None:
            fields["extra"] = dict(extra)
        return self._owner.send(self.id, fields)

    def send_custom(self, content: Mapping[str, Any], **options: Any) -> OutgoingMessage:
        return self.send(dict(content), msg_type=6, **options)

    def mark_read(self, seq: int | None = None) -> None:
        """Up to the newest given, or to `seq`. Kept and repeated while offline."""
        self._owner.mark_read(self.id, seq)

    def typing(self, on: bool = True) -> None:
        self._owner.tell_typing(self._target, on)

    async def recall(self, server_msg_id: str) -> RecallResult:
        return await self._owner.recall(self.id, server_msg_id)

    async def receipts(self, server_msg_id: str) -> Receipts:
        """Who has read it, and to whom it was delivered."""
        return await self._owner.receipts(server_msg_id)

    async def update(
        self, *, pinned: bool | None = None, recv_msg_opt: int | None = None, hidden: bool | None = None
    ) -> None:
        chosen = {"pinned": pinned, "recv_msg_opt": recv_msg_opt, "hidden": hidden}
        await self._owner.update_conversation(self.id, {k: v for k, v in chosen.items() if v is not None})

    def on_change(self, tell: Callable[[], object]) -> Callable[[], None]:
        """Call `tell` when anything above has changed, at most once per turn of the event loop; the result
        ends that."""
        return self._owner.watch_conversation(self.id, tell)
