"""What a connection can be told, whatever its dialect: replies to its own requests, and pushes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nexo.core.model import ConversationEntry, Group, GroupMember, Head, Message, OfflinePage, Page, User
from nexo.errors import NexoError

# -- replies ------------------------------------------------------------------------------------------


class SignedIn(Struct, frozen=True):
    user_id: str
    conn_id: str
    heartbeat_ms: int


class SignInFailed(Struct, frozen=True):
    error: NexoError


class TokensIssued(Struct, frozen=True):
    """A session has begun or goes on with these. The printed form shows no token."""

    user_id: str
    access_token: str
    refresh_token: str
    expires_at: int
    platform_id: int
    device_id: str

    def __repr__(self) -> str:
        return f"TokensIssued(user_id={self.user_id!r}, …)"


class Registered(Struct, frozen=True):
    user: User


class Pinged(Struct, frozen=True):
    """The answer to a ping."""


class Done(Struct, frozen=True):
    """The answer to a request that asked for nothing back."""


class Accepted(Struct, frozen=True):
    """Two-phase: the message is in the stream and will be saved, or refused, later."""

    client_msg_id: str
    server_msg_id: int
    conversation_id: str


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
    reader_id: str = ""


class OfflinePulled(Struct, frozen=True):
    page: OfflinePage


class LastMessages(Struct, frozen=True):
    """The last visible message of each conversation asked for, as many as fit."""

    messages: Sequence[Message]
    has_more: bool = False


class Synced(Struct, frozen=True):
    heads: Sequence[Head]
    has_more: bool = False
    cursor: str = ""


class ConversationsListed(Struct, frozen=True):
    entries: Sequence[ConversationEntry]
    next_cursor: str = ""
    has_more: bool = False


class MarkedRead(Struct, frozen=True):
    conversation_id: str
    read_seq: int
    unread: int


class ResendDone(Struct, frozen=True):
    has_more: bool


class GroupShown(Struct, frozen=True):
    group: Group


class GroupsListed(Struct, frozen=True):
    groups: Sequence[Group]


class MembersListed(Struct, frozen=True):
    members: Sequence[GroupMember]
    next_cursor: str = ""
    has_more: bool = False


class Joined(Struct, frozen=True):
    status: str  # joined or pending


class Invited(Struct, frozen=True):
    added: Sequence[str]
    skipped: Sequence[tuple[str, str]]  # user, reason


# -- pushes -------------------------------------------------------------------------------------------


class Pushed(Struct, frozen=True, gc=False):
    """A message for one of its receivers, in one of few variants so that many share a frame. A provisional
    copy has no seq yet; the final one replaces it."""

    message: Message
    important: bool = False
    silent: bool = False
    resend: bool = False
    quoted: bool = True
    provisional: bool = False


class Withdrawn(Struct, frozen=True):
    """The provisional copy of a message that will not be saved."""

    server_msg_id: int
    conversation_id: str
    reason: str


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
    """An error: the answer to a request (which the dialect remembers), or out of the blue; in that case
    `client_msg_id` says which send it is about, if any."""

    error: NexoError
    client_msg_id: str | None = None


Event = (
    SignedIn
    | SignInFailed
    | TokensIssued
    | Registered
    | Pinged
    | Done
    | Accepted
    | Saved
    | Recalled
    | Pulled
    | OfflinePulled
    | LastMessages
    | Synced
    | ConversationsListed
    | MarkedRead
    | ResendDone
    | GroupShown
    | GroupsListed
    | MembersListed
    | Joined
    | Invited
    | Pushed
    | Withdrawn
    | Receipt
    | Notify
    | HeadsChanged
    | Resync
    | IsTyping
    | Presence
    | Failed
)
