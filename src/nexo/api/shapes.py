"""Answers of the routes: the structs in `data`. Messages have their shape from `core/shapes.py`; users, groups and
members from `core/profile_shapes.py`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, structs

from nexo.core.model import ConversationEntry, DraftText, Group, GroupGlimpse, Head, JoinRequest, OfflinePage, Page
from nexo.core.profile_shapes import GroupShape, MemberShape, UserShape, group_shape
from nexo.core.shapes import (
    CamelMessage,
    MessageShape,
    ReactionShape,
    camel_message,
    is_important,
    message_shape,
)
from nexo.ports import GroupChange, RecallResult
from nexo.service.forwarding import Forwarded

NextCursor = Annotated[str, Meta(description="For the next page; empty when there is none.")]


class Empty(Struct):
    """No data: success alone."""


# -- users -----------------------------------------------------------------------------------------------


class Users(Struct):
    users: list[UserShape]


class UserOnline(Struct):
    """`last_seen_at` is there for viewers that may see it."""

    user_id: str
    online: bool
    platforms: list[int]
    last_seen_at: int | UnsetType = UNSET


class UsersOnline(Struct):
    users: list[UserOnline]


class UserIds(Struct):
    user_ids: list[str]


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


class RecalledReply(Struct):
    """`seq` is that of the recall event."""

    server_msg_id: str
    seq: int


class ReactedReply(Struct):
    """All reactions of the message, as the caller sees them."""

    server_msg_id: str
    conversation_id: str
    reactions: list[ReactionShape]


class PinnedReply(Struct):
    """`seq` is that of the event."""

    server_msg_id: str
    conversation_id: str
    seq: int


class Pins(Struct):
    messages: list[MessageShape]


class GivenReactionShape(Struct):
    emoji: str
    user_id: str
    at: int


class ReactionList(Struct):
    reactions: list[GivenReactionShape]
    next_cursor: NextCursor
    has_more: bool


class ForwardedTo(Struct):
    """What was sent to one target: the ids of the messages, or the name of the error."""

    recv_id: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET
    server_msg_ids: list[str] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class ForwardedReply(Struct):
    sent: list[ForwardedTo]


def forwarded_shape(forwarded: Forwarded) -> ForwardedTo:
    shape = ForwardedTo()
    if forwarded.target.group_id is not None:
        shape.group_id = forwarded.target.group_id
    if forwarded.target.recv_id is not None:
        shape.recv_id = forwarded.target.recv_id
    if forwarded.error is not None:
        shape.error = forwarded.error.name
    else:
        shape.server_msg_ids = [str(one) for one in forwarded.server_msg_ids]
    return shape


def messages_shape(page: Page) -> Messages:
    messages = [message_shape(message) for message in page.messages]
    return Messages(messages, page.head_seq, page.has_more, UNSET if page.next_seq is None else page.next_seq)


def offline_shape(page: OfflinePage) -> OfflineMessages:
    return OfflineMessages([message_shape(message) for message in page.messages], page.next_cursor, page.has_more)


def camel_messages(page: Page, reader_id: str) -> CamelMessages:
    messages = [camel_message(message, is_important(message, reader_id)) for message in page.messages]
    return CamelMessages(messages, page.head_seq, page.next_seq or 0, page.has_more)


def recalled_shape(recall: RecallResult) -> RecalledReply:
    return RecalledReply(str(recall.server_msg_id), recall.seq)


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
    deleted_rev: int = 0
    archived: bool = False
    silent_until: int = 0
    marked_unread: bool = False
    message_ttl_s: int = 0
    draft: DraftText | None = None
    extra: Raw | None = None


class ConversationsReply(Struct):
    conversations: list[ConversationShape]
    next_cursor: NextCursor
    has_more: bool


class HeadsReply(Struct):
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


class MarkedReadReply(Struct):
    conversation_id: str
    read_seq: int
    unread: int


class ClearedReply(Struct):
    """Everything up to `up_to_seq` is hidden from you."""

    conversation_id: str
    up_to_seq: int
    deleted_rev: int
    unread: int


class DeletedReply(Struct):
    """Messages that you deleted, and the seq up to which you cleared, after the revision that was asked for.
    `deleted_rev` is the `after` of the next page."""

    conversation_id: str
    server_msg_ids: list[str]
    up_to_seq: int | None
    deleted_rev: int
    has_more: bool


class SeqAt(Struct):
    """The first seq at or after the time; null when there is none."""

    seq: int | None


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
        entry.deleted_rev,
        entry.archived,
        entry.silent_until,
        entry.marked_unread,
        entry.message_ttl_s,
        entry.draft,
        None if entry.extra is None else Raw(entry.extra.encode()),
    )


def newest_seq(head: Head) -> NewestSeq:
    return NewestSeq(head.conversation_id, head.head_seq, head.min_seq, head.read_seq, head.unread)


# -- groups ----------------------------------------------------------------------------------------------


class GroupInfo(Struct):
    """As a group, for its members. Others get name, avatar, member_count and join_policy; of a group that one joins by
    invitation only, strangers get group_id and join_policy."""

    group_id: str
    join_policy: str
    name: str | UnsetType = UNSET
    avatar: str | UnsetType = UNSET
    member_count: int | UnsetType = UNSET
    conversation_id: str | UnsetType = UNSET
    introduction: str | UnsetType = UNSET
    announcement: str | UnsetType = UNSET
    group_type: int | UnsetType = UNSET
    creator_id: str | UnsetType = UNSET
    owner_id: str | UnsetType = UNSET
    status: Literal[0, 1, 2] | UnsetType = UNSET
    mute_until: int | UnsetType = UNSET
    extra: Raw | UnsetType | None = UNSET
    created_at: int | UnsetType = UNSET


class GroupList(Struct):
    groups: list[GroupShape]


class JoinRequests(Struct):
    requests: list[JoinRequest]


class JoinedReply(Struct):
    """`group_id` is there after joining by a link."""

    status: str
    group_id: str | UnsetType = UNSET


class Skipped(Struct):
    user_id: str
    reason: str


class InvitedReply(Struct):
    added: list[str]
    skipped: list[Skipped]


class MemberList(Struct):
    members: list[MemberShape]
    next_cursor: NextCursor
    has_more: bool


def group_info(group: Group | GroupGlimpse) -> GroupInfo:
    shown = structs.asdict(group if isinstance(group, GroupGlimpse) else group_shape(group))
    if isinstance(group, GroupGlimpse):
        shown = {name: value for name, value in shown.items() if value is not None}
    return GroupInfo(**shown)


def invited_shape(change: GroupChange) -> InvitedReply:
    return InvitedReply(change.added, [Skipped(user_id, reason) for user_id, reason in change.skipped])
