"""Columns in the order of struct fields, and the conversion between rows and messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nexo.core.message_fields import FIELDS, PLAIN, FieldKind, Stored, decode_names, encode_names
from nexo.core.model import Conversation, Member, Message

CONVERSATION = Conversation.__struct_fields__
MEMBER = Member.__struct_fields__
# columns of a conversation and a member that a send changes
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
_COLUMNS = [field for field in FIELDS if field.stored is not Stored.NEVER and field not in PLAIN]
_NEW = [field for field in _COLUMNS if field.stored is Stored.NEW]
_OF_ROWS = {"conv": "bigint", "request_hash": "bytea", "countable_no": "bigint"}  # no fields of a message
_TYPES = {
    FieldKind.ID: "bigint",
    FieldKind.NUMBER: "bigint",
    FieldKind.SMALL: "smallint",
    FieldKind.KEY: "text",
    FieldKind.TEXT: "text",
    FieldKind.JSON: "text",
    FieldKind.NAMES: "text",
    FieldKind.REACTIONS: "bigint",
    FieldKind.SOURCE: "text",
}
BLANKED = tuple(field.name for field in FIELDS if field.blanked and field.stored is not Stored.NEVER)  # by a recall
_PLAIN = tuple(field.name for field in PLAIN)
# what `message` takes, and what `new_rows` makes, with PostgreSQL's types
MESSAGE = (*(field.name for field in _COLUMNS), *_PLAIN)
NEW_MESSAGE = (*(field.name for field in _NEW), *_OF_ROWS, *_PLAIN)
NEW_MESSAGE_TYPES = (
    *(_TYPES[field.kind] for field in _NEW),
    *_OF_ROWS.values(),
    *(_TYPES[field.kind] for field in PLAIN),
)

NewMessage = tuple[Message, int, bytes | None, int]  # conv, request_hash, countable_no


def columns(names: Sequence[str], table: str = "") -> str:
    return ",".join(f"{table}.{name}" for name in names) if table else ",".join(names)


def _message(row: Sequence[Any], conversation_id: str) -> Message:
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
        edited_at,
        reactions,
        forwarded_from,
        expires_at,
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
        decode_names(mentions) if mentions else (),
        reply_to,
        None,
        extra,
        status,
        at,
        edited_at,
        None if reactions is None else (),
        forwarded_from,
        expires_at,
    )


def _message_with_plain(row: Sequence[Any], conversation_id: str) -> Message:
    found = _message(row[: len(_COLUMNS)], conversation_id)
    for name, value in zip(_PLAIN, row[len(_COLUMNS) :], strict=True):
        setattr(found, name, value)
    return found


# Of a row of MESSAGE columns and the name of its conversation. What was recalled has no content left to give away; an
# edited message may have to be shown as it was before, which `reader_view.complete` decides.
message: Callable[[Sequence[Any], str], Message] = _message_with_plain if PLAIN else _message


def new_rows(messages: Sequence[NewMessage]) -> list[tuple[Any, ...]]:
    """The values of NEW_MESSAGE."""
    made: list[tuple[Any, ...]] = [
        (
            message.server_msg_id,
            message.client_msg_id,
            message.seq,
            message.sender_id,
            message.msg_type,
            message.content,
            message.send_at,
            encode_names(message.mentions) if message.mentions else None,
            message.reply_to,
            message.extra,
            message.forwarded_from,
            conv,
            request_hash,
            countable_no,
        )
        for message, conv, request_hash, countable_no in messages
    ]
    if PLAIN:
        return [(*row, *(getattr(item[0], name) for name in _PLAIN)) for row, item in zip(made, messages, strict=True)]
    return made
