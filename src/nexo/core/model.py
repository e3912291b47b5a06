"""The nouns of Nexo. Plain values: no I/O, no behaviour beyond what follows from their own fields.

Those that exist by the thousand are `gc=False`: they cannot be part of a cycle, and the collector would walk
over all of them again and again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import astuple

from nexo import ids
from nexo.core.message_fields import carries_plain


class Kind(IntEnum):
    """The kind of a conversation."""

    SINGLE = 1
    GROUP = 2


class MsgType(IntEnum):
    TEXT = 1
    IMAGE = 2
    VIDEO = 3
    AUDIO = 4
    FILE = 5
    CUSTOM = 6
    QUOTE = 7
    MERGED = 8  # several messages forwarded as one; made by the server
    RECALLED = 100
    GROUP_CREATED = 101
    JOINED = 102
    LEFT = 103
    REMOVED = 104
    OWNER_TRANSFERRED = 105
    ROLE_CHANGED = 106
    GROUP_UPDATED = 107
    DISMISSED = 108
    MUTED = 109
    EDITED = 110
    REACTIONS = 111
    PINNED = 112
    CALL = 120  # the record of a call


FIRST_EVENT = 100  # types from here on are made by the server; of them only records of missed calls count as unread
# Events about an earlier message. They take a seq, and leave last message, last activity and hidden as they are.
QUIET_TYPES = frozenset((int(MsgType.EDITED), int(MsgType.REACTIONS), int(MsgType.PINNED)))


class Role(IntEnum):
    MEMBER = 0
    ADMIN = 1
    OWNER = 2


ROLE_NAMES = {Role.MEMBER: "member", Role.ADMIN: "admin", Role.OWNER: "owner"}


class MemberStatus(IntEnum):
    NORMAL = 0
    LEFT = 1
    REMOVED = 2


class ConversationStatus(IntEnum):
    NORMAL = 0
    DISMISSED = 1
    DELETED = 2  # dismissed, and gone from every member's list
    DISABLED = 3  # by a moderator: closed for changes until it is enabled again


ENDED = (ConversationStatus.DISMISSED, ConversationStatus.DELETED)  # for good: nothing follows `closed_seq`


class MessageStatus(IntEnum):
    NORMAL = 0
    RECALLED = 1
    EXPIRED = 2  # its content was erased at its time


class Blocked(IntEnum):
    """Why a member of a single chat cannot send."""

    NO = 0
    BY_PEER = 1
    PEER_CLOSED = 2  # the account of the peer has been closed for good


MUTED_FOREVER = -1  # in `muted_until` and `mute_until`; 0 is not muted, anything else a time

JOIN_POLICIES = ("open", "approval", "invite")


class Quote(Struct, frozen=True, gc=False):
    """What a reply shows of its target. Made by the server on every read, for one reader."""

    server_msg_id: int
    sender_id: str
    msg_type: int
    text: str


class Reaction(Struct, frozen=True, gc=False):
    """How many users reacted to a message with this emoji, and whether the reader did."""

    emoji: str
    count: int
    mine: bool = False


class Message(Struct, gc=False):
    """A stored message or event, as one reader may see it. `content` and `extra` are JSON text. What its fields are
    in columns, streams and frames is in `message_fields.py`."""

    server_msg_id: int
    client_msg_id: str | None
    conversation_id: str
    seq: int
    sender_id: str
    msg_type: int
    content: str
    send_at: int
    mentions: tuple[str, ...] = ()
    reply_to: int | None = None
    quote: Quote | None = None
    extra: str | None = None
    status: int = 0
    recalled_at: int | None = None
    edited_at: int | None = None
    reactions: tuple[Reaction, ...] | None = None  # None: there never were any
    forwarded_from: str | None = None
    expires_at: int | None = None  # its content is not shown from then on
    number: int = 0  # how many messages its conversation has up to it, where that is known; no field for clients

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Returns whether both are the same message, whether or not its number is known."""
        if not isinstance(other, Message):
            return NotImplemented
        return astuple(self)[:-1] == astuple(other)[:-1]

    @property
    def is_event(self) -> bool:
        return self.msg_type >= FIRST_EVENT

    @property
    def shows_as_event(self) -> bool:
        """Returns whether it is no message to clients; the record of a call is one, made by the server."""
        return self.msg_type >= FIRST_EVENT and self.msg_type != MsgType.CALL

    @property
    def group_id(self) -> str | None:
        # a stored message's conversation is known to be well-formed: no need to check it for every frame
        return self.conversation_id[3:] if self.conversation_id.startswith("sg_") else None

    @property
    def recv_id(self) -> str | None:
        if not self.conversation_id.startswith("si_"):
            return None
        low, _, high = self.conversation_id[3:].partition(":")
        return high if low == self.sender_id else low


