"""What a connection can be told, whatever its dialect: replies to its own requests, and pushes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nexo.core.model import Head, Message, Page
from nexo.errors import NexoError

# -- replies ------------------------------------------------------------------------------------------


class SignedIn(Struct, frozen=True):
    user_id: str
    conn_id: str
    heartbeat_ms: int


class SignInFailed(Struct, frozen=True):
    error: NexoError


class Pinged(Struct, frozen=True):
    """The answer to a ping."""


class Saved(Struct, frozen=True, gc=False):
    """A message is in the database. `content` is there when the filter changed it."""

    message: Message
    content_changed: bool = False


class Recalled(Struct, frozen=True):
    """The answer to the one who recalled; `seq` is the event's."""

    server_msg_id: int
    conversation_id: str
    seq: int


class Pulled(Struct, frozen=True):
    conversation_id: str
    page: Page


class Synced(Struct, frozen=True):
    heads: Sequence[Head]
    has_more: bool = False
    cursor: str = ""


class MarkedRead(Struct, frozen=True):
    conversation_id: str
    read_seq: int
    unread: int


class ResendDone(Struct, frozen=True):
    has_more: bool


# -- pushes -------------------------------------------------------------------------------------------


class Pushed(Struct, frozen=True, gc=False):
    """A message for one of its receivers, in one of few variants so that many share a frame."""

    message: Message
    important: bool = False
    silent: bool = False
    resend: bool = False
    quoted: bool = True


class Receipt(Struct, frozen=True, gc=False):
    """`user_id` has everything up to this message (`ack_type` delivered), or has read it (read)."""

    ack_type: str
    conversation_id: str
    server_msg_id: int
    seq: int
    user_id: str


class Notify(Struct, frozen=True):
    """There is something new in a group; pull it."""

    conversation_id: str
    head_seq: int
    important: bool = False


class HeadsChanged(Struct, frozen=True):
    heads: Sequence[tuple[str, int]]


class Resync(Struct, frozen=True):
    reason: str
    after_ms: int
    conversation_ids: Sequence[str] = ()


class IsTyping(Struct, frozen=True):
    user_id: str
    conversation_id: str
    on: bool


class Presence(Struct, frozen=True):
    users: Sequence[tuple[str, bool, Sequence[int]]]  # user, online, platforms


class Failed(Struct, frozen=True):
    """An error: the answer to a request (which the dialect remembers), or out of the blue."""

    error: NexoError


Event = (
    SignedIn
    | SignInFailed
    | Pinged
    | Saved
    | Recalled
    | Pulled
    | Synced
    | MarkedRead
    | ResendDone
    | Pushed
    | Receipt
    | Notify
    | HeadsChanged
    | Resync
    | IsTyping
    | Presence
    | Failed
)
