"""Events that the server sends over a connection, in any dialect: replies to requests, and pushes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from nexo.core.model import (
    ConversationEntry,
    Group,
    GroupGlimpse,
    GroupMember,
    Head,
    Message,
    OfflinePage,
    Page,
    Reaction,
    User,
)
from nexo.core.numbering import NumberedMessages, NumberHead
from nexo.core.people import Contact, ContactRequest
from nexo.errors import NexoError

# -- replies ------------------------------------------------------------------------------------------


class SignedIn(Struct, frozen=True):
    user_id: str
    conn_id: str
    heartbeat_ms: int


class SignInFailed(Struct, frozen=True):
    error: NexoError


class TokensIssued(Struct, frozen=True):
    """The tokens of a new or refreshed session. The `repr` shows no token."""

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
    """The answer to a request without a result."""


class Accepted(Struct, frozen=True):
    """Two-phase: the message is in the stream and will be saved, or refused, later."""

    client_msg_id: str
    server_msg_id: int
    conversation_id: str


class Saved(Struct, frozen=True, gc=False):
    """The message is in the database. `content` is set when the filter changed it."""

    message: Message
    content_changed: bool = False


class Recalled(Struct, frozen=True):
    """The answer to a recall; `seq` is that of the event."""

    server_msg_id: int
    conversation_id: str
    seq: int


class Edited(Struct, frozen=True):
    """The answer to an edit; `seq` is that of the event. `content` is set when the filter changed it."""

    server_msg_id: int
    conversation_id: str
    seq: int
    edited_at: int | None
    content: str | None = None


class Reacted(Struct, frozen=True):
    """The answer to a reaction, with all reactions of the message as the caller sees them."""

    server_msg_id: int
    conversation_id: str
    reactions: tuple[Reaction, ...]


class PinChanged(Struct, frozen=True):
    """The answer to pinning and unpinning; `seq` is that of the event."""

    server_msg_id: int
    conversation_id: str
    seq: int


class Pulled(Struct, frozen=True):
    conversation_id: str
    page: Page
    reader_id: str = ""


class OfflinePulled(Struct, frozen=True):
    page: OfflinePage


class LastMessagesListed(Struct, frozen=True):
    """The last visible message of each requested conversation, as many as fit."""

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


class GroupGlimpsed(Struct, frozen=True):
    """A group, as users outside it see it."""

    group: GroupGlimpse


class GroupsListed(Struct, frozen=True):
    groups: Sequence[Group]


class MembersListed(Struct, frozen=True):
    members: Sequence[GroupMember]
    next_cursor: str = ""
    has_more: bool = False


class Joined(Struct, frozen=True):
    status: str  # joined or pending
    group_id: str = ""  # of a link


class Invited(Struct, frozen=True):
    added: Sequence[str]
    skipped: Sequence[tuple[str, str]]  # user, reason


class ContactAsked(Struct, frozen=True):
    """The answer to a contact request or a decision: pending, accepted or refused."""

    status: str
    request_id: int


class CallInvited(Struct, frozen=True):
    """The answer to an invitation."""

    call_id: int
    client_msg_id: str


class ContactShown(Struct, frozen=True):
    contact: Contact


class ContactsListed(Struct, frozen=True):
    contacts: Sequence[Contact]
    next_cursor: str = ""
    has_more: bool = False


class ContactRequestsListed(Struct, frozen=True):
    requests: Sequence[ContactRequest]
    next_cursor: str = ""
    has_more: bool = False


class NumbersListed(Done, frozen=True):
    """Only for the dialect of OpenIM's clients, whose requests ask for numbers."""

    heads: Sequence[NumberHead]


class NumbersPulled(Done, frozen=True):
    """Messages by number, by the name that the client has for each conversation."""

    parts: Sequence[tuple[str, NumberedMessages]]


# -- pushes -------------------------------------------------------------------------------------------


