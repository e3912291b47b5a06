"""Dialect A, `nexo.envelope.v1`: flat JSON objects with a `type`, camelCase."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from nexo.core import commands, events
from nexo.core.model import FIRST_EVENT, Message, MsgType, Quote
from nexo.core.shapes import is_important
from nexo.errors import ERRORS, NexoError
from nexo.ids import group_of
from nexo.wire.dialect import BadFrame
from nexo.wire.reading import UNSTORABLE, read_object, unstorable_field


class Frame(Struct, rename="camel", gc=False):
    """Any frame of a client: what a type does not use is ignored."""

    type: str | None = None
    client_msg_id: str | None = None
    server_msg_id: str | int | None = None
    conversation_id: str | None = None
    msg_seq: int | str | None = None
    sender: str | None = msgspec.field(default=None, name="from")
    send_id: Any = None  # other ways to say who sends: they have to tell the truth as well
    sender_id: Any = None
    send_id_: Any = msgspec.field(default=None, name="send_id")
    sender_id_: Any = msgspec.field(default=None, name="sender_id")
    to: str | None = None
    group_id: str | None = None
    token: str | None = None
    device_id: str | None = None
    baselines: dict[str, int | str] | None = None
    ack_type: str | None = None
    msg_type: int | None = None
    body: Any = None
    mentions: list[str] | None = None
    reply_to_server_msg_id: str | int | None = None
    extra: Any = None
    begin_seq: int | str | None = None
    end_seq: int | str | None = None
    limit: int | None = None
    cursor: str | None = None
    conversations: list[str] | None = None
    subscribe: list[str] | None = None
    on: bool | None = None


class Ref(Struct, frozen=True, gc=False):
    """What an answer echoes."""

    client_msg_id: str | None = None
    server_msg_id: str | None = None


# the error that names a field, where the field's own name differs from it
_FIELD_ERRORS = {
    "from": "bad_user_id",
    "to": "bad_receiver",
    "body": "bad_content",
    "msgSeq": "bad_seq",
    "beginSeq": "bad_seq",
    "endSeq": "bad_seq",
    "replyToServerMsgId": "bad_reply_to",
    "conversations": "bad_conversation_id",
    "subscribe": "bad_user_id",
    "ackType": "unknown_ack_type",
    "type": "missing_type",
}
_PATH = re.compile(r"at `\$\.(\w+)")
_decode = msgspec.json.Decoder(Frame).decode
_encode = msgspec.json.Encoder().encode
_RECALLED = int(MsgType.RECALLED)


def _claims_another(frame: Frame, user_id: str) -> bool:
    """Each way to say who sends is optional, and has to tell the truth."""
    return not (
        (frame.sender is None or frame.sender == user_id)
        and (frame.sender_id is None or frame.sender_id == user_id)
        and (frame.send_id is None or frame.send_id == user_id)
        and (frame.sender_id_ is None or frame.sender_id_ == user_id)
        and (frame.send_id_ is None or frame.send_id_ == user_id)
    )


def _ref_of(frame: Frame) -> Ref | None:
    if frame.client_msg_id is None and frame.server_msg_id is None:
        return None
    return Ref(frame.client_msg_id, None if frame.server_msg_id is None else str(frame.server_msg_id))


def _bad_frame(data: bytes, error: Exception) -> BadFrame:
    """A frame that is not JSON, or whose fields have the wrong types: say which, and echo what there is."""
    found = read_object(data)
    if found is None:
        is_json = isinstance(error, msgspec.ValidationError)
        return BadFrame(NexoError("bad_json", "A frame is a JSON object" if is_json else None), violation=True)
    client_msg_id, server_msg_id = found.get("clientMsgId"), found.get("serverMsgId")
    ref = Ref(
        client_msg_id if isinstance(client_msg_id, str) else None,
        str(server_msg_id) if type(server_msg_id) in (str, int) else None,
    )
    if isinstance(error, msgspec.ValidationError):
        where = _PATH.search(str(error))
        field, fault = where.group(1) if where else "", "has the wrong type"
    else:
        field, fault = unstorable_field(data), UNSTORABLE
    name = _FIELD_ERRORS.get(field) or "bad_" + re.sub(r"([A-Z])", lambda m: "_" + m.group(1).lower(), field)
    if name == "missing_type" or "type" not in found:
        return BadFrame(NexoError("missing_type", "type must be a string"), ref, violation=True)
    if name not in ERRORS:
        name = "bad_request"
    detail = f"The field {field} {fault}" if field else None
    return BadFrame(NexoError(name, detail), ref, signs_in=found.get("type") == "AUTH")


def _seq(value: int | str | None, default: int | None = None) -> int | None:
    """Seqs are integers; strings of digits are accepted."""
    if value is None:
        return default
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit() and len(value) <= 18):
            raise NexoError("bad_seq", "A seq is a whole number")
        return int(value)
    if not -(1 << 62) < value < 1 << 62:
        raise NexoError("bad_seq", "No conversation is that long")
    return value


def _need(value: Any, name: str) -> Any:
    if value is None or value == "":
        raise NexoError(name)
    return value


def _baselines(frame: Frame) -> dict[str, int]:
    found = frame.baselines or {}
    return {name: _seq(value) or 0 for name, value in found.items()}


def _auth(frame: Frame) -> commands.Command:
    return commands.Auth(_need(frame.token, "missing_token"), frame.device_id, _baselines(frame))


def _reauth(frame: Frame) -> commands.Command:
    return commands.Reauth(_need(frame.token, "missing_token"))


def _send(frame: Frame, recv_id: str | None, group_id: str | None) -> commands.Command:
    return commands.Send(
        _need(frame.client_msg_id, "missing_client_msg_id"),
        recv_id,
        group_id,
        1 if frame.msg_type is None else frame.msg_type,
        frame.body,
        frame.mentions or (),
        frame.reply_to_server_msg_id,
        frame.extra,
    )


def _single(frame: Frame) -> commands.Command:
    if frame.group_id:
        raise NexoError("bad_receiver", "A SINGLE_CHAT has no groupId")
    return _send(frame, _need(frame.to, "missing_receiver"), None)


def _group(frame: Frame) -> commands.Command:
    if frame.to:
        raise NexoError("bad_receiver", "A GROUP_CHAT has no to")
    return _send(frame, None, _need(frame.group_id, "missing_group_id"))


def _ack(frame: Frame) -> commands.Command:
    ack_type = _need(frame.ack_type, "unknown_ack_type")
    if frame.server_msg_id is not None:
        return commands.Ack(ack_type, frame.server_msg_id)
    if frame.conversation_id is None and frame.msg_seq is None:
        raise NexoError("missing_server_msg_id", "Name serverMsgId, or conversationId and msgSeq")
    conversation_id = _need(frame.conversation_id, "missing_conversation_id")
    return commands.Ack(ack_type, None, conversation_id, _seq(_need(frame.msg_seq, "missing_seq")))


def _revoke(frame: Frame) -> commands.Command:
    return commands.Recall(_need(frame.server_msg_id, "missing_server_msg_id"))


def _pull(frame: Frame) -> commands.Command:
    conversation_id = _need(frame.conversation_id, "missing_conversation_id")
    return commands.Pull(conversation_id, _seq(frame.begin_seq, 1) or 0, _seq(frame.end_seq), frame.limit)


def _sync(frame: Frame) -> commands.Command:
    names = None if frame.conversations is None else tuple(frame.conversations)
    return commands.Sync(frame.cursor, frame.limit, names)


def _typing(frame: Frame) -> commands.Command:
    if not frame.to and not frame.group_id:
        raise NexoError("missing_receiver", "Name to or groupId")
    return commands.Typing(frame.on is not False, frame.to or None, frame.group_id or None)


def _presence(frame: Frame) -> commands.Command:
    return commands.SubscribePresence(tuple(_need(frame.subscribe, "missing_user_id")))


def _reserved(frame: Frame) -> commands.Command:
    raise NexoError("not_implemented", "Calls are not part of this release")


_COMMANDS: dict[str, Callable[[Frame], commands.Command]] = {
    "AUTH": _auth,
    "REAUTH": _reauth,
    "PING": lambda frame: commands.Ping(),
    "PONG": lambda frame: commands.Pong(),
    "SINGLE_CHAT": _single,
    "GROUP_CHAT": _group,
    "ACK": _ack,
    "MESSAGE_REVOKE": _revoke,
    "PULL": _pull,
    "SYNC": _sync,
    "RESEND": lambda frame: commands.Resend(_baselines(frame)),
    "TYPING": _typing,
    "PRESENCE": _presence,
}


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
    important: bool | UnsetType = UNSET
    silent: bool | UnsetType = UNSET
    resend: bool | UnsetType = UNSET
    provisional: bool | UnsetType = UNSET
    ts: int = 0


def message_frame(message: Message, pushed: events.Pushed | None = None) -> MessageFrame:
    group_id = message.group_id
    quote = message.quote
    important = silent = resend = provisional = False
    if pushed is not None:
        important, silent, resend, provisional = pushed.important, pushed.silent, pushed.resend, pushed.provisional
        if not pushed.quoted:
            quote = None
    return MessageFrame(
        "GROUP_EVENT" if message.msg_type >= FIRST_EVENT else "SINGLE_CHAT" if group_id is None else "GROUP_CHAT",
        str(message.server_msg_id),
        message.client_msg_id,
        message.conversation_id,
        UNSET if provisional else message.seq,  # it has no place yet
        message.sender_id,
        UNSET if group_id is not None else message.recv_id or UNSET,
        UNSET if group_id is None else group_id,
        message.msg_type,
        Raw(message.content.encode()),
        message.mentions,
        None if message.reply_to is None else str(message.reply_to),
        UNSET if quote is None else _quote(quote),
        None if message.extra is None else Raw(message.extra.encode()),
        message.status,
        UNSET if message.recalled_at is None else message.recalled_at,
        important or UNSET,
        silent or UNSET,
        resend or UNSET,
        provisional or UNSET,
        message.send_at,
    )


def _quote(quote: Quote) -> dict[str, Any]:
    return {
        "serverMsgId": str(quote.server_msg_id),
        "from": quote.sender_id,
        "msgType": quote.msg_type,
        "text": quote.text,
    }


class Envelope:
    name = "nexo.envelope.v1"
    signs_in = True
    confirms = False
    catches_up = True

    def for_connection(self, token: str | None) -> Envelope:
        return self

    def decode(self, frame: bytes, user_id: str | None) -> tuple[commands.Command, Ref | None]:
        try:
            found = _decode(frame)
        except RecursionError:
            raise BadFrame(NexoError("bad_json", "nested too deeply"), violation=True) from None
        except (msgspec.DecodeError, ValueError) as error:  # not UTF-8, numbers of thousands of digits
            raise _bad_frame(frame, error) from None
        ref = _ref_of(found)
        if not found.type:
            raise BadFrame(NexoError("missing_type"), ref, violation=True)
        build = _COMMANDS.get(found.type)
        try:
            if build is None:
                if found.type.startswith("CALL_"):
                    _reserved(found)
                raise BadFrame(NexoError("unknown_type", f"There is no type {found.type[:40]!r}"), ref, violation=True)
            if user_id is not None and _claims_another(found, user_id):
                raise NexoError("identity_mismatch")
            return build(found), ref
        except NexoError as error:
            raise BadFrame(error, ref, signs_in=build is _auth) from None

    def encode(self, event: events.Event, ref: Ref | None = None) -> bytes:
        return _ENCODERS[type(event)](event, ref)


def _encode_pushed(event: events.Pushed, ref: Ref | None) -> bytes:
    if event.message.msg_type == _RECALLED:
        return _encode_recall_event(event.message, event.resend)
    return _encode(message_frame(event.message, event))


def _encode_recall_event(message: Message, resend: bool) -> bytes:
    """The recall event is told as what it means; `msgSeq` is the event's own."""
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


