"""A message as clients see it: made here and nowhere else, so that what is pushed and pulled agrees.

`content` and `extra` are JSON text already and go out as they are stored.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from nexo.core.model import Message
from nexo.ids import AT_ALL


class QuoteShape(Struct):
    """What a reply shows of the message it replies to."""

    server_msg_id: str
    sender_id: str
    msg_type: int
    text: str


class MessageShape(Struct):
    """A message or event. Either `recv_id` or `group_id` is there; `quote` and `recalled_at` where they apply."""

    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int
    sender_id: str
    msg_type: int
    content: Raw
    mentions: tuple[str, ...]
    reply_to: str | None
    extra: Raw | None
    status: int
    send_at: int
    recv_id: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET
    quote: QuoteShape | UnsetType = UNSET
    recalled_at: int | UnsetType = UNSET


M = TypeVar("M", bound=MessageShape)


def message_shape(message: Message) -> MessageShape:
    return message_as(MessageShape, message)


def message_as(form: type[M], message: Message) -> M:
    """A message in a form that has more fields than every message; the caller fills those in."""
    group_id = message.group_id
    shape = form(
        str(message.server_msg_id),
        message.client_msg_id,
        message.conversation_id,
        message.seq,
        message.sender_id,
        message.msg_type,
        Raw(message.content.encode()),
        message.mentions,
        None if message.reply_to is None else str(message.reply_to),
        None if message.extra is None else Raw(message.extra.encode()),
        message.status,
        message.send_at,
    )
    if group_id is not None:
        shape.group_id = group_id
    else:
        shape.recv_id = message.recv_id or UNSET
    quote = message.quote
    if quote is not None:
        shape.quote = QuoteShape(str(quote.server_msg_id), quote.sender_id, quote.msg_type, quote.text)
    if message.recalled_at is not None:
        shape.recalled_at = message.recalled_at
    return shape


class SentShape(Struct):
    """The answer to a send. `content` is there when the filter changed it. What is only accepted has no place in
    its conversation yet."""

    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int | UnsetType = UNSET
    send_at: int | UnsetType = UNSET
    status: Literal["saved", "accepted"] = "saved"
    content: Raw | UnsetType = UNSET


class AcceptedShape(SentShape):
    """It will be saved, or refused."""

    HTTP_STATUS: ClassVar[int] = 202


def sent_shape(message: Message, content_changed: bool) -> SentShape:
    shape = SentShape(
        str(message.server_msg_id), message.client_msg_id, message.conversation_id, message.seq, message.send_at
    )
    if content_changed:
        shape.content = Raw(message.content.encode())
    return shape


class CamelQuote(Struct, rename="camel"):
    """What a reply shows of the message it replies to."""

    server_msg_id: str
    sender_id: str = msgspec.field(name="from")
    msg_type: int
    text: str


class CamelMessage(Struct, rename="camel"):
    """A message or event as the envelope dialect names its parts. `important`: it mentions the reader."""

    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    msg_seq: int
    sender_id: str = msgspec.field(name="from")
    msg_type: int
    body: Raw
    mentions: tuple[str, ...]
    reply_to_server_msg_id: str | None
    extra: Raw | None
    status: int
    ts: int
    recv_id: str | UnsetType = msgspec.field(default=UNSET, name="to")
    group_id: str | UnsetType = UNSET
    quote: CamelQuote | UnsetType = UNSET
    recalled_at: int | UnsetType = UNSET
    important: bool | UnsetType = UNSET


def camel_message(message: Message, important: bool = False) -> CamelMessage:
    """The same, named otherwise."""
    plain = message_shape(message)
    shape = CamelMessage(
        plain.server_msg_id,
        plain.client_msg_id,
        plain.conversation_id,
        plain.seq,
        plain.sender_id,
        plain.msg_type,
        plain.content,
        plain.mentions,
        plain.reply_to,
        plain.extra,
        plain.status,
        plain.send_at,
        plain.recv_id,
        plain.group_id,
        recalled_at=plain.recalled_at,
        important=important or UNSET,
    )
    if isinstance(plain.quote, QuoteShape):
        quote = plain.quote
        shape.quote = CamelQuote(quote.server_msg_id, quote.sender_id, quote.msg_type, quote.text)
    return shape


def is_important(message: Message, reader_id: str) -> bool:
    """Whether the message mentions its reader."""
    if reader_id == message.sender_id:
        return False
    return reader_id in message.mentions or AT_ALL in message.mentions
