"""Messages and list entries, decoded from frames and from the HTTP API into the SDK's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import ValidationError, convert

from nexo_client.core.outbox import OutboxItem
from nexo_client.types import (
    MEDIA_TYPES,
    TEXT_TYPES,
    ConversationSettings,
    Entry,
    Message,
    MsgType,
    Quote,
)

QUOTE_MAX_CHARS = 200

_FRAME_NAMES = {
    "serverMsgId": "server_msg_id",
    "clientMsgId": "client_msg_id",
    "conversationId": "conversation_id",
    "msgSeq": "seq",
    "from": "sender_id",
    "to": "recv_id",
    "groupId": "group_id",
    "msgType": "msg_type",
    "body": "content",
    "replyToServerMsgId": "reply_to",
    "recalledAt": "recalled_at",
    "editedAt": "edited_at",
    "forwardedFrom": "forwarded_from",
    "expiresAt": "expires_at",
    "ts": "send_at",
}
_CHANGE_TYPES = {
    "MESSAGE_EDITED": MsgType.EDITED,
    "REACTIONS": MsgType.REACTIONS,
    "PINNED": MsgType.PINNED,
}
_ENTRY_NAMES = {
    "conversationId": "conversation_id",
    "headSeq": "head_seq",
    "minSeq": "min_seq",
    "readSeq": "read_seq",
    "deliveredSeq": "delivered_seq",
    "unread": "unread",
}
_SETTING_NAMES = {
    "deletedRev": "deleted_rev",
    "pinned": "pinned",
    "recvMsgOpt": "recv_msg_opt",
    "hidden": "hidden",
    "archived": "archived",
    "silentUntil": "silent_until",
    "markedUnread": "marked_unread",
    "messageTtlS": "message_ttl_s",
    "draft": "draft",
    "extra": "extra",
}
_FIELDS = frozenset(Message.__struct_fields__)


def message_from_frame(frame: Mapping[str, Any]) -> Message:
    """Decodes SINGLE_CHAT, GROUP_CHAT or GROUP_EVENT, also inside PULL_OK."""
    return message_from_api({_FRAME_NAMES.get(name, name): value for name, value in frame.items()})


def message_from_api(shape: Mapping[str, Any]) -> Message:
    """Decodes a message of the HTTP API. Raises `msgspec.ValidationError` when it is not one."""
    fields = {name: value for name, value in shape.items() if name in _FIELDS}
    fields["mentions"] = fields.get("mentions") or ()
    for inner in ("quote", "forwarded_from"):
        if fields.get(inner) is not None:
            fields[inner] = {_FRAME_NAMES.get(name, name): value for name, value in fields[inner].items()}
    fields.setdefault("seq", None)
    message = convert(fields, Message)
    if message.seq is None and not message.provisional:
        raise ValidationError("A final message has a seq")
    return message


def recall_from_frame(frame: Mapping[str, Any], target_seq: int | None) -> Message:
    """Decodes MESSAGE_REVOKED as the recall event it stands for. The frame does not carry the event's own id."""
    content = {"server_msg_id": frame["serverMsgId"], "seq": target_seq, "by": frame["from"]}
    return _event_from_frame(frame, MsgType.RECALLED, content)


def change_from_frame(frame: Mapping[str, Any], user_id: str) -> Message:
    """Decodes MESSAGE_EDITED, REACTIONS or PINNED as the event it stands for, with the content that it has in a
    pull. `user_id` is mentioned by an edit that is `important`."""
    msg_type = _CHANGE_TYPES[frame["type"]]
    content: dict[str, Any] = {"server_msg_id": frame["serverMsgId"]}
    match msg_type:
        case MsgType.PINNED:
            content |= {"on": frame["on"], "by": frame["from"]}
        case MsgType.EDITED:
            content |= {"edited_at": frame["editedAt"], "by": frame["from"]}
            if "body" in frame:
                content |= {"content": frame["body"], "mentions": frame.get("mentions") or []}
        case _:
            content |= {"reactions": frame["reactions"]} if "reactions" in frame else {}
            for change in ("added", "removed"):
                if change in frame:
                    content[change] = [{"emoji": one["emoji"], "user_id": one["userId"]} for one in frame[change]]
    return _event_from_frame(frame, msg_type, content, (user_id,) if frame.get("important") else ())


def _event_from_frame(
    frame: Mapping[str, Any], msg_type: int, content: dict[str, Any], mentions: tuple[str, ...] = ()
) -> Message:
    return Message(
        server_msg_id="",
        client_msg_id=None,
        conversation_id=frame["conversationId"],
        seq=frame["msgSeq"],
        sender_id=frame.get("from", ""),
        msg_type=msg_type,
        content=content,
        mentions=mentions,
        send_at=frame["ts"],
        important=bool(mentions),
    )


def message_from_saved(item: OutboxItem, user_id: str, target: Message | None) -> Message:
    """Returns the sender's own copy: the server does not send it to the connection that wrote it.

    `target` is the message that it replies to, if that is in memory.
    """
    fields = item.fields
    return Message(
        server_msg_id=item.server_msg_id or "",
        client_msg_id=item.client_msg_id,
        conversation_id=item.conversation_id,
        seq=item.seq,
        sender_id=user_id,
        recv_id=fields.get("to"),
        group_id=fields.get("groupId"),
        msg_type=fields.get("msgType", 1),
        content=fields.get("body"),
        mentions=tuple(fields.get("mentions") or ()),
        reply_to=fields.get("replyToServerMsgId"),
        quote=None if target is None else quote_of(target),
        extra=fields.get("extra"),
        expires_at=item.expires_at,
        send_at=item.send_at or 0,
    )


def quote_of(target: Message) -> Quote | None:
    """Returns the quote as the server builds it; None of a message that was recalled or has expired."""
    if target.status:
        return None
    text = quote_text(target.msg_type, target.content)
    return Quote(target.server_msg_id, target.sender_id, target.msg_type, text)


def quote_text(msg_type: int, content: Any) -> str:
    text = ""
    if msg_type in TEXT_TYPES:
        text = str(content)
    elif msg_type in MEDIA_TYPES:
        text = str(content.get("text") or content.get("name") or content.get("url") or "")
    elif msg_type == MsgType.MERGED:
        text = str(content.get("title") or "")
    return text[:QUOTE_MAX_CHARS]


def entry_from_frame(frame: Mapping[str, Any]) -> Entry:
    """Decodes one conversation of SYNC."""
    shape = {name: frame[there] for there, name in _ENTRY_NAMES.items()}
    shape |= {name: frame[there] for there, name in _SETTING_NAMES.items() if there in frame}
    if shape.get("draft") is not None:
        shape["draft"] = {_FRAME_NAMES.get(name, name): value for name, value in shape["draft"].items()}
    return entry_from_api(shape)


def entry_from_api(shape: Mapping[str, Any]) -> Entry:
    """Decodes one row of the conversation list. A setting that is left out has its default value, unless the server
    is too old to have them."""
    fields = {name: shape[name] for name in Entry.__struct_fields__ if name in shape and name != "last_message"}
    if "deleted_rev" in shape or "pinned" in shape:
        fields["settings"] = convert(
            {name: shape[name] for name in ConversationSettings.__struct_fields__ if name in shape},
            ConversationSettings,
        )
    last = shape.get("last_message")
    return Entry(**fields, last_message=None if last is None else message_from_api(last))