def _encode_saved(event: events.Saved, ref: Ref | None) -> bytes:
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
            Raw(message.content.encode()) if event.content_changed else UNSET,
        )
    )


def _encode_accepted(event: events.Accepted, ref: Ref | None) -> bytes:
    return _encode(
        {
            "type": "ACK",
            "ackType": "accepted",
            "clientMsgId": event.client_msg_id,
            "serverMsgId": str(event.server_msg_id),
            "conversationId": event.conversation_id,
        }
    )


def _encode_withdrawn(event: events.Withdrawn, ref: Ref | None) -> bytes:
    return _encode(
        {
            "type": "MESSAGE_WITHDRAWN",
            "serverMsgId": str(event.server_msg_id),
            "conversationId": event.conversation_id,
            "reason": event.reason,
        }
    )


def _encode_signed_in(event: events.SignedIn, ref: Ref | None) -> bytes:
    return _encode(
        {"type": "AUTH_OK", "userId": event.user_id, "connId": event.conn_id, "heartbeatMs": event.heartbeat_ms}
    )


def _encode_sign_in_failed(event: events.SignInFailed, ref: Ref | None) -> bytes:
    error = event.error
    frame: dict[str, Any] = {"type": "AUTH_FAIL", "reason": error.name, "detail": error.detail}
    if error.retry_after_ms is not None:
        frame["retryAfterMs"] = error.retry_after_ms
    return _encode(frame)


