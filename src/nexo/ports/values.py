"""What goes through the ports: changes, results and members."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from nexo.core.model import Draft, Message, Reaction
from nexo.ids import now_ms


class GroupDraft(NamedTuple):
    creator_id: str
    name: str
    member_ids: list[str]  # without the creator
    avatar: str
    introduction: str
    join_policy: str
    extra: str | None
    group_type: int = 0


class GroupChange(NamedTuple):
    """A committed change of a group: its event (None when nothing changed) and the users concerned."""

    event: Message | None
    added: list[str]
    skipped: list[tuple[str, str]]  # user, reason
    member_epoch: int


class RecallResult(NamedTuple):
    server_msg_id: int
    conversation_id: str
    seq: int  # of the event
    event: Message | None  # None: it was recalled before
    member_epoch: int


class MessageEvent(NamedTuple):
    """A committed event about an earlier message: an edit, changed reactions, a pin. `event` shows what receivers who
    may see the message get; `core.message_events.bare` makes what other receivers get."""

    event: Message
    member_epoch: int


class MessageEdit(NamedTuple):
    """A checked edit. The draft has the new content and the client_msg_id of the request."""

    server_msg_id: int
    draft: Draft
    mentions: tuple[str, ...] | None  # None: as they are


class EditResult(NamedTuple):
    server_msg_id: int
    conversation_id: str
    seq: int  # of the event; without an event that of the message
    edited_at: int | None
    content: str
    published: MessageEvent | None  # None: nothing was changed by this call


class ReactResult(NamedTuple):
    server_msg_id: int
    conversation_id: str
    reactions: tuple[Reaction, ...]
    is_changed: bool


class ReactionsWritten(NamedTuple):
    """The result of writing the event of a message's reactions."""

    published: MessageEvent | None  # None: there was nothing to announce
    again_ms: int = 0  # too early: to be tried again after this time


class PinResult(NamedTuple):
    server_msg_id: int
    conversation_id: str
    seq: int  # of the event
    published: MessageEvent | None


class GivenReaction(NamedTuple):
    emoji: str
    user_id: str
    at: int


class Located(NamedTuple):
    conversation_id: str
    seq: int
    sender_id: str


class Listener(NamedTuple):
    """A member, as delivery needs it."""

    from_seq: int
    recv_msg_opt: int
    blocked: bool  # by their peer, in a single chat
    past: tuple[tuple[int, int], ...]  # earlier spans
    silent_until: int = 0  # as `recv_msg_opt` 2 until then
    cleared_seq: int = 0

    @property
    def is_silent(self) -> bool:
        if self.recv_msg_opt or not self.silent_until:
            return self.recv_msg_opt == 2
        return self.silent_until > now_ms()

    def sees(self, seq: int) -> bool:
        if seq <= self.cleared_seq:
            return False
        return seq >= self.from_seq or any(low <= seq <= high for low, high in self.past)


class Audience(NamedTuple):
    """The members of a conversation at one `member_epoch`."""

    epoch: int
    listeners: dict[str, Listener]
    newcomers: Mapping[str, int] = MappingProxyType({})  # users that joined a group a moment ago: milliseconds since


class MemberSettings(NamedTuple):
    """Settings of a member for a conversation; None leaves one unchanged. Draft and extra are JSON, which None
    removes and UNSET leaves unchanged."""

    pinned: bool | None = None
    recv_msg_opt: int | None = None
    hidden: bool | None = None
    archived: bool | None = None
    silent_until: int | None = None
    marked_unread: bool | None = None
    draft: str | UnsetType | None = UNSET
    extra: str | UnsetType | None = UNSET


class Deletion(NamedTuple):
    """What a user deleted for themselves in one conversation: these messages, or everything up to a seq; neither if
    nothing changed."""

    user_id: str
    conversation_id: str
    server_msg_ids: tuple[int, ...]
    up_to_seq: int | None
    deleted_rev: int  # after it
    unread: int  # after it
    origin: object | None = None  # the connection of this instance that gets the answer, and therefore no push


class DeletedSince(NamedTuple):
    """A page of deletions: single messages, and what was cleared. `deleted_rev` is where the next page begins."""

    conversation_id: str
    server_msg_ids: list[int]
    up_to_seq: int | None
    deleted_rev: int
    has_more: bool


class ActiveSince(NamedTuple):
    now_ms: int  # by the database's clock
    heads: list[tuple[str, str, int]]  # user, conversation, head


class Permission(NamedTuple):
    is_allowed: bool | None  # None: unknown, a single chat that does not exist yet
    member_epoch: int  # of the conversation when it was looked up
