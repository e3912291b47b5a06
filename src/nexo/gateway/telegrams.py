"""What instances tell each other, and its form on the way. Pure."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import msgspec
from msgspec import Struct

from nexo.core import events
from nexo.core.model import Message
from nexo.errors import ERRORS, NexoError
from nexo.ports import Address


class Said(Struct, tag=1, array_like=True, frozen=True):
    """A message was committed."""

    message: Message
    member_epoch: int
    quoted_seq: int | None
    is_fresh: bool
    origin: Address | None = None  # the connection that got the answer, and needs no push


class Provisional(Struct, tag=10, array_like=True, frozen=True):
    """A message was accepted; it is not saved yet and has no place in its conversation."""

    message: Message
    member_epoch: int
    origin: Address | None = None


class Withdrew(Struct, tag=11, array_like=True, frozen=True):
    """A provisional message will not be saved."""

    server_msg_id: int
    conversation_id: str
    reason: str
    sender_id: str


class Happened(Struct, tag=2, array_like=True, frozen=True):
    """An event was committed: a recall, or a change of a group. `added` came in by it, `left` went out."""

    event: Message
    member_epoch: int
    added: list[str]
    left: list[str]


class Forget(Struct, tag=3, array_like=True, frozen=True):
    """What is known of a conversation's members is out of date."""

    conversation_id: str


class PushLost(Struct, tag=9, array_like=True, frozen=True):
    """Nobody knows who should have been told of something in this conversation."""

    conversation_id: str


class Types(Struct, tag=4, array_like=True, frozen=True):
    sender_id: str
    conversation_id: str
    member_epoch: int
    on: bool


class ForUser(Struct, tag=5, array_like=True, frozen=True):
    """For all connections of a user, or for one of them."""

    user_id: str
    conn_id: str
    event_name: str
    event: bytes


class SessionsEnded(Struct, tag=6, array_like=True, frozen=True):
    sids: list[str]


class Newcomer(Struct, tag=7, array_like=True, frozen=True):
    """Somebody signed in where only one may be: who was there before has to go."""

    instance_id: str
    user_id: str
    number: int
    platform_id: int
    device_id: str


class PresenceIs(Struct, tag=8, array_like=True, frozen=True):
    user_id: str
    platforms: tuple[int, ...]
    number: int


Telegram = (
    Said
    | Provisional
    | Withdrew
    | Happened
    | Forget
    | PushLost
    | Types
    | ForUser
    | SessionsEnded
    | Newcomer
    | PresenceIs
)

_encode = msgspec.msgpack.Encoder().encode
_decoder_of_all: msgspec.msgpack.Decoder[Telegram] = msgspec.msgpack.Decoder(Telegram)


def encode_telegram(telegram: Telegram) -> bytes:
    return _encode(telegram)


def decode_telegram(payload: bytes) -> Telegram:
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
