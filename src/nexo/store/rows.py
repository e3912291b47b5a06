"""Columns in the order of the values they become, and the way from a row to a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nexo.core.model import Conversation, Member, Message

CONVERSATION = Conversation.__struct_fields__
MEMBER = Member.__struct_fields__
# what of a conversation and of a member changes when somebody sends
CONVERSATION_SENT = ("head_seq", "countable", "at_all_count", "last_send_at")
MEMBER_SENT = (
    "delivered_seq",
    "read_seq",
    "read_countable",
    "own_above",
    "last_own_seq",
    "mention_unread",
    "at_all_base",
)
MESSAGE = (
    "server_msg_id",
    "client_msg_id",
    "seq",
    "sender_id",
    "msg_type",
    "content",
    "send_at",
    "mentions",
    "reply_to",
    "extra",
    "status",
    "recalled_at",
)
NEW_MESSAGE = (
    "server_msg_id",
    "conv",
    "seq",
    "sender_id",
    "client_msg_id",
    "msg_type",
    "content",
    "request_hash",
    "reply_to",
    "mentions",
    "extra",
    "send_at",
    "countable_no",
)

_decode_mentions = msgspec.json.Decoder(tuple[str, ...]).decode
_encode = msgspec.json.encode


def columns(names: Sequence[str], table: str = "") -> str:
    return ",".join(f"{table}.{name}" for name in names) if table else ",".join(names)


def message(row: Sequence[Any], conversation_id: str) -> Message:
    """A row of MESSAGE columns. What was recalled has no content left to give away."""
    (
        server_msg_id,
        client_msg_id,
        seq,
        sender_id,
        msg_type,
        content,
        send_at,
        mentions,
        reply_to,
        extra,
        status,
        at,
    ) = row
    return Message(
        server_msg_id,
        client_msg_id,
        conversation_id,
        seq,
        sender_id,
        msg_type,
        content,
        send_at,
        _decode_mentions(mentions) if mentions else (),
        reply_to,
        None,
        extra,
        status,
        at,
    )


def encode_mentions(mentions: tuple[str, ...]) -> str:
    return _encode(mentions).decode()
