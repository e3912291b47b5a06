"""The page of all frames, request numbers and commands of the WebSocket dialects, and of the limits that all share.

Names and fields are those of the code; the meanings are written here, and a test compares their keys with the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from nexo.api.requests import PLATFORMS
from nexo.core import content
from nexo.core.model import FIRST_EVENT, MsgType
from nexo.transport.websocket import SocketLimits
from nexo.wire.registry import COMMAND_FORMS, REQUEST_FORMS

INTRODUCTION = """\
All names and numbers of the three dialects in one place; the pages [envelope](envelope.md), [request](request.md) and
[command](command.md) show them at work. *Optional* fields are in italics.
""".splitlines()

# Further names of the sender, which have to be the signed-in user; not worth a mention in every row.
_SENDER_NAMES = {"send_id", "sender_id", "from", "from_user_id"}

ENVELOPE_SENT: dict[str, tuple[str, str]] = {
    "AUTH": ("`token`, *`deviceId`*, *`baselines`*", "sign in; the first frame, within three seconds"),
    "REAUTH": ("`token`", "show a newer token of the same user"),
    "PING": ("", "answered by PONG"),
    "PONG": ("", "answers nothing; counts as a sign of life"),
    "SINGLE_CHAT": (
        "`clientMsgId`, `to`, `body`, *`msgType`*, *`mentions`*, *`replyToServerMsgId`*, *`extra`*, *`ts`*, "
        "*`expiresS`*",
        "send to a user",
    ),
    "GROUP_CHAT": (
        "`clientMsgId`, `groupId`, `body`, *`msgType`*, *`mentions`*, *`replyToServerMsgId`*, *`extra`*, *`ts`*, "
        "*`expiresS`*",
        "send to a group",
    ),
    "ACK": (
        "`ackType` (`delivered`, `read`), `serverMsgId` or `conversationId` with `msgSeq`",
        "everything up to here is delivered or read",
    ),
    "MESSAGE_REVOKE": ("`serverMsgId`", "recall a message"),
    "MESSAGE_EDIT": ("`clientMsgId`, `serverMsgId`, `body`, *`mentions`*", "edit a message of one's own"),
    "REACT": ("`serverMsgId`, `emoji`, *`on`*, *`clientMsgId`*", "react to a message, or take that back"),
    "PIN": ("`serverMsgId`, *`on`*, *`clientMsgId`*", "pin a message, or unpin it"),
    "CALL_INVITE": ("`to`, `callKind` (`audio`, `video`), `sdp`, `clientMsgId`", "call a user"),
    "CALL_ACCEPT": ("`callId`, `sdp`", "answer a call"),
    "CALL_REJECT": ("`callId`", "decline a call"),
    "CALL_CANCEL": ("`callId`", "withdraw one's own call that was not answered"),
    "CALL_ICE": (
        "`callId`, `candidate`, *`sdpMid`*, *`sdpMLineIndex`*, *`usernameFragment`*; or *`description`*",
        "a candidate, or a new offer or answer, for the other device",
    ),
    "CALL_END": ("`callId`, *`reason`*", "hang up"),
    "PULL": ("`conversationId`, *`beginSeq`*, *`endSeq`*, *`limit`*", "messages by range"),
    "SYNC": ("*`conversations`* or *`cursor`*", "heads and cursors of conversations"),
    "RESEND": ("*`baselines`*", "go on with what was not delivered"),
    "TYPING": ("`to` or `groupId`, *`on`*", "typing, or not any more"),
    "PRESENCE": ("`subscribe`", "whose presence is reported from now on"),
}
ENVELOPE_RECEIVED = {
    "AUTH_OK": "signed in",
    "AUTH_FAIL": "not signed in; the connection is closed",
    "ACK": "`saved`, `accepted` (two-phase), `delivered`, `read`, `revoked`, `edited`, `reacted`, `pinned`: what "
    "became of a message",
    "SINGLE_CHAT": "a message of a single chat",
    "GROUP_CHAT": "a message of a group",
    "GROUP_EVENT": f"an event of a group: `msgType` {FIRST_EVENT} and up",
    "GROUP_NOTIFY": "a group has new messages, without them",
    "HEADS": "new heads of conversations, without messages",
    "MESSAGE_REVOKED": "a message was recalled",
    "DELETED": "messages that the user deleted for themselves, on another device",
    "MESSAGE_EDITED": "a message was edited",
    "REACTIONS": "the reactions of a message changed",
    "PINNED": "a message was pinned or unpinned",
    "MESSAGE_WITHDRAWN": "a provisional copy is void",
    "PULL_OK": "answers PULL",
    "SYNC": "heads and cursors, after signing in and when asked",
    "RESEND_DONE": "everything that was not delivered has been sent",
    "RESYNC": "something may be missing: synchronise after `afterMs`",
    "TYPING": "a user types, or not any more",
    "PRESENCE": "users are connected, or not any more",
    "FRIEND_REQUEST": "a user asks to become a contact: `requestId`, `from`, `body`, `ts`",
    "FRIEND_DECISION": "a contact request was decided: `requestId`, `from`, `accepted`, `ts`",
    "GROUP_JOIN_REQUEST": "a user asks to join a group that one manages: `groupId`, `from`, `body`, `ts`",
    "CALL_INVITE_OK": "answers CALL_INVITE: `callId`, `clientMsgId`",
    "CALL_INVITE": "a user calls: `callId`, `from`, `callKind`, `sdp`",
    "CALL_ACCEPT": "the call was answered: `callId`, `from`, `sdp`",
    "CALL_ICE": "a candidate, or a new offer or answer, of the other device",
    "CALL_END": "the call has ended: `callId`, `reason`, *`durationMs`*",
    "CALL_TIMEOUT": "the call was not answered in time: `callId`",
    "CALL_ERROR": "a frame of a call was refused: `reason`, *`callId`*, *`clientMsgId`*",
    "PONG": "answers PING",
    "ERROR": "a request was refused, or the connection ends",
}
REQUEST_SENT = {
    1001: "newest and read seqs of conversations",
    1002: "messages by a list of seqs",
    1003: "send a message",
    1004: "mark as read",
    1005: "messages by range",
    1006: "heads and cursors of conversations",
    1007: "the last message of conversations",
    1008: "acknowledge as delivered",
    1009: "recall a message",
    1010: "typing, or not any more",
    1011: "whose presence is reported from now on",
    1012: "edit a message of one's own",
    1013: "react to a message, or take that back",
    1014: "pin a message, or unpin it",
    1020: "call a user",
    1021: "answer a call",
    1022: "decline a call",
    1023: "withdraw one's own call",
    1024: "a candidate or new description for the other device",
    1025: "hang up",
}
REQUEST_RECEIVED = {
    2001: "a message, or an event of a group",
    2002: "kicked: another device took the place, or the session has ended",
    2003: "read receipt",
    2004: "something may be missing: synchronise after `after_ms`",
    2005: "users are connected, or not any more",
    2006: "a group has new messages, without them",
    2007: "a message was recalled",
    2008: "delivered receipt",
    2009: "a message is saved, or accepted (two-phase)",
    2010: "an error that answers no request, or the connection ends",
    2011: "a provisional copy is void",
    2012: "a user types, or not any more",
    2013: "new heads of conversations",
    2014: "a message was edited",
    2015: "the reactions of a message changed",
    2016: "a message was pinned or unpinned",
    2017: "`event` `request`: a contact request; `decision`: its decision; `join_request`: a request to join a group",
    2018: "messages that the user deleted for themselves, on another device",
    2020: "a user calls",
    2021: "the call was answered",
    2024: "a candidate or new description of the other device",
    2025: "the call has ended",
    2026: "the call was not answered in time",
}
COMMAND_SENT = {
    "heartbeat": "a sign of life",
    "auth.register": "register a user",
    "auth.login": "sign in by a password",
    "auth.token": "sign in by a token, or show a newer one",
    "auth.refresh": "exchange a refresh token",
    "auth.logout": "end the session",
    "chat.send_message": "send a message",
    "chat.recall_message": "recall a message",
    "chat.edit_message": "edit a message of one's own",
    "chat.react": "react to a message, or take that back",
    "chat.pin_message": "pin a message, or unpin it",
    "chat.delete_for_me": "delete messages for oneself",
    "chat.pull_offline": "what was not delivered, oldest first",
    "chat.mark_read": "mark as read",
    "chat.ack": "acknowledge as delivered",
    "chat.get_history": "messages, newest first",
    "chat.sync_conversations": "the list of conversations",
    "chat.delete_conversation": "dismiss a group of one's own",
    "chat.typing": "typing, or not any more",
    "group.create": "create a group",
    "group.join": "join, or ask to; by the `code` of a link without asking",
    "group.leave": "leave",
    "group.dismiss": "dismiss",
    "group.invite_members": "bring users in",
    "group.remove_member": "remove a member",
    "group.transfer_owner": "transfer the ownership",
    "group.set_member_role": "`admin` or `member`",
    "group.update": "change name, avatar and texts",
    "group.get_info": "a group",
    "group.get_members": "its members",
    "group.get_user_groups": "one's own groups",
    "contact.request": "ask a user to become a contact",
    "contact.decide": "accept or refuse a contact request",
    "contact.remove": "end a contact, for both",
    "contact.remark": "one's own name for a contact",
    "contact.list": "the contacts",
    "contact.requests": "open contact requests, received or sent",
    "call.invite": "call a user",
    "call.accept": "answer a call",
    "call.reject": "decline a call",
    "call.cancel": "withdraw one's own call",
    "call.ice": "a candidate or new description for the other device",
    "call.end": "hang up",
    "presence.subscribe": "whose presence is reported from now on",
}
COMMAND_RECEIVED = {
    "chat.message": "a message",
    "chat.saved": "a message is saved, or accepted (two-phase)",
    "chat.withdrawn": "a provisional copy is void",
    "chat.read_receipt": "read receipt",
    "chat.delivered_receipt": "delivered receipt",
    "chat.recalled": "a message was recalled",
    "chat.edited": "a message was edited",
    "chat.reactions": "the reactions of a message changed",
    "chat.pinned": "a message was pinned or unpinned",
    "chat.deleted": "messages that the user deleted for themselves, on another device",
    "chat.notify": "a group has new messages, without them",
    "chat.heads": "new heads of conversations",
    "chat.typing": "a user types, or not any more",
    "group.event": "an event of a group",
    "contact.event": "a contact request, its decision, or a request to join a group",
    "call.invite": "a user calls",
    "call.accept": "the call was answered",
    "call.ice": "a candidate or new description of the other device",
    "call.end": "the call has ended",
    "call.timeout": "the call was not answered in time",
    "presence.changed": "users are connected, or not any more",
    "session.kicked": "another device took the place, or the session has ended",
    "session.error": "an error that answers no command, or the connection ends",
    "sync.resync": "something may be missing: synchronise after `after_ms`",
}
MSG_TYPES = {
    MsgType.TEXT: "text: a string",
    MsgType.IMAGE: "image: `{url, name?, size?, width?, height?, duration_ms?}`",
    MsgType.VIDEO: "video: the same",
    MsgType.AUDIO: "audio: the same",
    MsgType.FILE: "file: the same",
    MsgType.CUSTOM: "custom: any object",
    MsgType.QUOTE: "quote: a string, and the message that it answers",
    MsgType.MERGED: "messages forwarded as one: `{title, items: [{sender_id, send_at, msg_type, content}]}`; cannot be "
    "sent by clients",
    MsgType.RECALLED: "a message was recalled",
    MsgType.GROUP_CREATED: "the group was created",
    MsgType.JOINED: "users joined",
    MsgType.LEFT: "a member left",
    MsgType.REMOVED: "a member was removed",
    MsgType.OWNER_TRANSFERRED: "the ownership was transferred",
    MsgType.ROLE_CHANGED: "a member became admin, or an admin member",
    MsgType.GROUP_UPDATED: "name, avatar or texts changed, what a member shows there (`changes.member`), or how long "
    "messages are shown (`changes.message_ttl_s`, in single chats too)",
    MsgType.DISMISSED: "the group was dismissed",
    MsgType.MUTED: "a member, or the group, was muted or unmuted",
    MsgType.EDITED: "a message was edited",
    MsgType.REACTIONS: "the reactions of a message changed",
    MsgType.PINNED: "a message was pinned or unpinned",
    MsgType.CALL: "the record of a call, in the caller's name: `{call_id, kind, outcome, duration_ms}`",
}
_TWO_USERS = "**`Ann` and `ann` are two users**"


def lines() -> Iterator[str]:
    yield from _limits()
    yield from _table("Message types", ("type", "content"), ((f"{kind:d}", MSG_TYPES[kind]) for kind in MsgType))
    yield ""
    yield (
        f"From {FIRST_EVENT} on the server makes them: they have a seq, cannot be sent and never count as unread, "
        "except records of missed and canceled calls."
    )
    yield from _table(
        "Envelope: from the client",
        ("`type`", "fields", "meaning"),
        ((f"`{name}`", *row) for name, row in ENVELOPE_SENT.items()),
    )
    yield from _table(
        "Envelope: from the server",
        ("`type`", "meaning"),
        ((f"`{name}`", text) for name, text in ENVELOPE_RECEIVED.items()),
    )
    yield from _table(
        "Request: from the client",
        ("number", "`data`", "meaning"),
        ((f"{number}", _fields(form), REQUEST_SENT[number]) for number, form in REQUEST_FORMS.items()),
    )
    yield from _table(
        "Request: pushes", ("number", "meaning"), ((f"{n}", text) for n, text in REQUEST_RECEIVED.items())
    )
    yield from _table(
        "Command: from the client",
        ("`cmd`", "`data`", "meaning"),
        (
            (f"`{name}`", _fields(form), COMMAND_SENT[name] + (" (before signing in too)" if for_all else ""))
            for name, (form, for_all) in COMMAND_FORMS.items()
        ),
    )
    yield from _table(
        "Command: pushes", ("`cmd`", "meaning"), ((f"`{name}`", text) for name, text in COMMAND_RECEIVED.items())
    )


def _limits() -> Iterator[str]:
    kib = 1024
    yield from _table(
        "Limits of the contract",
        ("what", "limit", "beyond it"),
        [
            ("user id", f"1 to 64 of `A-Z a-z 0-9 . _ @ -`; {_TWO_USERS}; `nexo.…` is reserved", "`bad_user_id`"),
            ("group id", "`g_` and 12 letters or digits, made by the server", "`bad_group_id`"),
            ("conversation id", "`si_{a}:{b}` (both users in ASCII order), `sg_{group id}`", "`bad_conversation_id`"),
            ("client message id", "1 to 64 printable ASCII characters, no spaces at the ends", "`bad_client_msg_id`"),
            ("server message id", "a string of at most 19 digits; rising, not dense", "`bad_server_msg_id`"),
            ("`platform_id`", PLATFORMS, "`bad_platform_id`"),
            ("`device_id`", "at most 128 characters", "`bad_device_id`"),
            ("text (types 1 and 7)", f"1 to {content.TEXT_MAX_CHARS:,} Unicode characters", "`body_too_long`"),
            ("content of other types", f"{content.CONTENT_MAX_BYTES // kib} KiB as JSON", "`body_too_long`"),
            ("`extra`", f"an object, {content.EXTRA_MAX_BYTES // kib} KiB as JSON", "`body_too_long`"),
            ("address of media", f"http(s) or `/files/…`, {content.URL_MAX_CHARS} characters", "`bad_content`"),
            ("mentions", f"at most {content.MENTIONS_MAX}, or `@all`", "`bad_mentions`"),
            (
                "nesting of objects",
                f"{content.NESTING_MAX}; no NUL, no lone surrogates, 64-bit numbers",
                "`bad_content`",
            ),
            ("frame", f"{SocketLimits().message_bytes // kib} KiB", "closed with 1009"),
            ("messages in one answer", "200", "the rest with the next request"),
        ],
    )
    yield ""
    yield "How often: `limits` in [config.md](../config.md#limits)."


def _fields(form: type[msgspec.Struct]) -> str:
    shown = [field for field in msgspec.structs.fields(form) if field.encode_name not in _SENDER_NAMES]
    return ", ".join(f"`{one.encode_name}`" if one.required else f"*`{one.encode_name}`*" for one in shown)


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
