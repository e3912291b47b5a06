"""The nouns of Nexo. Plain values: no I/O, no behaviour beyond what follows from their own fields.

Those that exist by the thousand are `gc=False`: they cannot be part of a cycle, and the collector would walk
over all of them again and again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from msgspec import Struct

from nexo import ids


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


FIRST_EVENT = 100  # types from here on are made by the server and never count as unread


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


class MessageStatus(IntEnum):
    NORMAL = 0
    RECALLED = 1


MUTED_FOREVER = -1  # in `muted_until` and `mute_until`; 0 is not muted, anything else a time

JOIN_POLICIES = ("open", "approval", "invite")


class Quote(Struct, frozen=True, gc=False):
    """What a reply shows of its target. Made by the server on every read, for one reader."""

    server_msg_id: int
    sender_id: str
    msg_type: int
    text: str


class Message(Struct, gc=False):
    """A stored message or event, as one reader may see it. `content` and `extra` are JSON text."""

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

    @property
    def is_event(self) -> bool:
        return self.msg_type >= FIRST_EVENT

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
    filtered: bool = False  # the filter changed the content: the sender is told
    rejected: bool = False  # the filter refuses it; said only to those who may send at all
    is_retry: bool = False  # known to be one: its row is looked for first
    server_msg_id: int | None = None  # given when it was accepted; otherwise when it is stored
    fence: tuple[int, int] | None = None  # shard and epoch: stored only while they belong together
    sent_at: int = 0  # by the client's clock, if it said so


class Sent(Struct, gc=False):
    """What became of a draft: a committed row. `fresh` is False when the row was there already."""

    message: Message
    fresh: bool
    quoted_seq: int | None = None  # where the quote's target is: readers who cannot see it get none
    content_changed: bool = False
    member_epoch: int = 0


class Member(Struct, gc=False):
    """One user's part in one conversation. The current (or last) span is here, earlier ones apart."""

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


class Head(Struct):
    """A conversation as SYNC tells it to one user."""

    conversation_id: str
    head_seq: int
    min_seq: int
    read_seq: int
    delivered_seq: int
    unread: int


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


class Page(Struct):
    """Messages of one conversation. Everything visible below `next_seq` has been given."""

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
    """A cursor that moved: who is to be told, and from where to where (for the log)."""

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


class GroupMember(Struct):
    user_id: str
    role: int
    nickname: str
    group_nickname: str
    joined_at: int
    muted_until: int


class JoinRequest(Struct):
    user_id: str
    message: str
    created_at: int


class Session(Struct):
    """One login. Valid while not revoked and of the user's present `session_version`."""

    sid: str
    user_id: str
    platform_id: int
    device_id: str
    version: int
    expires_at: int = 0  # end of the access token that was shown; 0 without one


JsonValue = Any
