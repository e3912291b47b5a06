"""What the request dialect answers and pushes: the `data` of each, and the numbers of the pushes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from nexo.core import events
from nexo.core.message_events import content_of
from nexo.core.model import Message, MsgType
from nexo.core.shapes import MessageShape, edited_shape, message_as, message_shape, sent_shape
from nexo.errors import NexoError
from nexo.ids import group_of
from nexo.wire.call_forms import CALL_ANSWERS
from nexo.wire.request.calls import CALL_PUSHES

KICKED = ("kicked", "replaced")


class PushedShape(MessageShape):
    """A message for a receiver; flags are present only when true."""

    important: bool | UnsetType = UNSET
    silent: bool | UnsetType = UNSET
    resend: bool | UnsetType = UNSET
    provisional: bool | UnsetType = UNSET


def _pushed(event: events.Pushed) -> Any:
    shape = message_as(event.message, PushedShape)
    if not event.quoted:
        shape.quote = UNSET
    shape.important = event.important or UNSET
    shape.silent = event.silent or UNSET
    shape.resend = event.resend or UNSET
    if event.provisional:  # it has no place yet
        shape.provisional = True
        parts = {name: getattr(shape, name) for name in shape.__struct_fields__ if name != "seq"}
        return {name: value for name, value in parts.items() if value is not UNSET}
    return shape


def _recalled(message: Message) -> Any:
    """A recall as a frame of its own; `seq` is that of the recall event."""
    target = msgspec.json.decode(message.content)
    return {
        "server_msg_id": target["server_msg_id"],
        "conversation_id": message.conversation_id,
        "seq": message.seq,
        "by": message.sender_id,
        "send_at": message.send_at,
    }


_QUIET: dict[int, int] = {MsgType.EDITED: 2014, MsgType.REACTIONS: 2015, MsgType.PINNED: 2016}


def _quiet(event: events.Pushed) -> Any:
    """An edit, changed reactions or a pin as a frame of its own; `seq` is that of the event. What its receiver may not
    see is left out."""
    message = event.message
    content = content_of(message)
    data: dict[str, Any] = {
        "server_msg_id": content["server_msg_id"],
        "conversation_id": message.conversation_id,
        "seq": message.seq,
    }
    if message.msg_type != MsgType.REACTIONS:
        data["by"] = message.sender_id
    shown = ("content", "mentions", "edited_at", "reactions", "added", "removed", "on")
    data.update((name, content[name]) for name in shown if name in content)
    data["send_at"] = message.send_at
    for flag in ("important", "resend"):
        if getattr(event, flag):
            data[flag] = True
    return data


def _page(event: events.Pulled) -> Any:
    page = event.page
    data: dict[str, Any] = {
        "conversation_id": event.conversation_id,
        "messages": [message_shape(message) for message in page.messages],
        "head_seq": page.head_seq,
        "has_more": page.has_more,
    }
    if page.next_seq is not None:
        data["next_seq"] = page.next_seq
    return data


def _newest_seqs(event: events.Synced) -> Any:
    return {
        "conversations": [
            {
                "conversation_id": head.conversation_id,
                "max_seq": head.head_seq,
                "min_seq": head.min_seq,
                "read_seq": head.read_seq,
            }
            for head in event.heads
        ]
    }


def _read_seqs(event: events.Synced) -> Any:
    return {
        "conversations": [
            {
                "conversation_id": head.conversation_id,
                "max_seq": head.head_seq,
                "read_seq": head.read_seq,
                "unread": head.unread,
            }
            for head in event.heads
        ]
    }


def error_data(error: NexoError, client_msg_id: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {"detail": error.detail, **error.data}
    if client_msg_id is not None:
        data["client_msg_id"] = client_msg_id
    if error.retry_after_ms is not None:
        data["retry_after_ms"] = error.retry_after_ms
    return data


def _presence(event: events.Presence) -> Any:
    return {"users": [{"user_id": user, "online": online, "platforms": list(at)} for user, online, at in event.users]}


def _saved(event: events.Saved) -> Any:
    return sent_shape(event.message, event.content_changed)


def _accepted(event: events.Accepted) -> Any:
    return {
        "client_msg_id": event.client_msg_id,
        "server_msg_id": str(event.server_msg_id),
        "conversation_id": event.conversation_id,
        "status": "accepted",
    }


ANSWERS: dict[type, Callable[[Any], Any]] = {
    **CALL_ANSWERS,
    events.Saved: _saved,
    events.Accepted: _accepted,
    events.Pulled: _page,
    events.Synced: _newest_seqs,
    events.LastMessagesListed: lambda event: {
        "messages": [message_shape(message) for message in event.messages],
        "has_more": event.has_more,
    },
    events.MarkedRead: lambda event: {
        "conversation_id": event.conversation_id,
        "read_seq": event.read_seq,
        "unread": event.unread,
    },
    events.Recalled: lambda event: {
        "server_msg_id": str(event.server_msg_id),
        "conversation_id": event.conversation_id,
        "seq": event.seq,
    },
    events.Edited: edited_shape,
    events.Reacted: lambda event: {
        "server_msg_id": str(event.server_msg_id),
        "conversation_id": event.conversation_id,
        "reactions": event.reactions,
    },
    events.PinChanged: lambda event: {
        "server_msg_id": str(event.server_msg_id),
        "conversation_id": event.conversation_id,
        "seq": event.seq,
    },
    events.Presence: _presence,
}


# the answers of these requests have a form of their own
OWN_ANSWERS: dict[int, Callable[[Any], Any]] = {1006: _read_seqs}


def _receipt(event: events.Receipt) -> Any:
    return {
        "conversation_id": event.conversation_id,
        "server_msg_id": str(event.server_msg_id),
        "seq": event.seq,
        "user_id": event.user_id,
    }


def _resync(event: events.Resync) -> Any:
    data: dict[str, Any] = {"reason": event.reason, "after_ms": event.after_ms}
    if event.conversation_ids:
        data["conversations"] = list(event.conversation_ids)
    return data


def _notify(event: events.Notify) -> Any:
    data: dict[str, Any] = {
        "conversation_id": event.conversation_id,
        "group_id": group_of(event.conversation_id),
        "head_seq": event.head_seq,
    }
    if event.important:
        data["important"] = True
    return data


def _deleted(event: events.Deleted) -> Any:
    data: dict[str, Any] = {"conversation_id": event.conversation_id, "deleted_rev": event.deleted_rev}
    if event.up_to_seq is None:
        return {**data, "server_msg_ids": list(map(str, event.server_msg_ids))}
    return {**data, "up_to_seq": event.up_to_seq}


def _push_message(event: events.Pushed) -> tuple[int, Any]:
    if event.message.msg_type == MsgType.RECALLED:
        return 2007, _recalled(event.message)
    if event.message.msg_type in _QUIET:
        return _QUIET[event.message.msg_type], _quiet(event)
    return 2001, _pushed(event)


def _push_failure(event: events.Failed | events.SignInFailed) -> tuple[int, Any]:
    client_msg_id = event.client_msg_id if isinstance(event, events.Failed) else None
    error = event.error
    return 2002 if error.name in KICKED else 2010, {"reason": error.name, **error_data(error, client_msg_id)}


def _contact_event(event: events.ContactRequested | events.ContactDecided | events.JoinRequested) -> Any:
    """A push about people: `event` says which."""
    match event:
        case events.ContactRequested(request_id, user_id, message, at):
            data: dict[str, Any] = {"event": "request", "request_id": str(request_id), "message": message}
        case events.ContactDecided(request_id, user_id, accepted, at):
            data = {"event": "decision", "request_id": str(request_id), "accepted": accepted}
        case events.JoinRequested(group_id, user_id, message, at):
            data = {"event": "join_request", "group_id": group_id, "message": message}
    return {**data, "user_id": user_id, "send_at": at}


PUSHES: dict[type, Callable[[Any], tuple[int, Any]]] = {
    **CALL_PUSHES,
    events.Pushed: _push_message,
    events.Receipt: lambda event: (2003 if event.ack_type == "read" else 2008, _receipt(event)),
    events.Resync: lambda event: (2004, _resync(event)),
    events.Presence: lambda event: (2005, _presence(event)),
    events.Notify: lambda event: (2006, _notify(event)),
    events.Saved: lambda event: (2009, _saved(event)),
    events.Accepted: lambda event: (2009, _accepted(event)),
    events.Failed: _push_failure,
    events.SignInFailed: _push_failure,
    events.Withdrawn: lambda event: (
        2011,
        {
            "server_msg_id": str(event.server_msg_id),
            "conversation_id": event.conversation_id,
            "reason": event.reason,
        },
    ),
    events.IsTyping: lambda event: (
        2012,
        {"user_id": event.user_id, "conversation_id": event.conversation_id, "on": event.on},
    ),
    events.HeadsChanged: lambda event: (
        2013,
        {"conversations": [{"conversation_id": name, "head_seq": head} for name, head in event.heads]},
    ),
    events.ContactRequested: lambda event: (2017, _contact_event(event)),
    events.ContactDecided: lambda event: (2017, _contact_event(event)),
    events.JoinRequested: lambda event: (2017, _contact_event(event)),
    events.Deleted: lambda event: (2018, _deleted(event)),
    # who joins a group gets its whole entry first
    events.Synced: lambda event: (2013, {"conversations": list(event.heads)}),
}
