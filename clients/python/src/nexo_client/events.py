"""The events of the client. Each has a `name` for `client.on` and `client.events`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, cast

from msgspec import Struct

from nexo_client.conversation import Conversation
from nexo_client.core.outbox import OutboxItem
from nexo_client.errors import ClientError
from nexo_client.outgoing_message import OutgoingMessage
from nexo_client.types import Message, Session, State


class Event:
    name: ClassVar[str] = ""


class StateChanged(Event, Struct):
    """`retry_at` is the time of the next attempt: seconds of the engine's clock, for subscribers a date in ms."""

    name: ClassVar[str] = "state"
    state: State
    reason: str | None
    retry_at: float | None


class SessionChanged(Event, Struct, frozen=True):
    name: ClassVar[str] = "session"
    session: Session | None


_LATER = cast(Conversation, None)  # the client, which has the objects, sets it before the event is emitted


class _InConversation(Event, Struct):
    message: Message
    conversation_id: str
    conversation: Conversation = _LATER


class Received(_InConversation):
    """A message of another user, once and in order."""

    name: ClassVar[str] = "message"


class Sent(_InConversation):
    """A message of this user is saved and in order: sent here or on another device."""

    name: ClassVar[str] = "sent"


class GroupEvent(_InConversation):
    name: ClassVar[str] = "group_event"


class Provisional(_InConversation):
    """A copy that is not saved yet; do not act on it."""

    name: ClassVar[str] = "provisional"


class Withdrawn(Event, Struct):
    """A provisional copy was not saved and is removed."""

    name: ClassVar[str] = "withdrawn"
    server_msg_id: str
    reason: str
    conversation_id: str
    conversation: Conversation = _LATER


class Recalled(Event, Struct):
    """`seq` is the seq of the recall event."""

    name: ClassVar[str] = "recalled"
    server_msg_id: str
    seq: int
    by: str
    conversation_id: str
    conversation: Conversation = _LATER


Change = Literal["edited", "reactions", "expired"]


class MessageChanged(Event, Struct):
    """An earlier message has changed; `message` is None when it is not in memory."""

    name: ClassVar[str] = "changed"
    server_msg_id: str
    change: Change
    message: Message | None
    conversation_id: str
    conversation: Conversation = _LATER


class Deleted(Event, Struct):
    """The user has deleted messages for themselves, here or on another device: these, or all up to a seq."""

    name: ClassVar[str] = "deleted"
    server_msg_ids: tuple[str, ...]
    up_to_seq: int | None
    conversation_id: str
    conversation: Conversation = _LATER


class Pinned(Event, Struct):
    """A message was pinned or unpinned; `seq` is the seq of that event."""

    name: ClassVar[str] = "pinned"
    server_msg_id: str
    seq: int
    on: bool
    by: str
    conversation_id: str
    conversation: Conversation = _LATER


class SettingsChanged(Event, Struct):
    """The user's settings of a conversation have changed, as on another device."""

    name: ClassVar[str] = "settings"
    conversation_id: str
    conversation: Conversation = _LATER


class ContactRequested(Event, Struct, frozen=True):
    """Another user asks to become a contact."""

    name: ClassVar[str] = "contact_request"
    request_id: str
    user_id: str
    message: str
    at: int


class ContactDecided(Event, Struct, frozen=True):
    """Another user has accepted or refused a request of this one."""

    name: ClassVar[str] = "contact_decision"
    request_id: str
    user_id: str
    accepted: bool
    at: int


class JoinRequested(Event, Struct, frozen=True):
    """A user asks to join a group that this one administers."""

    name: ClassVar[str] = "join_request"
    group_id: str
    user_id: str
    message: str
    at: int


class OutgoingChanged(Event, Struct):
    name: ClassVar[str] = "outgoing"
    raw: OutboxItem
    outgoing: OutgoingMessage = cast(OutgoingMessage, None)


class Receipt(Event, Struct):
    name: ClassVar[str] = "receipt"
    type: str
    user_id: str
    seq: int
    server_msg_id: str
    conversation_id: str
    conversation: Conversation = _LATER


class Typing(Event, Struct):
    name: ClassVar[str] = "typing"
    user_id: str
    on: bool
    conversation_id: str
    conversation: Conversation = _LATER


class CallSignaled(Event, Struct, frozen=True):
    """A frame of a call, for `client.calls`; applications do not get it."""

    name: ClassVar[str] = ""
    frame: dict[str, Any]


class UserPresence(Struct, frozen=True):
    user_id: str
    online: bool
    platforms: tuple[int, ...]


class PresenceChanged(Event, Struct, frozen=True):
    name: ClassVar[str] = "presence"
    users: tuple[UserPresence, ...]


class Kicked(Event, Struct, frozen=True):
    name: ClassVar[str] = "kicked"
    reason: str


class Failed(Event, Struct, frozen=True):
    """An error that belongs to no call, or that a handler raised."""

    name: ClassVar[str] = "error"
    error: ClientError | Exception


class ConversationsChanged(Event, Struct, frozen=True):
    """The order of the list or any of its rows has changed; at most once per iteration of the event loop."""

    name: ClassVar[str] = "conversations"
    conversations: list[Conversation]


EVENT_NAMES = frozenset(
    kind.name
    for kind in (
        StateChanged, SessionChanged, Received, Sent, GroupEvent, Provisional, Withdrawn, Recalled, MessageChanged,
        Deleted, Pinned, SettingsChanged, ContactRequested, ContactDecided, JoinRequested, OutgoingChanged, Receipt,
        Typing, PresenceChanged, Kicked, Failed, ConversationsChanged,
    )
)  # fmt: skip
