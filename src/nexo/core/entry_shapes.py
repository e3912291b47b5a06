"""Entries of the journal as a product's backend sees them, in `/server/events` and in webhooks: `data` is the object
that the HTTP API shows."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from nexo.core.calls import CallShape, UserCall, call_shape
from nexo.core.files import FileShape, file_shape
from nexo.core.journal import (
    ContactFact,
    Data,
    FileFact,
    JournalEntry,
    MemberOf,
    PinnedFact,
    ReactionsFact,
    ReadUpTo,
    RecalledFact,
)
from nexo.core.model import Group, Message, User
from nexo.core.profile_shapes import GroupShape, MemberShape, UserShape, group_shape, member_shape, user_shape
from nexo.core.shapes import MessageShape, message_shape


class RecalledShape(Struct):
    """The message that was recalled: its id, its place, and the user who recalled it."""

    server_msg_id: str
    conversation_id: str
    seq: int
    by: str


class ReactionsShape(Struct):
    """The message, its place, and its reactions as announced; without the changes where they were too many."""

    server_msg_id: str
    conversation_id: str
    seq: int
    reactions: list[dict[str, Any]]
    added: list[dict[str, Any]] | UnsetType = UNSET
    removed: list[dict[str, Any]] | UnsetType = UNSET


class PinnedShape(Struct):
    """The message that was pinned, or unpinned: its id, its place, and the user who did it."""

    server_msg_id: str
    conversation_id: str
    seq: int
    on: bool
    by: str


class GroupMemberShape(MemberShape, kw_only=True):
    """A member, and the group."""

    group_id: str


class ContactFactShape(Struct):
    """The user who has requested, accepted or removed a contact, and the other one."""

    user_id: str
    contact_id: str
    created_at: int


class DeletedFile(Struct):
    file_id: str
    user_id: str


class ReadShape(Struct):
    conversation_id: str
    user_id: str
    read_seq: int


EventData = (
    MessageShape
    | RecalledShape
    | ReactionsShape
    | PinnedShape
    | GroupShape
    | GroupMemberShape
    | UserShape
    | ReadShape
    | ContactFactShape
    | FileShape
    | DeletedFile
    | CallShape
)
_DATA = Meta(description="The message, group, member, user, …", extra_json_schema={"type": "object"})


class EventShape(Struct):
    """One committed change. `event_id` is the same each time the event is delivered."""

    event_id: str
    type: str
    at: int
    data: Annotated[Any, _DATA]  # one of `EventData`: a schema cannot tell structs without tags apart
    conversation_id: str | UnsetType = UNSET
    user_id: str | UnsetType = UNSET


def event_shape(entry: JournalEntry) -> EventShape:
    data, name, user_id = entry.data, entry.conversation_id, entry.user_id
    return EventShape(
        entry.event_id,
        entry.type,
        entry.at,
        message_shape(data) if type(data) is Message else _data(data),  # most of them are messages
        UNSET if name is None else name,
        UNSET if user_id is None else user_id,
    )


def _data(data: Data) -> EventData:
    match data:
        case Message():
            return message_shape(data)
        case RecalledFact():
            return RecalledShape(str(data.server_msg_id), data.conversation_id, data.seq, data.by)
        case ReactionsFact():
            place = (str(data.server_msg_id), data.conversation_id, data.seq)
            if data.added is None or data.removed is None:
                return ReactionsShape(*place, data.reactions)
            return ReactionsShape(*place, data.reactions, data.added, data.removed)
        case PinnedFact():
            return PinnedShape(str(data.server_msg_id), data.conversation_id, data.seq, data.on, data.by)
        case Group():
            return group_shape(data)
        case User():
            return user_shape(data)
        case MemberOf():
            return GroupMemberShape(**structs.asdict(member_shape(data.member)), group_id=data.group_id)
        case ContactFact():
            return ContactFactShape(data.user_id, data.contact_id, data.created_at)
        case ReadUpTo():
            return ReadShape(data.conversation_id, data.user_id, data.read_seq)
        case UserCall():
            return call_shape(data)
        case FileFact():
            if data.file is None:
                return DeletedFile(data.file_id, data.owner_id)
            return file_shape(data.file, with_owner=True)