class Draft(Struct, gc=False):
    """A message that was checked for its shape and waits to be stored."""

    sender_id: str
    client_msg_id: str
    conversation_id: str
    kind: int
    msg_type: int
    content: str  # JSON text, after the filter
    request_hash: bytes  # over what the client sent, before the filter
    mentions: tuple[str, ...] = ()
    reply_to: int | None = None
    extra: str | None = None
    forwarded_from: str | None = None
    sent_at: int = 0  # by the client's clock, 0 when it gave none: shown in streams, neither hashed nor stored
    expires_s: int = 0  # how long it is shown; 0: as long as its conversation says
    filtered: bool = False  # the filter changed the content; the ACK reports it
    rejected: bool = False  # refused by the filter; reported only to senders with permission
    is_retry: bool = False  # known to be one: its row is looked for first
    accepted_at: int = 0  # two-phase: when the sender got `accepted`, which is when it was sent
    server_msg_id: int | None = None  # made when the draft was accepted; otherwise when it is stored
    fence: tuple[int, int] | None = None  # shard and epoch: stored only while this is the shard's epoch

    @carries_plain
    def message(
        self, server_msg_id: int, seq: int, send_at: int, mentions: tuple[str, ...], quote: Quote | None = None
    ) -> Message:
        """The message it becomes."""
        return Message(
            server_msg_id,
            self.client_msg_id,
            self.conversation_id,
            seq,
            self.sender_id,
            self.msg_type,
            self.content,
            send_at,
            mentions,
            self.reply_to,
            quote,
            self.extra,
            0,
            None,
            None,
            None,
            self.forwarded_from,
        )


class Sent(Struct, gc=False):
    """A draft as a committed row. `fresh` is False when an earlier attempt had stored the row."""

    message: Message
    fresh: bool
    quoted_seq: int | None = None  # seq of the quote's target: receivers who cannot see it get no quote
    content_changed: bool = False
    member_epoch: int = 0
    # of the last edit of the quote's target: only members that see this seq get the quoted text
    quoted_edit_seq: int | None = None
    unquoted_for: tuple[str, ...] = ()  # members who deleted the quote's target


class Member(Struct, gc=False):
    """One user's part in one conversation. The current (or last) span is here, earlier ones are in `member_spans`."""

    conv: int
    user_id: str
    peer_id: str
    role: int
    status: int
    from_seq: int
    to_seq: int | None
    to_countable: int | None
    to_at_all: int | None
    has_past: int
    delivered_seq: int
    read_seq: int
    read_countable: int
    own_above: int
    last_own_seq: int
    mention_unread: int
    at_all_base: int
    muted_until: int
    blocked: int
    cleared_seq: int = 0  # nothing up to it is shown to the member
    deleted_above: int = 0  # countable messages of others above `read_seq` that the member deleted or cleared
    deleted_count: int = 0  # rows in `message_deletions`
    marked_unread: int = 0
    contact: int = 0  # the peer is one (single chats)


class Conversation(Struct, gc=False):
    """The row that is locked while anything in the conversation changes."""

    id: int
    conversation_id: str
    kind: int
    status: int
    head_seq: int
    countable: int
    at_all_count: int
    last_send_at: int
    mute_until: int
    member_epoch: int
    member_count: int
    message_ttl_s: int = 0  # how long new messages are shown; 0: without end


