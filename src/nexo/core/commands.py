"""What a client can ask over a connection, whatever its dialect. Decoded, typed, not yet judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Auth(Struct, frozen=True):
    token: str
    device_id: str | None = None
    baselines: Mapping[str, int] = {}


class Reauth(Struct, frozen=True):
    token: str


class Ping(Struct, frozen=True):
    pass


class Pong(Struct, frozen=True):
    pass


class Send(Struct, frozen=True):
    """As decoded: the sending service checks every field."""

    client_msg_id: str
    recv_id: str | None = None
    group_id: str | None = None
    msg_type: int = 1
    content: Any = None
    mentions: Any = ()
    reply_to: str | int | None = None
    extra: Any = None


class Ack(Struct, frozen=True):
    """By message, or by place."""

    ack_type: str
    server_msg_id: str | int | None = None
    conversation_id: str | None = None
    seq: int | None = None


class MarkRead(Struct, frozen=True):
    conversation_id: str
    seq: int | None = None
    last_msg_id: str | int | None = None


class Recall(Struct, frozen=True):
    server_msg_id: str | int


class Pull(Struct, frozen=True):
    conversation_id: str
    begin_seq: int = 1
    end_seq: int | None = None
    limit: int | None = None


class Sync(Struct, frozen=True):
    """The user's conversations: a page of all, or just those named."""

    cursor: str | None = None
    limit: int | None = None
    conversation_ids: tuple[str, ...] | None = None


class Resend(Struct, frozen=True):
    baselines: Mapping[str, int] = {}


class Typing(Struct, frozen=True):
    on: bool
    recv_id: str | None = None
    group_id: str | None = None


class SubscribePresence(Struct, frozen=True):
    user_ids: tuple[str, ...]


Command = (
    Auth | Reauth | Ping | Pong | Send | Ack | MarkRead | Recall | Pull | Sync | Resend | Typing | SubscribePresence
)
