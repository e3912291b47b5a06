"""Messages between instances and their encoding. Pure."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import msgspec
from msgspec import Struct

from nexo.core import events
from nexo.core.model import Message
from nexo.core.tracing import InstanceTrace
from nexo.errors import ERRORS, NexoError
from nexo.ports import Address


class MessageSaved(Struct, tag=1, array_like=True, frozen=True):
    """A message was committed."""

    message: Message
    member_epoch: int
    quoted_seq: int | None
    is_fresh: bool
    origin: Address | None = None  # the connection that got the answer, and needs no push
    quoted_edit_seq: int | None = None
    unquoted_for: tuple[str, ...] = ()


class ProvisionalMessage(Struct, tag=10, array_like=True, frozen=True):
    """A message was accepted; it is not saved yet and has no place in its conversation."""

    message: Message
    member_epoch: int
    origin: Address | None = None


class MessageWithdrawn(Struct, tag=11, array_like=True, frozen=True):
    """A provisional message will not be saved."""

    server_msg_id: int
    conversation_id: str
    reason: str
    sender_id: str


class EventSaved(Struct, tag=2, array_like=True, frozen=True):
    """An event was committed: about a message (a recall, an edit …), or a change of a group. `added` joined by it,
    `left` are members that left."""

    event: Message
    member_epoch: int
    added: list[str]
    left: list[str]


class AudienceChanged(Struct, tag=3, array_like=True, frozen=True):
    """Cached members of a conversation are out of date."""

    conversation_id: str


class VisibilityChanged(Struct, tag=20, array_like=True, frozen=True):
    """A user has changed who may see whether they are connected."""

    user_id: str


class PushLost(Struct, tag=9, array_like=True, frozen=True):
    """Something in this conversation was not pushed, and its receivers are unknown."""

    conversation_id: str


class TypingChanged(Struct, tag=4, array_like=True, frozen=True):
    sender_id: str
    conversation_id: str
    member_epoch: int
    on: bool


class UserEvent(Struct, tag=5, array_like=True, frozen=True):
    """For all connections of a user."""

    user_id: str
    event_name: str
    event: bytes


class SendOutcome(Struct, tag=12, array_like=True, frozen=True):
    """The outcome of a send that the receiving instance accepted from this connection."""

    user_id: str
    conn_id: str
    event_name: str
    event: bytes


class SessionsEnded(Struct, tag=6, array_like=True, frozen=True):
    sids: list[str]
    reason: str = "session_invalid"  # the error that the connections get


class DeviceSignedIn(Struct, tag=7, array_like=True, frozen=True):
    """A user signed in where the session policy allows one connection: earlier ones have to be closed."""

    instance_id: str
    user_id: str
    number: int
    platform_id: int
    device_id: str


class PresenceUpdate(Struct, tag=8, array_like=True, frozen=True):
    user_id: str
    platforms: tuple[int, ...]
    number: int


class TraceQuestion(Struct, tag=13, array_like=True, frozen=True):
    """What does the receiving instance remember of a message and these receivers?"""

    name: str  # repeated by the answer
    asker: str
    server_msg_id: int
    user_ids: list[str]


class TraceAnswer(Struct, tag=14, array_like=True, frozen=True):
    name: str
    instance_id: str
    trace: InstanceTrace


class CallAnswerWanted(Struct, tag=30, array_like=True, frozen=True):
    """The caller of this call has connected again and may have missed its answer."""

    call_id: int


ClusterMessage = (
    MessageSaved
    | ProvisionalMessage
    | MessageWithdrawn
    | EventSaved
    | AudienceChanged
    | VisibilityChanged
    | PushLost
    | TypingChanged
    | UserEvent
    | SendOutcome
    | SessionsEnded
    | DeviceSignedIn
    | PresenceUpdate
    | TraceQuestion
    | TraceAnswer
    | CallAnswerWanted
)

_encode = msgspec.msgpack.Encoder().encode
_decoder_of_all: msgspec.msgpack.Decoder[ClusterMessage] = msgspec.msgpack.Decoder(ClusterMessage)


def encode_message(message_: ClusterMessage) -> bytes:
    return _encode(message_)


def decode_message(payload: bytes) -> ClusterMessage:
    """Raises msgspec.MsgspecError for anything else, as from an instance of another version."""
    return _decoder_of_all.decode(payload)


class _FailedForm(Struct):
    """`events.Failed` without the exception in it."""

    name: str
    detail: str | None
    retry_after_ms: int | None
    client_msg_id: str | None


_EVENTS: dict[str, Any] = {kind.__name__: kind for kind in get_args(events.Event)}


@cache
def _decoder(name: str) -> msgspec.msgpack.Decoder[Any]:
    if name not in _EVENTS:
        raise msgspec.ValidationError(f"no event is called {name}")
    return msgspec.msgpack.Decoder(_FailedForm if name == "Failed" else _EVENTS[name])


def encode_event(event: events.Event) -> tuple[str, bytes]:
    name = type(event).__name__
    if isinstance(event, events.Failed):
        error = event.error
        return name, _encode(_FailedForm(error.name, error.detail, error.retry_after_ms, event.client_msg_id))
    return name, _encode(event)


def decode_event(name: str, data: bytes) -> events.Event:
    """Raises msgspec.MsgspecError."""
    event = _decoder(name).decode(data)
    if isinstance(event, _FailedForm):
        known = event.name if event.name in ERRORS else "internal_error"
        error = NexoError(known, event.detail, retry_after_ms=event.retry_after_ms)
        return events.Failed(error, event.client_msg_id)
    return event  # type: ignore[no-any-return]