class DraftText(Struct, omit_defaults=True):
    """A text that a user has begun to write, and the message that it replies to."""

    text: str
    reply_to: str | None = None


class Head(Struct):
    """A conversation as SYNC lists it for one user. A setting that is left out has its default value."""

    conversation_id: str
    head_seq: int
    min_seq: int
    read_seq: int
    delivered_seq: int
    unread: int
    deleted_rev: int = 0  # grows with each deletion by this user
    pinned: bool | UnsetType = UNSET
    recv_msg_opt: int | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    silent_until: int | UnsetType = UNSET
    marked_unread: bool | UnsetType = UNSET
    message_ttl_s: int | UnsetType = UNSET
    draft: DraftText | UnsetType = UNSET
    extra: Raw | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET


class ConversationEntry(Struct):
    """A conversation in one user's list."""

    conversation_id: str
    kind: int
    peer_user_id: str | None
    group_id: str | None
    last_message: Message | None
    head_seq: int
    min_seq: int
    read_seq: int
    delivered_seq: int
    unread: int
    unread_mentions: int
    pinned: bool
    recv_msg_opt: int
    peer_read_seq: int | None
    peer_delivered_seq: int | None
    updated_at: int
    deleted_rev: int = 0
    archived: bool = False
    silent_until: int = 0
    marked_unread: bool = False
    message_ttl_s: int = 0
    draft: DraftText | None = None
    extra: str | None = None


class Page(Struct):
    """Messages of one conversation. Everything visible below `next_seq` has been returned."""

    messages: list[Message]
    head_seq: int
    next_seq: int | None
    has_more: bool


class OfflinePage(Struct):
    messages: list[Message]
    next_cursor: str
    has_more: bool


class Receipts(Struct):
    read: list[str]
    delivered: list[str]
    pending: list[str]
    read_count: int
    delivered_count: int


class CursorChange(Struct):
    """A cursor that moved: whose, and from where to where."""

    conversation_id: str
    user_id: str
    delivered_from: int
    delivered_to: int
    read_from: int
    read_to: int


class User(Struct):
    user_id: str
    nickname: str
    avatar: str
    extra: str | None
    is_admin: bool
    created_at: int
    deleted_at: int = 0


class Group(Struct):
    group_id: str
    name: str
    introduction: str
    announcement: str
    avatar: str
    group_type: int
    creator_id: str
    owner_id: str
    join_policy: str
    extra: str | None
    status: int
    member_count: int
    mute_until: int
    created_at: int

    @property
    def conversation_id(self) -> str:
        return ids.group_conversation_id(self.group_id)

    @property
    def shown_status(self) -> Literal[0, 1, 2]:
        """Returns what clients see: 0 alive, 1 dismissed, 2 disabled."""
        if self.status == ConversationStatus.DISABLED:
            return 2
        return 1 if self.status else 0


class GroupGlimpse(Struct):
    """What users outside a group see of it; None: not shown."""

    group_id: str
    join_policy: str
    name: str | None = None
    avatar: str | None = None
    member_count: int | None = None


class GroupMember(Struct):
    user_id: str
    role: int
    nickname: str
    group_nickname: str
    joined_at: int
    muted_until: int
    group_avatar: str = ""
    inviter_id: str = ""
    extra: str | None = None


class JoinRequest(Struct):
    user_id: str
    message: str
    created_at: int


class SessionOrigin(IntEnum):
    PASSWORD = 0
    KEY = 1  # of a backend, with the scope `tokens` or `act`
    EXTERNAL = 2  # a product's own token


class Session(Struct):
    """One login. Valid while not revoked and of the user's current `session_version`."""

    sid: str
    user_id: str
    platform_id: int
    device_id: str
    version: int
    expires_at: int = 0  # end of the access token that was shown; 0 without one
    origin: int = 0
    issued_after: int = 0  # tokens of a product that were issued until then do not open it
    address: str = ""  # from which it was opened; not kept in memory afterwards

    @property
    def may_administer(self) -> bool:
        """Returns whether an administrator has an administrator's rights in this session."""
        return self.origin == SessionOrigin.PASSWORD
