"""What the envelope dialect answers and pushes: one encoder per event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from nexo.core import events
from nexo.core.file_links import shown_content
from nexo.core.files import FILE_TYPES
from nexo.core.message_fields import camel, shows_plain, with_plain
from nexo.core.model import FIRST_EVENT, QUIET_TYPES, DraftText, Head, Message, MsgType, Quote
from nexo.core.shapes import CamelSource, ReactionShape, camel_source, is_important, reaction_shapes
from nexo.ids import group_of
from nexo.wire.envelope.calls import CALL_ENCODERS
from nexo.wire.envelope.message_events import edited_ack, pinned_ack, quiet_frame, reacted_ack
from nexo.wire.envelope.refs import EnvelopeRef

_encode = msgspec.json.Encoder().encode
_RECALLED, _CALL = int(MsgType.RECALLED), int(MsgType.CALL)


@with_plain(shown=True, in_camel_case=True)
class MessageFrame(Struct, rename="camel", gc=False):
    """A message, flat. `quote`, `recalledAt` and the flags are there only when they say something."""

    type: str
    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    msg_seq: int | UnsetType
    sender: str = msgspec.field(name="from")
    to: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET
    msg_type: int = 1
    body: Raw = Raw(b"null")
    mentions: tuple[str, ...] = ()
    reply_to_server_msg_id: str | None = None
    quote: dict[str, Any] | UnsetType = UNSET
    extra: Raw | None = None
    status: int = 0
    recalled_at: int | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET
    important: bool | UnsetType = UNSET
    silent: bool | UnsetType = UNSET
    resend: bool | UnsetType = UNSET
    provisional: bool | UnsetType = UNSET
    ts: int = 0
    edited_at: int | UnsetType = UNSET
    reactions: list[ReactionShape] | UnsetType = UNSET
    forwarded_from: CamelSource | UnsetType = UNSET


@shows_plain
def message_frame(message: Message, pushed: events.Pushed | None = None) -> MessageFrame:
    conversation_id, sender_id = message.conversation_id, message.sender_id
    # as `Message.group_id` and `Message.recv_id`, without the calls
    group_id = recv_id = None
    if conversation_id.startswith("sg_"):
        group_id = conversation_id[3:]
    else:
        low, _, high = conversation_id[3:].partition(":")
        recv_id = high if low == sender_id else low
    quote = message.quote
    important = silent = resend = provisional = False
    if pushed is not None:
        important, silent, resend, provisional = pushed.important, pushed.silent, pushed.resend, pushed.provisional
        if not pushed.quoted:
            quote = None
    is_event = message.msg_type >= FIRST_EVENT and message.msg_type != _CALL
    frame = MessageFrame(
        "GROUP_EVENT" if is_event else "SINGLE_CHAT" if group_id is None else "GROUP_CHAT",
        str(message.server_msg_id),
        message.client_msg_id,
        conversation_id,
        UNSET if provisional else message.seq,  # it has no place yet
        sender_id,
        recv_id or UNSET,
        UNSET if group_id is None else group_id,
        message.msg_type,
        Raw(shown_content(message) if message.msg_type in FILE_TYPES else message.content.encode()),
        message.mentions,
        None if message.reply_to is None else str(message.reply_to),
        UNSET if quote is None else _quote(quote),
        None if message.extra is None else Raw(message.extra.encode()),
        message.status,
        UNSET if message.recalled_at is None else message.recalled_at,
        UNSET if message.expires_at is None else message.expires_at,
        important or UNSET,
        silent or UNSET,
        resend or UNSET,
        provisional or UNSET,
        message.send_at,
    )
    if message.edited_at is not None:
        frame.edited_at = message.edited_at
    if message.reactions is not None:
        frame.reactions = reaction_shapes(message.reactions)
    if message.forwarded_from is not None:
        frame.forwarded_from = camel_source(message.forwarded_from)
    return frame


def _quote(quote: Quote) -> dict[str, Any]:
    return {
        "serverMsgId": str(quote.server_msg_id),
        "from": quote.sender_id,
        "msgType": quote.msg_type,
        "text": quote.text,
    }


def _encode_pushed(event: events.Pushed, ref: EnvelopeRef | None) -> bytes:
    if event.message.msg_type == _RECALLED:
        return _encode_recall_event(event.message, event.resend)
    if event.message.msg_type in QUIET_TYPES:
        return _encode(quiet_frame(event))
    return _encode(message_frame(event.message, event))


def _encode_recall_event(message: Message, resend: bool) -> bytes:
    """A recall as a frame of its own; `msgSeq` is that of the recall event."""
    target = msgspec.json.decode(message.content)
    frame = {
        "type": "MESSAGE_REVOKED",
        "serverMsgId": target["server_msg_id"],
        "conversationId": message.conversation_id,
        "msgSeq": message.seq,
        "from": message.sender_id,
        "ts": message.send_at,
    }
    if resend:
        frame["resend"] = True
    return _encode(frame)


class _SavedFrame(Struct, rename="camel", gc=False):
    type: str
    ack_type: str
    client_msg_id: str | None
    server_msg_id: str
    conversation_id: str
    msg_seq: int
    ts: int
    body: Raw | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET


def _encode_saved(event: events.Saved, ref: EnvelopeRef | None) -> bytes:
    message = event.message
    return _encode(
        _SavedFrame(
            "ACK",
            "saved",
            message.client_msg_id,
            str(message.server_msg_id),
            message.conversation_id,
            message.seq,
            message.send_at,
            Raw(shown_content(message)) if event.content_changed else UNSET,
            UNSET if message.expires_at is None else message.expires_at,
        )
    )


def _encode_accepted(event: events.Accepted, ref: EnvelopeRef | None, ts: int) -> bytes:
    return _encode(
        {
            "type": "ACK",
            "ackType": "accepted",
            "clientMsgId": event.client_msg_id,
            "serverMsgId": str(event.server_msg_id),
            "conversationId": event.conversation_id,
            "ts": ts,
        }
    )


def _encode_withdrawn(event: events.Withdrawn, ref: EnvelopeRef | None) -> bytes:
    return _encode(
        {
            "type": "MESSAGE_WITHDRAWN",
            "serverMsgId": str(event.server_msg_id),
            "conversationId": event.conversation_id,
            "reason": event.reason,
        }
    )


def _encode_signed_in(event: events.SignedIn, ref: EnvelopeRef | None) -> bytes:
    return _encode(
        {"type": "AUTH_OK", "userId": event.user_id, "connId": event.conn_id, "heartbeatMs": event.heartbeat_ms}
    )


def _encode_sign_in_failed(event: events.SignInFailed, ref: EnvelopeRef | None, ts: int) -> bytes:
    error = event.error
    frame: dict[str, Any] = {"type": "AUTH_FAIL", "reason": error.name, "detail": error.detail, "ts": ts}
    if error.retry_after_ms is not None:
        frame["retryAfterMs"] = error.retry_after_ms
    return _encode(frame)


def _encode_recalled(event: events.Recalled, ref: EnvelopeRef | None, ts: int) -> bytes:
    frame = {
        "type": "ACK",
        "ackType": "revoked",
        "serverMsgId": str(event.server_msg_id),
        "conversationId": event.conversation_id,
        "msgSeq": event.seq,
        "ts": ts,
    }
    if ref is not None and ref.client_msg_id is not None:
        frame["clientMsgId"] = ref.client_msg_id
    return _encode(frame)


def _acknowledge(build: Callable[[Any], dict[str, Any]]) -> Callable[[Any, EnvelopeRef | None, int], bytes]:
    """Returns the encoder of an ACK that echoes the client_msg_id of its request."""

    def encode(event: Any, ref: EnvelopeRef | None, ts: int) -> bytes:
        frame = {"type": "ACK", **build(event), "ts": ts}
        if ref is not None and ref.client_msg_id is not None:
            frame["clientMsgId"] = ref.client_msg_id
        return _encode(frame)

    return encode


def _pulled_frame(message: Message, reader_id: str) -> MessageFrame:
    frame = message_frame(message)
    if message.mentions and is_important(message, reader_id):
        frame.important = True
    return frame


def _encode_pulled(event: events.Pulled, ref: EnvelopeRef | None) -> bytes:
    page = event.page
    return _encode(
        {
            "type": "PULL_OK",
            "conversationId": event.conversation_id,
            "messages": [_pulled_frame(message, event.reader_id) for message in page.messages],
            "headSeq": page.head_seq,
            "nextSeq": page.next_seq,
            "hasMore": page.has_more,
        }
    )


_HEAD_NAMES = [(name, camel(name)) for name in Head.__struct_fields__]


def _head(head: Head) -> dict[str, Any]:
    """Returns an entry of SYNC; a setting that is left out has its default value."""
    frame = {shown: value for name, shown in _HEAD_NAMES if (value := getattr(head, name)) is not UNSET}
    if isinstance(head.draft, DraftText) and head.draft.reply_to is not None:
        frame["draft"] = {"text": head.draft.text, "replyToServerMsgId": head.draft.reply_to}
    return frame


def _encode_deleted(event: events.Deleted, ref: EnvelopeRef | None) -> bytes:
    frame: dict[str, Any] = {"type": "DELETED", "conversationId": event.conversation_id}
    if event.up_to_seq is None:
        frame["serverMsgIds"] = list(map(str, event.server_msg_ids))
    else:
        frame["upToSeq"] = event.up_to_seq
    frame["deletedRev"] = event.deleted_rev
    return _encode(frame)


def _encode_synced(event: events.Synced, ref: EnvelopeRef | None) -> bytes:
    frame = {
        "type": "SYNC",
        "conversations": [_head(head) for head in event.heads],
        "hasMore": event.has_more,
    }
    if event.cursor:
        frame["cursor"] = event.cursor
    return _encode(frame)


def _encode_marked_read(event: events.MarkedRead, ref: EnvelopeRef | None, ts: int) -> bytes:
    return _encode(
        {
            "type": "ACK",
            "ackType": "read",
            "conversationId": event.conversation_id,
            "msgSeq": event.read_seq,
            "unread": event.unread,
            "ts": ts,
        }
    )


class _ReceiptFrame(Struct, rename="camel", gc=False):
    type: str
    ack_type: str
    conversation_id: str
    server_msg_id: str
    msg_seq: int
    sender: str = msgspec.field(name="from")
    ts: int


def _encode_receipt(event: events.Receipt, ref: EnvelopeRef | None, ts: int) -> bytes:
    server_msg_id = str(event.server_msg_id)
    return _encode(
        _ReceiptFrame("ACK", event.ack_type, event.conversation_id, server_msg_id, event.seq, event.user_id, ts)
    )


def _encode_notify(event: events.Notify, ref: EnvelopeRef | None) -> bytes:
    frame = {
        "type": "GROUP_NOTIFY",
        "conversationId": event.conversation_id,
        "groupId": group_of(event.conversation_id),
        "headSeq": event.head_seq,
    }
    if event.important:
        frame["important"] = True
    return _encode(frame)


def _encode_heads(event: events.HeadsChanged, ref: EnvelopeRef | None) -> bytes:
    heads = [{"conversationId": name, "headSeq": head} for name, head in event.heads]
    return _encode({"type": "HEADS", "conversations": heads})


def _encode_resync(event: events.Resync, ref: EnvelopeRef | None) -> bytes:
    frame: dict[str, Any] = {"type": "RESYNC", "reason": event.reason, "afterMs": event.after_ms}
    if event.conversation_ids:
        frame["conversations"] = list(event.conversation_ids)
    return _encode(frame)


def _encode_typing(event: events.IsTyping, ref: EnvelopeRef | None) -> bytes:
    return _encode({"type": "TYPING", "from": event.user_id, "conversationId": event.conversation_id, "on": event.on})


def _encode_presence(event: events.Presence, ref: EnvelopeRef | None) -> bytes:
    users = [{"userId": user, "online": online, "platforms": list(at)} for user, online, at in event.users]
    return _encode({"type": "PRESENCE", "users": users})


def _encode_failed(event: events.Failed, ref: EnvelopeRef | None, ts: int) -> bytes:
    error = event.error
    is_call = ref is not None and ref.is_call and error.name not in ("not_implemented", "unauthorized")
    kind = "CALL_ERROR" if is_call else "ERROR"
    frame: dict[str, Any] = {"type": kind, "reason": error.name, "detail": error.detail, "ts": ts}
    if is_call and (call_id := error.data.get("call_id") or (ref and ref.call_id)):
        frame["callId"] = call_id
    client_msg_id = event.client_msg_id if ref is None else ref.client_msg_id
    if client_msg_id is not None:
        frame["clientMsgId"] = client_msg_id
    if ref is not None and ref.server_msg_id is not None:
        frame["serverMsgId"] = ref.server_msg_id
    if error.retry_after_ms is not None:
        frame["retryAfterMs"] = error.retry_after_ms
    return _encode(frame)


def _encode_contact_requested(event: events.ContactRequested, ref: EnvelopeRef | None) -> bytes:
    number = str(event.request_id)
    frame = {"type": "FRIEND_REQUEST", "requestId": number, "from": event.user_id, "body": event.message}
    return _encode({**frame, "ts": event.at})


def _encode_contact_decided(event: events.ContactDecided, ref: EnvelopeRef | None) -> bytes:
    number = str(event.request_id)
    frame = {"type": "FRIEND_DECISION", "requestId": number, "from": event.user_id, "accepted": event.accepted}
    return _encode({**frame, "ts": event.at})


def _encode_join_requested(event: events.JoinRequested, ref: EnvelopeRef | None) -> bytes:
    frame = {"type": "GROUP_JOIN_REQUEST", "groupId": event.group_id, "from": event.user_id, "body": event.message}
    return _encode({**frame, "ts": event.at})


def _say_nothing(event: events.Event, ref: EnvelopeRef | None) -> bytes:
    return b""


ENCODERS: dict[type, Callable[[Any, EnvelopeRef | None], bytes]] = {
    events.SignedIn: _encode_signed_in,
    events.Pinged: lambda event, ref: b'{"type":"PONG"}',
    events.Saved: _encode_saved,
    events.Pulled: _encode_pulled,
    events.Synced: _encode_synced,
    events.ResendDone: lambda event, ref: _encode({"type": "RESEND_DONE", "hasMore": event.has_more}),
    events.Pushed: _encode_pushed,
    events.Notify: _encode_notify,
    events.HeadsChanged: _encode_heads,
    events.Resync: _encode_resync,
    events.Deleted: _encode_deleted,
    events.IsTyping: _encode_typing,
    events.Presence: _encode_presence,
    events.Withdrawn: _encode_withdrawn,
    events.ContactRequested: _encode_contact_requested,
    events.ContactDecided: _encode_contact_decided,
    events.JoinRequested: _encode_join_requested,
    **CALL_ENCODERS,
    # answers that a client of this dialect does not need, or cannot ask for
    events.Done: _say_nothing,
    events.TokensIssued: _say_nothing,
    events.Registered: _say_nothing,
    events.OfflinePulled: _say_nothing,
    events.LastMessagesListed: _say_nothing,
    events.ConversationsListed: _say_nothing,
    events.GroupShown: _say_nothing,
    events.GroupGlimpsed: _say_nothing,
    events.GroupsListed: _say_nothing,
    events.MembersListed: _say_nothing,
    events.Joined: _say_nothing,
    events.Invited: _say_nothing,
    events.ContactAsked: _say_nothing,
    events.ContactShown: _say_nothing,
    events.ContactsListed: _say_nothing,
    events.ContactRequestsListed: _say_nothing,
}

# Every ERROR, AUTH_FAIL and ACK has the server's time; that of `saved` is in its message.
TIMED_ENCODERS: dict[type, Callable[[Any, EnvelopeRef | None, int], bytes]] = {
    events.SignInFailed: _encode_sign_in_failed,
    events.Recalled: _encode_recalled,
    events.Edited: _acknowledge(edited_ack),
    events.Reacted: _acknowledge(reacted_ack),
    events.PinChanged: _acknowledge(pinned_ack),
    events.MarkedRead: _encode_marked_read,
    events.Receipt: _encode_receipt,
    events.Failed: _encode_failed,
    events.Accepted: _encode_accepted,
}
