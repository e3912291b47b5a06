"""What the calls answer, inside `data`. Messages have their shape from `core/shapes.py`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from nexo.core.model import (
    ROLE_NAMES,
    ConversationEntry,
    Group,
    GroupMember,
    Head,
    JoinRequest,
    OfflinePage,
    Page,
    Role,
    User,
)
from nexo.core.shapes import CamelMessage, MessageShape, camel_message, is_important, message_shape
from nexo.ports import GroupChange, Recall

NextCursor = Annotated[str, Meta(description="For the next page; empty when there is none.")]


class Empty(Struct):
    """Nothing to tell: it is done."""


# -- users -----------------------------------------------------------------------------------------------


class UserShape(Struct):
    user_id: str
    nickname: str
    avatar: str
    extra: Raw | None
    created_at: int


class Users(Struct):
    users: list[UserShape]


class UserOnline(Struct):
    user_id: str
    online: bool
    platforms: list[int]


class UsersOnline(Struct):
    users: list[UserOnline]


class UserIds(Struct):
    user_ids: list[str]


def user_shape(user: User) -> UserShape:
    extra = None if user.extra is None else Raw(user.extra.encode())
    return UserShape(user.user_id, user.nickname, user.avatar, extra, user.created_at)


# -- messages --------------------------------------------------------------------------------------------


class Messages(Struct):
    """Everything visible below `next_seq` has been given (newest first: everything from `next_seq` on)."""

    messages: list[MessageShape]
    head_seq: int
    has_more: bool
    next_seq: int | UnsetType = UNSET


class OfflineMessages(Struct):
    messages: list[MessageShape]
    next_cursor: NextCursor
    has_more: bool


class CamelMessages(Struct, rename="camel"):
    messages: list[CamelMessage]
    head_seq: int
    next_seq: int
    has_more: bool


class Recalled(Struct):
    """`seq` is that of the event which tells of it."""

    server_msg_id: str
    seq: int


def messages_shape(page: Page) -> Messages:
    messages = [message_shape(message) for message in page.messages]
    return Messages(messages, page.head_seq, page.has_more, UNSET if page.next_seq is None else page.next_seq)


def offline_shape(page: OfflinePage) -> OfflineMessages:
    return OfflineMessages([message_shape(message) for message in page.messages], page.next_cursor, page.has_more)


def camel_messages(page: Page, reader_id: str) -> CamelMessages:
    messages = [camel_message(message, is_important(message, reader_id)) for message in page.messages]
    return CamelMessages(messages, page.head_seq, page.next_seq or 0, page.has_more)


def recalled_shape(recall: Recall) -> Recalled:
    return Recalled(str(recall.server_msg_id), recall.seq)


# -- conversations ---------------------------------------------------------------------------------------


class ConversationShape(Struct):
    """`conversation_type` 1 has a `peer_user_id` and the peer's cursors, 2 a `group_id`."""

    conversation_id: str
    conversation_type: Literal[1, 2]
    last_message: MessageShape | None
    head_seq: int
    min_seq: int
    read_seq: int
    delivered_seq: int
    unread: int
    unread_mentions: int
    pinned: bool
    recv_msg_opt: int
    updated_at: int
    peer_user_id: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET
    peer_read_seq: int | UnsetType = UNSET
    peer_delivered_seq: int | UnsetType = UNSET


class Conversations(Struct):
    conversations: list[ConversationShape]
    next_cursor: NextCursor
    has_more: bool


class Heads(Struct):
    conversations: list[Head]
    next_cursor: NextCursor
    has_more: bool


class NewestSeq(Struct):
    conversation_id: str
    head_seq: int
    min_seq: int
    read_seq: int
    unread: int


class NewestSeqs(Struct):
    conversations: list[NewestSeq]


class MarkedRead(Struct):
    conversation_id: str
    read_seq: int
    unread: int


def conversation_shape(entry: ConversationEntry) -> ConversationShape:
    return ConversationShape(
        entry.conversation_id,
        2 if entry.peer_user_id is None else 1,
        None if entry.last_message is None else message_shape(entry.last_message),
        entry.head_seq,
        entry.min_seq,
        entry.read_seq,
        entry.delivered_seq,
        entry.unread,
        entry.unread_mentions,
        entry.pinned,
        entry.recv_msg_opt,
        entry.updated_at,
        UNSET if entry.peer_user_id is None else entry.peer_user_id,
        UNSET if entry.group_id is None else entry.group_id,
        UNSET if entry.peer_read_seq is None else entry.peer_read_seq,
        UNSET if entry.peer_delivered_seq is None else entry.peer_delivered_seq,
    )


def newest_seq(head: Head) -> NewestSeq:
    return NewestSeq(head.conversation_id, head.head_seq, head.min_seq, head.read_seq, head.unread)


# -- groups ----------------------------------------------------------------------------------------------


class GroupShape(Struct):
    """`status` 0 is alive, 1 dismissed. `mute_until` 0 is not muted, -1 without end."""

    group_id: str
    conversation_id: str
    name: str
    avatar: str
    introduction: str
    announcement: str
    group_type: int
    creator_id: str
    owner_id: str
    member_count: int
    status: Literal[0, 1]
    join_policy: str
    mute_until: int
    extra: Raw | None
    created_at: int


class GroupList(Struct):
    groups: list[GroupShape]


class JoinRequests(Struct):
    requests: list[JoinRequest]


class Joined(Struct):
    status: str


class Skipped(Struct):
    user_id: str
    reason: str


class Invited(Struct):
    added: list[str]
    skipped: list[Skipped]


class MemberShape(Struct):
    """`muted_until` 0 is not muted, -1 without end."""

    user_id: str
    role: str
    nickname: str
    joined_at: int
    muted_until: int


class MemberList(Struct):
    members: list[MemberShape]
    next_cursor: NextCursor
    has_more: bool


def group_shape(group: Group) -> GroupShape:
    return GroupShape(
        group.group_id,
        group.conversation_id,
        group.name,
        group.avatar,
        group.introduction,
        group.announcement,
        group.group_type,
        group.creator_id,
        group.owner_id,
        group.member_count,
        1 if group.status else 0,
        group.join_policy,
        group.mute_until,
        None if group.extra is None else Raw(group.extra.encode()),
        group.created_at,
    )


def invited_shape(change: GroupChange) -> Invited:
    return Invited(change.added, [Skipped(user_id, reason) for user_id, reason in change.skipped])


def member_shape(member: GroupMember) -> MemberShape:
    name = member.group_nickname or member.nickname
    return MemberShape(member.user_id, ROLE_NAMES[Role(member.role)], name, member.joined_at, member.muted_until)