def _encode_recalled(event: events.Recalled, ref: Ref | None) -> bytes:
    frame = {
        "type": "ACK",
        "ackType": "revoked",
        "serverMsgId": str(event.server_msg_id),
        "conversationId": event.conversation_id,
        "msgSeq": event.seq,
    }
    if ref is not None and ref.client_msg_id is not None:
        frame["clientMsgId"] = ref.client_msg_id
    return _encode(frame)


def _pulled_frame(message: Message, reader_id: str) -> MessageFrame:
    frame = message_frame(message)
    if message.mentions and is_important(message, reader_id):
        frame.important = True
    return frame


def _encode_pulled(event: events.Pulled, ref: Ref | None) -> bytes:
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


def _encode_synced(event: events.Synced, ref: Ref | None) -> bytes:
    frame = {
        "type": "SYNC",
        "conversations": [
            {
                "conversationId": head.conversation_id,
                "headSeq": head.head_seq,
                "minSeq": head.min_seq,
                "readSeq": head.read_seq,
                "deliveredSeq": head.delivered_seq,
                "unread": head.unread,
            }
            for head in event.heads
        ],
        "hasMore": event.has_more,
    }
    if event.cursor:
        frame["cursor"] = event.cursor
    return _encode(frame)


def _encode_marked_read(event: events.MarkedRead, ref: Ref | None) -> bytes:
    return _encode(
        {
            "type": "ACK",
            "ackType": "read",
            "conversationId": event.conversation_id,
            "msgSeq": event.read_seq,
            "unread": event.unread,
        }
    )


