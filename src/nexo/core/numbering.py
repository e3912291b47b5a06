"""Messages by their number: the place of a message among the messages of its conversation, events not counted.

Each message stores it (`countable_no`), so numbers have no holes either. OpenIM's clients know messages by it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from nexo.core.model import Message


class NumberHead(Struct, frozen=True):
    """A conversation of one user, in numbers."""

    conversation_id: str
    head: int  # the last message that the user may see
    first: int  # the first one
    unread: int
    last_at: int  # when it was last active
    head_seq: int  # of the last event or message, as a seq


class NumberSpan(NamedTuple):
    """Messages that a client asks for: the last `limit` in [begin, end], or those with these numbers. With `is_twin`,
    the events of the conversation in a range of seqs. `name` is how the client calls it; without a conversation_id
    there is none."""

    name: str
    conversation_id: str
    is_twin: bool = False
    begin: int = 0
    end: int = 0
    limit: int = 0
    numbers: tuple[int, ...] | None = None


class NumberedMessage(NamedTuple):
    number: int
    message: Message
    is_read: bool


class NumberedMessages(Struct):
    """The answer to a span. `gone` are numbers that were asked for whose messages are not shown to the user. `notices`
    are the notifications of a twin, as its dialect shows them."""

    messages: list[NumberedMessage] = []
    gone: list[int] = []
    notices: list[dict[str, Any]] = []
    is_end: bool = True
    end_number: int = 0
