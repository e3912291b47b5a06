"""A message as clients see it, made only here, so that pushed and pulled messages are equal.

`content` and `extra` are JSON text already and go out as they are stored.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from nexo.core.events import Edited
from nexo.core.file_links import shown_content
from nexo.core.files import FILE_TYPES
from nexo.core.message_fields import shows_plain, with_plain
from nexo.core.model import Message, Reaction
from nexo.ids import AT_ALL


class QuoteShape(Struct):
    """What a reply shows of the message it replies to."""

    server_msg_id: str
    sender_id: str
    msg_type: int
    text: str


class ReactionShape(Struct):
    """How many users reacted with an emoji, and whether the reader is one of them."""

    emoji: str
    count: int
    mine: bool


class ForwardedFrom(Struct):
    """The sender and the time of a message that was forwarded."""

    sender_id: str
    send_at: int


def reaction_shapes(reactions: tuple[Reaction, ...]) -> list[ReactionShape]:
    return [ReactionShape(one.emoji, one.count, one.mine) for one in reactions]


read_source = msgspec.json.Decoder(ForwardedFrom).decode


@with_plain(shown=True)
class MessageShape(Struct):
    """A message or event. Either `recv_id` or `group_id` is there; the fields behind it where they
    apply."""

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
    edited_at: int | UnsetType = UNSET
    reactions: list[ReactionShape] | UnsetType = UNSET
    forwarded_from: ForwardedFrom | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET


M = TypeVar("M", bound=MessageShape)


def message_shape(message: Message) -> MessageShape:
    return message_as(message, MessageShape)


@shows_plain
def message_as(message: Message, form: type[M]) -> M:
    """A message in a form that has more fields than every message; the caller fills those in."""
    # for every message of a page and of a webhook: attributes are read once, and all values are given at once
    name, sender_id, reply_to, extra = message.conversation_id, message.sender_id, message.reply_to, message.extra
    recv_id: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET
    if name.startswith("si_"):
        low, _, high = name[3:].partition(":")
        recv_id = high if low == sender_id else low
    else:
        group_id = name[3:]
    shape = form(
        str(message.server_msg_id),
        message.client_msg_id,
        name,
        message.seq,
        sender_id,
        message.msg_type,
        Raw(shown_content(message) if message.msg_type in FILE_TYPES else message.content),
        message.mentions,
        None if reply_to is None else str(reply_to),
        None if extra is None else Raw(extra),
        message.status,
        message.send_at,
        recv_id,
        group_id,
    )
    quote = message.quote
    if quote is not None:
        shape.quote = QuoteShape(str(quote.server_msg_id), quote.sender_id, quote.msg_type, quote.text)
    if message.recalled_at is not None:
        shape.recalled_at = message.recalled_at
    if message.edited_at is not None:
        shape.edited_at = message.edited_at
    if message.reactions is not None:
        shape.reactions = reaction_shapes(message.reactions)
    if message.forwarded_from is not None:
        shape.forwarded_from = read_source(message.forwarded_from)
    if message.expires_at is not None:
        shape.expires_at = message.expires_at
    return shape


class SentShape(Struct):
    """The answer to a send. `content` is there when the filter changed it, or it names a file. What is only
    accepted has no place in its conversation yet."""

    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int | UnsetType = UNSET
    send_at: int | UnsetType = UNSET
    status: Literal["saved", "accepted"] = "saved"
    content: Raw | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET


class AcceptedShape(SentShape):
    """It will be saved, or refused."""

    HTTP_STATUS: ClassVar[int] = 202


def sent_shape(message: Message, content_changed: bool) -> SentShape:
    shape = SentShape(
        str(message.server_msg_id), message.client_msg_id, message.conversation_id, message.seq, message.send_at
    )
    if content_changed:
        shape.content = Raw(shown_content(message) if message.msg_type in FILE_TYPES else message.content.encode())
    if message.expires_at is not None:
        shape.expires_at = message.expires_at
    return shape


class EditedShape(Struct):
    """The answer to an edit; `seq` is that of its event. `content` is there when the filter changed it."""

    server_msg_id: str
    conversation_id: str
    seq: int
    edited_at: int | UnsetType = UNSET
    content: Raw | UnsetType = UNSET


def edited_shape(edited: Edited) -> EditedShape:
    shape = EditedShape(str(edited.server_msg_id), edited.conversation_id, edited.seq)
    if edited.edited_at is not None:
        shape.edited_at = edited.edited_at
    if edited.content is not None:
        shape.content = Raw(edited.content.encode())
    return shape


class CamelQuote(Struct, rename="camel"):
    """What a reply shows of the message it replies to."""

    server_msg_id: str
    sender_id: str = msgspec.field(name="from")
    msg_type: int
    text: str


class CamelSource(Struct):
    """The sender and the time of a message that was forwarded."""

    sender_id: str = msgspec.field(name="from")
    ts: int


def camel_source(forwarded_from: str) -> CamelSource:
    source = read_source(forwarded_from)
    return CamelSource(source.sender_id, source.send_at)


@with_plain(shown=True, in_camel_case=True)
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
    expires_at: int | UnsetType = UNSET
    important: bool | UnsetType = UNSET
    edited_at: int | UnsetType = UNSET
    reactions: list[ReactionShape] | UnsetType = UNSET
    forwarded_from: CamelSource | UnsetType = UNSET


@shows_plain
def camel_message(message: Message, important: bool = False) -> CamelMessage:
    """Returns the same message with the names of the envelope dialect."""
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
        expires_at=plain.expires_at,
        important=important or UNSET,
        edited_at=plain.edited_at,
        reactions=plain.reactions,
    )
    if message.forwarded_from is not None:
        shape.forwarded_from = camel_source(message.forwarded_from)
    if isinstance(plain.quote, QuoteShape):
        quote = plain.quote
        shape.quote = CamelQuote(quote.server_msg_id, quote.sender_id, quote.msg_type, quote.text)
    return shape


def is_important(message: Message, reader_id: str) -> bool:
    """Returns whether the message mentions its reader."""
    if reader_id == message.sender_id:
        return False
    return reader_id in message.mentions or AT_ALL in message.mentions