class _ReceiptFrame(Struct, rename="camel", gc=False):
    type: str
    ack_type: str
    conversation_id: str
    server_msg_id: str
    msg_seq: int
    sender: str = msgspec.field(name="from")


def _encode_receipt(event: events.Receipt, ref: Ref | None) -> bytes:
    return _encode(
        _ReceiptFrame("ACK", event.ack_type, event.conversation_id, str(event.server_msg_id), event.seq, event.user_id)
    )


def _encode_notify(event: events.Notify, ref: Ref | None) -> bytes:
    frame = {
        "type": "GROUP_NOTIFY",
        "conversationId": event.conversation_id,
        "groupId": group_of(event.conversation_id),
        "headSeq": event.head_seq,
    }
    if event.important:
        frame["important"] = True
    return _encode(frame)


def _encode_heads(event: events.HeadsChanged, ref: Ref | None) -> bytes:
    heads = [{"conversationId": name, "headSeq": head} for name, head in event.heads]
    return _encode({"type": "HEADS", "conversations": heads})


def _encode_resync(event: events.Resync, ref: Ref | None) -> bytes:
    frame: dict[str, Any] = {"type": "RESYNC", "reason": event.reason, "afterMs": event.after_ms}
    if event.conversation_ids:
        frame["conversations"] = list(event.conversation_ids)
    return _encode(frame)


def _encode_typing(event: events.IsTyping, ref: Ref | None) -> bytes:
    return _encode({"type": "TYPING", "from": event.user_id, "conversationId": event.conversation_id, "on": event.on})


def _encode_presence(event: events.Presence, ref: Ref | None) -> bytes:
    users = [{"userId": user, "online": online, "platforms": list(at)} for user, online, at in event.users]
    return _encode({"type": "PRESENCE", "users": users})


def _encode_failed(event: events.Failed, ref: Ref | None) -> bytes:
    error = event.error
    frame: dict[str, Any] = {"type": "ERROR", "reason": error.name, "detail": error.detail}
    client_msg_id = event.client_msg_id if ref is None else ref.client_msg_id
    if client_msg_id is not None:
        frame["clientMsgId"] = client_msg_id
    if ref is not None and ref.server_msg_id is not None:
        frame["serverMsgId"] = ref.server_msg_id
    if error.retry_after_ms is not None:
        frame["retryAfterMs"] = error.retry_after_ms
    return _encode(frame)


def _say_nothing(event: events.Event, ref: Ref | None) -> bytes:
    return b""


_ENCODERS: dict[type, Callable[[Any, Ref | None], bytes]] = {
    events.SignedIn: _encode_signed_in,
    events.SignInFailed: _encode_sign_in_failed,
    events.Pinged: lambda event, ref: b'{"type":"PONG"}',
    events.Saved: _encode_saved,
    events.Recalled: _encode_recalled,
    events.Pulled: _encode_pulled,
    events.Synced: _encode_synced,
    events.MarkedRead: _encode_marked_read,
    events.ResendDone: lambda event, ref: _encode({"type": "RESEND_DONE", "hasMore": event.has_more}),
    events.Pushed: _encode_pushed,
    events.Receipt: _encode_receipt,
    events.Notify: _encode_notify,
    events.HeadsChanged: _encode_heads,
    events.Resync: _encode_resync,
    events.IsTyping: _encode_typing,
    events.Presence: _encode_presence,
    events.Failed: _encode_failed,
    events.Accepted: _encode_accepted,
    events.Withdrawn: _encode_withdrawn,
    # what a client here need not be told, or cannot ask for
    events.Done: _say_nothing,
    events.TokensIssued: _say_nothing,
    events.Registered: _say_nothing,
    events.OfflinePulled: _say_nothing,
    events.LastMessages: _say_nothing,
    events.ConversationsListed: _say_nothing,
    events.GroupShown: _say_nothing,
    events.GroupsListed: _say_nothing,
    events.MembersListed: _say_nothing,
    events.Joined: _say_nothing,
    events.Invited: _say_nothing,
}

DIALECT = Envelope()
