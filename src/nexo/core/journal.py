"""The journal: what an entry is, and which entries an event of a conversation yields.

A row of the journal holds references; an entry is what one of them becomes when it is handed out. To journal a new
type of event, give it a line in EVENTS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from nexo.core.calls import UserCall
from nexo.core.files import StoredFile
from nexo.core.model import Group, GroupMember, Message, MsgType, User
from nexo.errors import NexoError

# what a reference refers to: its first element
CHANGED = 1  # conversation, first seq, last seq: messages and events
USER = 2  # user, what happened to the account
READ = 3  # conversation, user: the read cursor moved
GROUP = 4  # conversation, what happened to the group without an event
FILE = 5  # file, what happened to it and its owner
EXPIRED = 6  # conversation, seq: a message whose content was erased
CONTACT = 7  # user, what happened, the other user
CALL = 8  # call, what happened to it


# every type that an entry can have; a reader may ask for one that this release does not write yet
ENTRY_TYPES = (
    *(f"message.{what}" for what in ("saved", "recalled", "edited", "reactions", "pinned", "expired")),
    "conversation.read",
    *(f"group.{what}" for what in ("created", "updated", "dismissed", "disabled", "enabled")),
    *(f"member.{what}" for what in ("joined", "left", "removed", "role", "muted")),
    *(f"contact.{what}" for what in ("requested", "accepted", "removed")),
    *(f"user.{what}" for what in ("created", "updated", "disabled", "enabled", "deleted")),
    *(f"call.{what}" for what in ("started", "ended")),
    *(f"file.{what}" for what in ("stored", "deleted")),
)


def check_types(types: Iterable[str]) -> tuple[str, ...]:
    """Returns the types in their fixed order. Raises `bad_types` for an unknown one."""
    chosen = set(types)
    unknown = sorted(chosen - set(ENTRY_TYPES))
    if unknown:
        raise NexoError("bad_types", f"There is no type {unknown[0]!r}; types are {', '.join(ENTRY_TYPES)}")
    return tuple(one for one in ENTRY_TYPES if one in chosen)


class Place(NamedTuple):
    """The position of a reader: the last finished row, and the number of finished parts of the row after it. A part is
    one message, event, account change or cursor; the entries of a part are never divided."""

    row: int
    part: int


class RecalledFact(Struct, frozen=True):
    server_msg_id: int
    conversation_id: str
    seq: int
    by: str


class ReactionsFact(Struct, frozen=True):
    """The reactions of a message as they were announced. The changes are None where they were too many."""

    server_msg_id: int
    conversation_id: str
    seq: int
    reactions: list[dict[str, Any]]
    added: list[dict[str, Any]] | None
    removed: list[dict[str, Any]] | None


class PinnedFact(Struct, frozen=True):
    server_msg_id: int
    conversation_id: str
    seq: int
    on: bool
    by: str


class MemberOf(Struct, frozen=True):
    group_id: str
    member: GroupMember


class FileFact(Struct, frozen=True):
    """A file; of a deleted one only these two are known."""

    file_id: str
    owner_id: str
    file: StoredFile | None = None


class ReadUpTo(Struct, frozen=True):
    conversation_id: str
    user_id: str
    read_seq: int


class ContactFact(Struct, frozen=True):
    """`user_id` has requested, accepted or removed the contact `contact_id`."""

    user_id: str
    contact_id: str
    created_at: int


Data = (
    Message
    | RecalledFact
    | ReactionsFact
    | PinnedFact
    | Group
    | MemberOf
    | User
    | ReadUpTo
    | ContactFact
    | FileFact
    | UserCall
)


class JournalEntry(Struct, frozen=True):
    """One committed change. `data` is as of now: a message that has been recalled since is blank."""

    event_id: str  # the same each time the entry is delivered
    type: str
    at: int  # milliseconds, by the database's clock
    conversation_id: str | None
    user_id: str | None  # the user concerned: sender, member, reader, account
    data: Data


class Fact(NamedTuple):
    """An entry without its data, which follows from the type. `user_id` is the member concerned."""

    type: str
    user_id: str | None = None


Content = dict[str, Any]
Rule = Callable[[Content], list[Fact]]


def _plain(entry_type: str) -> Rule:
    return lambda content: [Fact(entry_type)]


def _members(entry_type: str) -> Rule:
    """One for each user that the event names."""

    def rule(content: Content) -> list[Fact]:
        named = [*content.get("user_ids", ()), *(content.get(field) for field in ("user_id", "from", "to"))]
        return [Fact(entry_type, user_id) for user_id in named if user_id]

    return rule


def _members_and(rule: Rule, also: str) -> Rule:
    return lambda content: [*rule(content), Fact(also)]


def _members_or(rule: Rule, otherwise: str) -> Rule:
    return lambda content: rule(content) or [Fact(otherwise)]


EVENTS: dict[int, Rule] = {
    MsgType.RECALLED: _plain("message.recalled"),
    MsgType.GROUP_CREATED: _plain("group.created"),
    MsgType.JOINED: _members("member.joined"),
    MsgType.LEFT: _members("member.left"),
    MsgType.REMOVED: _members("member.removed"),
    MsgType.OWNER_TRANSFERRED: _members_and(_members("member.role"), "group.updated"),
    MsgType.ROLE_CHANGED: _members("member.role"),
    MsgType.GROUP_UPDATED: _plain("group.updated"),
    MsgType.DISMISSED: _plain("group.dismissed"),
    MsgType.MUTED: _members_or(_members("member.muted"), "group.updated"),
    MsgType.EDITED: _plain("message.edited"),
    MsgType.REACTIONS: _plain("message.reactions"),
    MsgType.PINNED: _plain("message.pinned"),
}
SAVED_TYPE = "message.saved"
SAVED = [Fact(SAVED_TYPE)]

# by the kind of reference: the beginnings of the types of entries that it can become
_BEGINNINGS = {
    CHANGED: ("message.", "group.", "member."),
    USER: ("user.",),
    READ: ("conversation.",),
    GROUP: ("group.",),
    CONTACT: ("contact.",),
    FILE: ("file.",),
    EXPIRED: ("message.",),
    CALL: ("call.",),
}

_decode = msgspec.json.Decoder(Content).decode


def content_of(message: Message) -> Content:
    return _decode(message.content)


def facts_of(message: Message) -> list[Fact]:
    """Returns the entries that a message or event becomes."""
    rule = EVENTS.get(message.msg_type)
    return SAVED if rule is None else rule(content_of(message))


def may_become(kind: int, types: Collection[str] | None) -> bool:
    """Returns whether a reference of this kind can become an entry of one of these types (None: of any)."""
    return types is None or any(wanted.startswith(_BEGINNINGS[kind]) for wanted in types)


# -- pages and consumers ----------------------------------------------------------------------


class JournalPage(NamedTuple):
    entries: list[JournalEntry]
    place: Place  # start of the next page
    has_more: bool
    is_waiting: bool  # for a transaction in progress: read again soon


class EventsPage(NamedTuple):
    entries: list[JournalEntry]
    next_cursor: str


class ConsumerLease(NamedTuple):
    """The right to move a consumer's place, until another instance takes it with a higher epoch."""

    name: str
    owner: str
    epoch: int
    place: Place


class ConsumerState(NamedTuple):
    name: str
    place: Place
    owner: str  # empty: held by no instance
    updated_at: int
    lag_rows: int
    lag_ms: int


class JournalState(NamedTuple):
    newest: int  # the number of the newest row
    newest_at: int
    oldest_at: int
    trimmed_to: int
    now_ms: int
    consumers: list[ConsumerState]
