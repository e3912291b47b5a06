"""The nouns of the SDK: what a caller holds in hand. The names are those of the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, ValidationError, convert, structs

from nexo.core.model import FIRST_EVENT, MsgType

State = Literal["offline", "connecting", "syncing", "online", "closed"]
SendState = Literal["sending", "accepted", "saved", "delivered", "read", "failed"]
_TEXTS = (MsgType.TEXT, MsgType.QUOTE)


class Quote(Struct, frozen=True):
    server_msg_id: str
    sender_id: str
    msg_type: int
    text: str


class Message(Struct, frozen=True, kw_only=True):
    """A message or event as it is known now; a change makes a new one. `seq` is None while it is provisional."""

    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int | None
    sender_id: str
    recv_id: str | None = None
    group_id: str | None = None
    msg_type: int = 1
    content: Any = None
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    quote: Quote | None = None
    extra: Any = None
    status: int = 0
    recalled_at: int | None = None
    send_at: int = 0
    important: bool = False
    silent: bool = False
    provisional: bool = False

    @property
    def is_event(self) -> bool:
        return self.msg_type >= FIRST_EVENT

    @property
    def is_recalled(self) -> bool:
        return self.status == 1

    @property
    def place(self) -> int:
        """The seq of a message that has one."""
        assert self.seq is not None
        return self.seq

    def mentions_user(self, user_id: str) -> bool:
        return self.sender_id != user_id and (user_id in self.mentions or self.mentions[:1] == ("@all",))

    def blanked(self, recalled_at: int) -> Message:
        """What is left of it after a recall."""
        return structs.replace(
            self,
            status=1,
            recalled_at=recalled_at,
            content="" if self.msg_type in _TEXTS else {},
            mentions=(),
            reply_to=None,
            quote=None,
            extra=None,
        )


class Session(Struct, frozen=True, kw_only=True):
    """One login. `refresh_at` is when its access token is exchanged for the next."""

    user_id: str
    access_token: str
    refresh_token: str
    expires_at: int
    refresh_at: int
    platform_id: int = 7
    device_id: str = ""


class Entry(Struct, frozen=True, kw_only=True):
    """A conversation as SYNC or the list tells it; what only the list tells is None after SYNC."""

    conversation_id: str
    head_seq: int
    min_seq: int
    read_seq: int
    delivered_seq: int
    unread: int
    unread_mentions: int | None = None
    pinned: bool | None = None
    recv_msg_opt: int | None = None
    updated_at: int | None = None
    peer_read_seq: int | None = None
    peer_delivered_seq: int | None = None
    last_message: Message | None = None


_RENAMED = {
    "serverMsgId": "server_msg_id",
    "clientMsgId": "client_msg_id",
    "conversationId": "conversation_id",
    "msgSeq": "seq",
    "from": "sender_id",
    "to": "recv_id",
    "groupId": "group_id",
    "msgType": "msg_type",
    "body": "content",
    "replyToServerMsgId": "reply_to",
    "recalledAt": "recalled_at",
    "ts": "send_at",
}
_FIELDS = frozenset(Message.__struct_fields__)


def message_of_frame(frame: Mapping[str, Any]) -> Message:
    return message_of({_RENAMED.get(name, name): value for name, value in frame.items()})


def message_of(shape: Mapping[str, Any]) -> Message:
    """From the HTTP API's names. Raises `msgspec.ValidationError` for what is no message."""
    fields = {name: value for name, value in shape.items() if name in _FIELDS}
    fields["mentions"] = fields.get("mentions") or ()
    if fields.get("quote") is not None:
        fields["quote"] = {_RENAMED.get(name, name): value for name, value in fields["quote"].items()}
    fields.setdefault("seq", None)
    message = convert(fields, Message)
    if message.seq is None and not message.provisional:
        raise ValidationError("A message has its seq")
    return message


def recall_event(frame: Mapping[str, Any], target_seq: int | None) -> Message:
    """MESSAGE_REVOKED as the event it stands for. The event's own id is not told."""
    content = {"server_msg_id": frame["serverMsgId"], "seq": target_seq, "by": frame["from"]}
    return Message(
        server_msg_id="",
        client_msg_id=None,
        conversation_id=frame["conversationId"],
        seq=frame["msgSeq"],
        sender_id=frame["from"],
        msg_type=MsgType.RECALLED,
        content=content,
        send_at=frame["ts"],
    )


def entry_of_frame(frame: Mapping[str, Any]) -> Entry:
    names = ("conversation_id", "head_seq", "min_seq", "read_seq", "delivered_seq", "unread")
    camel = ("conversationId", "headSeq", "minSeq", "readSeq", "deliveredSeq", "unread")
    return convert({name: frame[told] for name, told in zip(names, camel, strict=True)}, Entry)


def entry_of(shape: Mapping[str, Any]) -> Entry:
    fields = {name: shape[name] for name in Entry.__struct_fields__ if name in shape and name != "last_message"}
    last = shape.get("last_message")
    return Entry(**fields, last_message=None if last is None else message_of(last))
