"""Push notifications as values: devices, what each shows of a conversation, and what is sent to it."""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import Any, NamedTuple

from msgspec import Struct

KINDS = ("web", "apns", "fcm", "hook")
ONLINE_MS = 120_000  # for which a connection that does not acknowledge a message keeps it from being pushed
TAG_CHARS = 16


class NoteState(IntEnum):
    IDLE = 0  # the device shows what it should
    DUE = 1
    IN_FLIGHT = 2  # an instance works on it


class PushTarget(NamedTuple):
    """A registered device."""

    push_id: int
    user_id: str
    kind: str
    address: str  # the token, or the subscription as JSON
    device_id: str
    lang: str


class Note(NamedTuple):
    """The notification of one conversation on one device."""

    push_id: int
    conv: int
    want_seq: int  # there may be something to show up to this seq
    sent_seq: int  # what was sent up to this seq needs no second notification
    shown_seq: int  # of the message that is shown; 0: nothing is
    tries: int
    made_at: int


class NoteResult(NamedTuple):
    """What became of a note. With a `due_at` it is tried again then."""

    note: Note
    sent_seq: int
    shown_seq: int
    result: str  # for operators: never a token
    due_at: int = 0
    tries: int = 0
    is_sent: bool = False  # the service has answered


class ShownMessage(NamedTuple):
    """The message that a notification shows, as this reader may see it."""

    server_msg_id: int
    seq: int
    sender_id: str
    sender_name: str
    msg_type: int
    content: str
    is_mention: bool


class Composed(NamedTuple):
    """What a device should show of a conversation now. `target` is None where the registration has ended."""

    note: Note
    target: PushTarget | None
    conversation_id: str = ""
    group_name: str | None = None  # None: a single chat
    shown: ShownMessage | None = None  # the newest message that may be shown
    is_new: bool = False  # it was neither sent to this device nor delivered to another one
    is_gone: bool = False  # what the device shows may not be shown any more
    unread: int = 0
    badge: int = 0


class PushPage(NamedTuple):
    """What the journal has after a place: conversations with messages, and members and conversations whose
    notifications have to be looked at again."""

    saved: dict[int, tuple[int, int]]  # conversation: the first and the last seq
    read: list[tuple[int, str]]  # conversation, member
    changed: set[int]  # conversations with a message that has expired
    newest_at: int  # by the clock of the database; 0: nothing


class Marking(NamedTuple):
    """A conversation whose members are to be notified of messages in a range."""

    conv: int
    low: int
    high: int
    after_user: str = ""  # members up to this one are done


class PushTrial(Struct):
    """The answer to a test notification."""

    kind: str
    device_id: str
    sent: bool
    detail: str


def tag_of(name: str) -> str:
    """Returns the name under which a platform replaces notifications: short, and without the ids of users."""
    return f"n-{hashlib.blake2b(name.encode(), digest_size=TAG_CHARS // 2).hexdigest()}"


def payload_texts(payload: dict[str, Any]) -> dict[str, str]:
    """Returns a payload whose values are all texts."""
    return {name: _text(value) for name, value in payload.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def language_of(lang: str) -> str:
    return "zh" if lang.lower().startswith("zh") else "en"