class Pushed(Struct, frozen=True, gc=False):
    """A message for a receiver. Few variants exist, so that many receivers share an encoded frame. A provisional copy
    has no seq yet; the final copy replaces it."""

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
    """`user_id` has received (`ack_type` delivered) or read (read) everything up to this message."""

    ack_type: str
    conversation_id: str
    server_msg_id: int
    seq: int
    user_id: str
    after: int = 0  # it is new for what follows this seq, where that is known


class Notify(Struct, frozen=True):
    """A group has new messages; the client pulls them."""

    conversation_id: str
    head_seq: int
    important: bool = False


class HeadsChanged(Struct, frozen=True):
    heads: Sequence[tuple[str, int]]


class Resync(Struct, frozen=True):
    reason: str
    after_ms: int
    conversation_ids: Sequence[str] = ()


class Deleted(Struct, frozen=True):
    """The user has deleted messages for themselves, on another device: these, or everything up to a seq.
    `deleted_rev` is that of SYNC after it."""

    conversation_id: str
    server_msg_ids: Sequence[int] = ()
    up_to_seq: int | None = None
    deleted_rev: int = 0


class IsTyping(Struct, frozen=True):
    user_id: str
    conversation_id: str
    on: bool


class Presence(Struct, frozen=True):
    users: Sequence[tuple[str, bool, Sequence[int]]]  # user, online, platforms


class ContactRequested(Struct, frozen=True):
    """`user_id` asks the receiver to become a contact."""

    request_id: int
    user_id: str
    message: str
    at: int


class ContactDecided(Struct, frozen=True):
    """`user_id` has accepted or refused a request of the receiver."""

    request_id: int
    user_id: str
    accepted: bool
    at: int


class JoinRequested(Struct, frozen=True):
    """`user_id` asks to join a group that the receiver manages."""

    group_id: str
    user_id: str
    message: str
    at: int


class CallFrame(Struct, frozen=True, kw_only=True):
    """A frame of a call: a connection that cannot take it is closed. `only`: address and session of the device that
    takes part, if the frame is not for all connections of the user; `besides`: the address of one that does not get it.
    The `repr` shows no description and no candidate."""

    call_id: int
    only: tuple[str, str] | None = None
    besides: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(call_id={self.call_id}, …)"


class CallRinging(CallFrame, frozen=True, kw_only=True):
    """`user_id` calls."""

    user_id: str
    kind: str
    sdp: str


class CallAccepted(CallFrame, frozen=True, kw_only=True):
    user_id: str
    sdp: str


class CallSignaled(CallFrame, frozen=True, kw_only=True):
    """A candidate, or a new description, of the other device."""

    user_id: str
    fields: dict[str, Any]  # by their names in snake case


class CallEnded(CallFrame, frozen=True, kw_only=True):
    """`duration_ms` is None for a call that was never answered."""

    reason: str
    duration_ms: int | None = None


class CallTimedOut(CallFrame, frozen=True, kw_only=True):
    pass


class Failed(Struct, frozen=True):
    """An error: the answer to a request (the dialect knows which), or unsolicited. An unsolicited error about a send
    carries its `client_msg_id`."""

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
    | Edited
    | Reacted
    | PinChanged
    | Pulled
    | OfflinePulled
    | LastMessagesListed
    | Synced
    | ConversationsListed
    | MarkedRead
    | ResendDone
    | GroupShown
    | GroupGlimpsed
    | GroupsListed
    | MembersListed
    | Joined
    | Invited
    | ContactAsked
    | CallInvited
    | ContactShown
    | ContactsListed
    | ContactRequestsListed
    | Pushed
    | Withdrawn
    | Receipt
    | Notify
    | HeadsChanged
    | Resync
    | Deleted
    | IsTyping
    | Presence
    | ContactRequested
    | ContactDecided
    | JoinRequested
    | CallRinging
    | CallAccepted
    | CallSignaled
    | CallEnded
    | CallTimedOut
    | Failed
)
