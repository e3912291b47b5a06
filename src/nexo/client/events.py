"""What the SDK tells. Each event has a `name`, under which it is subscribed to (`client.on`, `client.events`)."""

from __future__ import annotations

from typing import ClassVar, cast

from msgspec import Struct

from nexo.client.conversation import Conversation, OutgoingMessage
from nexo.client.failures import ClientError
from nexo.client.model import Message, Session, State
from nexo.client.outbox import Outgoing


class Event:
    name: ClassVar[str] = ""


class StateChanged(Event, Struct):
    """`retry_at` is the time of the next attempt: in the core's seconds; for subscribers in ms of the date."""

    name: ClassVar[str] = "state"
    state: State
    reason: str | None
    retry_at: float | None


class SessionChanged(Event, Struct, frozen=True):
    name: ClassVar[str] = "session"
    session: Session | None


_LATER = cast(Conversation, None)  # filled in by the client, which has the objects, before anybody is told


class _InConversation(Event, Struct):
    message: Message
    conversation_id: str
    conversation: Conversation = _LATER


class Received(_InConversation):
    """A message of somebody else, in order, once."""

    name: ClassVar[str] = "message"


class Sent(_InConversation):
    """Your own message is saved and in its place: sent here or on another device."""

    name: ClassVar[str] = "sent"


class GroupEvent(_InConversation):
    name: ClassVar[str] = "group_event"


class Provisional(_InConversation):
    """A copy that is not saved yet; do not act on it."""

    name: ClassVar[str] = "provisional"


class Withdrawn(Event, Struct):
    name: ClassVar[str] = "withdrawn"
    server_msg_id: str
    reason: str
    conversation_id: str
    conversation: Conversation = _LATER


class Recalled(Event, Struct):
    """`seq` is that of the event which tells of it."""

    name: ClassVar[str] = "recalled"
    server_msg_id: str
    seq: int
    by: str
    conversation_id: str
    conversation: Conversation = _LATER


class OutgoingChanged(Event, Struct):
    name: ClassVar[str] = "outgoing"
    raw: Outgoing
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
    """An error that belongs to no call, or that a handler of yours raised."""

    name: ClassVar[str] = "error"
    error: ClientError | Exception


class ConversationsChanged(Event, Struct, frozen=True):
    """The order of the list or any row of it; at most once per turn of the event loop."""

    name: ClassVar[str] = "conversations"
    conversations: list[Conversation]
