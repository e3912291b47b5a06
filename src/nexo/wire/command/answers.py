"""What the command dialect answers and pushes: the `data` of each, and the names of the pushes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from nexo.core import events
from nexo.core.file_links import shown_content
from nexo.core.files import FILE_TYPES
from nexo.core.message_fields import shows_plain, with_plain
from nexo.core.model import (
    ROLE_NAMES,
    ConversationEntry,
    Group,
    GroupGlimpse,
    GroupMember,
    Head,
    Kind,
    Message,
    MsgType,
    Role,
)
from nexo.core.people import ContactRequest
from nexo.core.shapes import ForwardedFrom, ReactionShape, reaction_shapes, read_source
from nexo.errors import NexoError
from nexo.wire.call_forms import CALL_ANSWERS
from nexo.wire.command.calls import CALL_PUSHES
from nexo.wire.command.message_events import QUIET_NAMES, edited, pin_changed, quiet, reacted
from nexo.wire.command.names import chat_type_of, naming, shown_name

KICKED = ("kicked", "replaced")


# -- messages ------------------------------------------------------------------------------------------


class CommandQuote(Struct):
    msg_id: str
    from_user_id: str
    msg_type: int
    text: str


@with_plain(shown=True)
class CommandMessage(Struct):
    """A message or event. `quote`, `extra` and the flags are there when they say something."""

    msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int | UnsetType
    chat_type: int
    from_user_id: str
    to_id: str | None
    msg_type: int
    content: Raw
    mentions: tuple[str, ...]
    reply_to: str | None
    timestamp: int
    status: int
    recall_at: int | None
    expires_at: int | UnsetType = UNSET
    quote: CommandQuote | UnsetType = UNSET
    extra: Raw | UnsetType = UNSET
    important: bool | UnsetType = UNSET
    silent: bool | UnsetType = UNSET
    resend: bool | UnsetType = UNSET
    provisional: bool | UnsetType = UNSET
    edited_at: int | UnsetType = UNSET
    reactions: list[ReactionShape] | UnsetType = UNSET
    forwarded_from: ForwardedFrom | UnsetType = UNSET


@shows_plain
def message_shape(message: Message) -> CommandMessage:
    chat_type = chat_type_of(message.conversation_id)
    shape = CommandMessage(
        str(message.server_msg_id),
        message.client_msg_id,
        shown_name(message.conversation_id),
        message.seq,
        chat_type,
        message.sender_id,
        message.recv_id if chat_type == Kind.SINGLE else message.group_id,
        message.msg_type,
        Raw(shown_content(message) if message.msg_type in FILE_TYPES else message.content.encode()),
        message.mentions,
        None if message.reply_to is None else str(message.reply_to),
        message.send_at,
        message.status,
        message.recalled_at,
    )
    quote = message.quote
    if quote is not None:
        shape.quote = CommandQuote(str(quote.server_msg_id), quote.sender_id, quote.msg_type, quote.text)
    if message.expires_at is not None:
        shape.expires_at = message.expires_at
    if message.extra is not None:
        shape.extra = Raw(message.extra.encode())
    if message.edited_at is not None:
        shape.edited_at = message.edited_at
    if message.reactions is not None:
        shape.reactions = reaction_shapes(message.reactions)
    if message.forwarded_from is not None:
        shape.forwarded_from = read_source(message.forwarded_from)
    return shape


def _messages(messages: Any) -> list[CommandMessage]:
    return [message_shape(message) for message in messages]


class CommandSent(Struct):
    """`content` is there when the filter changed it."""

    msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int
    timestamp: int
    status: str = "saved"
    content: Raw | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET


def _saved(event: events.Saved) -> Any:
    message = event.message
    return CommandSent(
        str(message.server_msg_id),
        message.client_msg_id,
        shown_name(message.conversation_id),
        message.seq,
        message.send_at,
        content=Raw(shown_content(message)) if event.content_changed else UNSET,
        expires_at=UNSET if message.expires_at is None else message.expires_at,
    )


def _accepted(event: events.Accepted) -> Any:
    return {
        "msg_id": str(event.server_msg_id),
        "client_msg_id": event.client_msg_id,
        "conversation_id": shown_name(event.conversation_id),
        "status": "accepted",
    }


def _page(event: events.Pulled) -> Any:
    page = event.page
    data = {"messages": _messages(page.messages), "head_seq": page.head_seq, "has_more": page.has_more}
    return data if page.next_seq is None else {**data, "next_seq": page.next_seq}


def _offline(event: events.OfflinePulled) -> Any:
    page = event.page
    return {"messages": _messages(page.messages), "next_cursor": page.next_cursor, "has_more": page.has_more}


# -- conversations, groups, people -----------------------------------------------------------------------


def _entry(entry: ConversationEntry) -> Any:
    last = entry.last_message
    return {
        "conversation_id": shown_name(entry.conversation_id),
        "chat_type": int(chat_type_of(entry.conversation_id)),
        "peer_id": entry.group_id if entry.peer_user_id is None else entry.peer_user_id,
        "last_msg_id": None if last is None else str(last.server_msg_id),
        "unread_count": entry.unread,
        "updated_at": entry.updated_at,
        "is_pinned": entry.pinned,
        "is_muted": entry.recv_msg_opt != 0,
        "unread_mentions": entry.unread_mentions,
        "head_seq": entry.head_seq,
        "min_seq": entry.min_seq,
        "read_seq": entry.read_seq,
        "delivered_seq": entry.delivered_seq,
        "deleted_rev": entry.deleted_rev,
        "archived": entry.archived,
        "silent_until": entry.silent_until,
        "marked_unread": entry.marked_unread,
        "message_ttl_s": entry.message_ttl_s,
        "draft": entry.draft,
        "extra": None if entry.extra is None else Raw(entry.extra.encode()),
    }


def _paged(name: str, items: list[Any], next_cursor: str, has_more: bool) -> Any:
    return {name: items, "next_cursor": next_cursor, "has_more": has_more}


def _group(group: Group) -> Any:
    return {
        "group_id": group.group_id,
        "group_name": group.name,
        "avatar_url": group.avatar,
        "introduction": group.introduction,
        "announcement": group.announcement,
        "creator_id": group.creator_id,
        "owner_id": group.owner_id,
        "member_count": group.member_count,
        "join_policy": group.join_policy,
        "status": group.shown_status,
        "group_type": group.group_type,
        "mute_until": group.mute_until,
        "extra": None if group.extra is None else Raw(group.extra.encode()),
        "created_at": group.created_at,
    }


def _glimpse(group: GroupGlimpse) -> Any:
    shown = {"group_name": group.name, "avatar_url": group.avatar, "member_count": group.member_count}
    known = {name: value for name, value in shown.items() if value is not None}
    return {"group_id": group.group_id, "join_policy": group.join_policy, **known}


def _member(member: GroupMember) -> Any:
    return {
        "user_id": member.user_id,
        "role": ROLE_NAMES[Role(member.role)],
        "nickname": member.group_nickname or member.nickname,
        "joined_at": member.joined_at,
        "muted_until": member.muted_until,
        "group_nickname": member.group_nickname,
        "group_avatar": member.group_avatar,
        "inviter_id": member.inviter_id,
        "extra": None if member.extra is None else Raw(member.extra.encode()),
    }


def _request(request: ContactRequest) -> Any:
    return {
        "request_id": str(request.request_id),
        "user_id": request.user_id,
        "message": request.message,
        "created_at": request.created_at,
    }


def _registered(event: events.Registered) -> Any:
    user = event.user
    return {
        "user_id": user.user_id,
        "nickname": user.nickname,
        "avatar": user.avatar,
        "extra": None if user.extra is None else Raw(user.extra.encode()),
        "created_at": user.created_at,
    }


def _presence(event: events.Presence) -> Any:
    return {"users": [{"user_id": user, "online": online, "platforms": list(at)} for user, online, at in event.users]}


ANSWERS: dict[type, Callable[[Any], Any]] = {
    **CALL_ANSWERS,
    events.SignedIn: lambda event: event,
    events.TokensIssued: lambda event: event,
    events.Registered: _registered,
    events.Saved: _saved,
    events.Accepted: _accepted,
    events.Recalled: lambda event: {"msg_id": str(event.server_msg_id), "seq": event.seq},
    events.Edited: edited,
    events.Reacted: reacted,
    events.PinChanged: pin_changed,
    events.Pulled: _page,
    events.OfflinePulled: _offline,
    events.ConversationsListed: lambda event: _paged(
        "conversations", [_entry(entry) for entry in event.entries], event.next_cursor, event.has_more
    ),
    events.MarkedRead: lambda event: {
        "conversation_id": shown_name(event.conversation_id),
        "read_seq": event.read_seq,
        "unread_count": event.unread,
    },
    events.GroupShown: lambda event: _group(event.group),
    events.GroupGlimpsed: lambda event: _glimpse(event.group),
    events.GroupsListed: lambda event: {"groups": [_group(group) for group in event.groups]},
    events.MembersListed: lambda event: _paged(
        "members", [_member(member) for member in event.members], event.next_cursor, event.has_more
    ),
    events.Joined: lambda event: {"status": event.status, **({"group_id": event.group_id} if event.group_id else {})},
    events.Invited: lambda event: {
        "added": list(event.added),
        "skipped": [{"user_id": user_id, "reason": reason} for user_id, reason in event.skipped],
    },
    events.Presence: _presence,
    events.ContactAsked: lambda event: {"status": event.status, "request_id": str(event.request_id)},
    events.ContactShown: lambda event: event.contact,
    events.ContactsListed: lambda event: _paged("contacts", list(event.contacts), event.next_cursor, event.has_more),
    events.ContactRequestsListed: lambda event: _paged(
        "requests", [_request(one) for one in event.requests], event.next_cursor, event.has_more
    ),
}

# the answers of these commands have a form of their own
OWN_ANSWERS: dict[str, Callable[[Any], Any]] = {"group.create": lambda event: {"group_id": event.group.group_id}}


# -- pushes --------------------------------------------------------------------------------------------


def _push_message(event: events.Pushed) -> tuple[str, Any]:
    message = event.message
    if message.msg_type == MsgType.RECALLED:
        return "chat.recalled", _recalled(message)
    if message.msg_type in QUIET_NAMES:
        return QUIET_NAMES[message.msg_type], quiet(event)
    shape = message_shape(message)
    if not event.quoted:
        shape.quote = UNSET
    shape.important = event.important or UNSET
    shape.silent = event.silent or UNSET
    shape.resend = event.resend or UNSET
    if event.provisional:  # it has no place yet
        shape.provisional, shape.seq = True, UNSET
    return "group.event" if message.shows_as_event else "chat.message", shape


def _recalled(message: Message) -> Any:
    """A recall as a frame of its own; `seq` is that of the recall event."""
    target = msgspec.json.decode(message.content)
    return {
        "msg_id": target["server_msg_id"],
        **naming(message.conversation_id),
        "seq": message.seq,
        "by": message.sender_id,
        "timestamp": message.send_at,
    }


def _push_receipt(event: events.Receipt) -> tuple[str, Any]:
    name = "chat.read_receipt" if event.ack_type == "read" else "chat.delivered_receipt"
    msg_id = str(event.server_msg_id)
    return name, {**naming(event.conversation_id), "msg_id": msg_id, "seq": event.seq, "user_id": event.user_id}


def _notify(event: events.Notify) -> Any:
    data = {**naming(event.conversation_id), "head_seq": event.head_seq}
    return {**data, "important": True} if event.important else data


_SETTINGS = ("hidden", "archived", "silent_until", "marked_unread", "message_ttl_s", "draft", "extra")


def _settings(head: Head) -> dict[str, Any]:
    """Returns the settings that differ from their defaults."""
    found: dict[str, Any] = {name: getattr(head, name) for name in _SETTINGS}
    found["is_pinned"] = head.pinned
    found["is_muted"] = UNSET if head.recv_msg_opt is UNSET else True
    return {name: value for name, value in found.items() if value is not UNSET}


def _deleted(event: events.Deleted) -> Any:
    data = {**naming(event.conversation_id), "deleted_rev": event.deleted_rev}
    if event.up_to_seq is None:
        return {**data, "msg_ids": list(map(str, event.server_msg_ids))}
    return {**data, "up_to_seq": event.up_to_seq}


def _synced(event: events.Synced) -> Any:
    return {
        "conversations": [
            {
                **naming(head.conversation_id),
                "head_seq": head.head_seq,
                "min_seq": head.min_seq,
                "read_seq": head.read_seq,
                "delivered_seq": head.delivered_seq,
                "unread_count": head.unread,
                "deleted_rev": head.deleted_rev,
                **_settings(head),
            }
            for head in event.heads
        ]
    }


def _resync(event: events.Resync) -> Any:
    data: dict[str, Any] = {"reason": event.reason, "after_ms": event.after_ms}
    if event.conversation_ids:
        data["conversations"] = [naming(name) for name in event.conversation_ids]
    return data


def error_data(error: NexoError, client_msg_id: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {"detail": error.detail, **error.data}
    if client_msg_id is not None:
        data["client_msg_id"] = client_msg_id
    if error.retry_after_ms is not None:
        data["retry_after_ms"] = error.retry_after_ms
    return data


def _push_failure(event: events.Failed | events.SignInFailed) -> tuple[str, Any]:
    client_msg_id = event.client_msg_id if isinstance(event, events.Failed) else None
    error = event.error
    name = "session.kicked" if error.name in KICKED else "session.error"
    return name, {"reason": error.name, "code": error.number, **error_data(error, client_msg_id)}


def _contact_event(event: events.ContactRequested | events.ContactDecided | events.JoinRequested) -> Any:
    """A push about people: `event` says which."""
    match event:
        case events.ContactRequested(request_id, user_id, message, at):
            data: dict[str, Any] = {"event": "request", "request_id": str(request_id), "message": message}
        case events.ContactDecided(request_id, user_id, accepted, at):
            data = {"event": "decision", "request_id": str(request_id), "accepted": accepted}
        case events.JoinRequested(group_id, user_id, message, at):
            data = {"event": "join_request", "group_id": group_id, "message": message}
    return {**data, "user_id": user_id, "timestamp": at}


PUSHES: dict[type, Callable[[Any], tuple[str, Any]]] = {
    **CALL_PUSHES,
    events.Pushed: _push_message,
    events.Saved: lambda event: ("chat.saved", _saved(event)),
    events.Accepted: lambda event: ("chat.saved", _accepted(event)),
    events.Withdrawn: lambda event: (
        "chat.withdrawn",
        {"msg_id": str(event.server_msg_id), **naming(event.conversation_id), "reason": event.reason},
    ),
    events.Receipt: _push_receipt,
    events.Notify: lambda event: ("chat.notify", _notify(event)),
    events.HeadsChanged: lambda event: (
        "chat.heads",
        {"conversations": [{**naming(name), "head_seq": head_seq} for name, head_seq in event.heads]},
    ),
    events.Deleted: lambda event: ("chat.deleted", _deleted(event)),
    # who joins a group gets its whole entry first
    events.Synced: lambda event: ("chat.heads", _synced(event)),
    events.IsTyping: lambda event: (
        "chat.typing",
        {**naming(event.conversation_id), "user_id": event.user_id, "on": event.on},
    ),
    events.Presence: lambda event: ("presence.changed", _presence(event)),
    events.ContactRequested: lambda event: ("contact.event", _contact_event(event)),
    events.ContactDecided: lambda event: ("contact.event", _contact_event(event)),
    events.JoinRequested: lambda event: ("contact.event", _contact_event(event)),
    events.Failed: _push_failure,
    events.SignInFailed: _push_failure,
    events.Resync: lambda event: ("sync.resync", _resync(event)),
}
