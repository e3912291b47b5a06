"""Messages of Nexo as OpenIM's clients see them: the fields of `MsgData`, and the content of each type. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from nexo.core.file_links import shown_content
from nexo.core.files import MEDIA_TYPES
from nexo.core.model import FIRST_EVENT, Message, MessageStatus, MsgType
from nexo.ids import AT_ALL
from nexo.wire.openim import content as form
from nexo.wire.openim.names import SINGLE

USER_MESSAGE, SYSTEM_MESSAGE = 100, 200  # msgFrom
CHAT, GROUP_CHAT, NOTIFICATION_CHAT = 1, 3, 4  # sessionType
SENT, DELETED = 2, 4  # status
REVOKED = 2101
PLATFORM_WEB = 5
UNIQUE_CHARS = 20  # of a client_msg_id that was not made by hand

_decode = msgspec.json.decode
_encode = msgspec.json.Encoder().encode
_MERGED, _CUSTOM = int(MsgType.MERGED), int(MsgType.CUSTOM)

Names = Callable[[str], tuple[str, str]]  # nickname and avatar of a user


def no_names(user_id: str) -> tuple[str, str]:
    return user_id, ""


class PushHint(Struct, omit_defaults=True):
    title: str = ""
    desc: str = ""
    ex: str = ""
    ios_push_sound: str = msgspec.field(default="", name="iOSPushSound")
    ios_badge_count: bool = msgspec.field(default=False, name="iOSBadgeCount")
    signal_info: str = msgspec.field(default="", name="signalInfo")


class Kept(Struct):
    """What is stored of a message that Nexo has no place for: `extra.openim`, with short names."""

    t: int  # contentType
    p: int = 0  # senderPlatformID
    ct: int = 0  # createTime
    x: str = ""  # ex
    a: str = ""  # attachedInfo
    n: str = ""  # senderNickname
    f: str = ""  # senderFaceURL
    o: list[str] = []  # options that are off
    op: PushHint | None = None
    c: dict[str, Any] = {}  # the rest of the content


class _Extra(Struct):
    openim: Kept


_decode_extra = msgspec.json.Decoder(_Extra).decode


def kept_of(message: Message) -> Kept | None:
    """Returns what an OpenIM client has sent with the message; None for a message of another client."""
    if message.extra is None or not message.extra.startswith('{"openim":'):
        return None
    try:
        kept = _decode_extra(message.extra).openim
        return kept if kept.t < form.FIRST_NOTIFICATION else None
    except msgspec.DecodeError:
        return None  # of another client, which calls something of its own so


def client_id_of(message: Message) -> str:
    """Returns the id by which a client knows the message. Ids are unique per sender, and OpenIM's clients keep one row
    per id: a short one of another client could be that of a second sender too. A recall leaves the id alone, not
    `extra`."""
    own_id = message.client_msg_id
    if own_id and (len(own_id) >= UNIQUE_CHARS or kept_of(message) is not None):
        return own_id
    return f"nexo_{message.server_msg_id}"


def msg_data(
    message: Message, number: int, base_url: str = "", names: Names = no_names, is_read: bool = False
) -> dict[str, Any]:
    """Returns the fields of a message whose place among the conversation's messages is `number`."""
    kept = kept_of(message)
    conversation_id, sender_id = message.conversation_id, message.sender_id
    is_single = conversation_id.startswith(SINGLE)
    nickname, avatar = names(sender_id)
    made: dict[str, Any] = {
        "sendID": sender_id,
        "serverMsgID": str(message.server_msg_id),
        "clientMsgID": client_id_of(message),
        "senderPlatformID": PLATFORM_WEB,
        "senderNickname": nickname,
        "senderFaceURL": absolute(avatar, base_url),
        "sessionType": CHAT if is_single else GROUP_CHAT,
        "msgFrom": USER_MESSAGE,
        "seq": number,
        "sendTime": message.send_at,
        "createTime": message.send_at,
        "status": SENT,
        "isRead": is_read,
    }
    if is_single:
        made["recvID"] = message.recv_id
    else:
        made["groupID"] = conversation_id[3:]
    if message.status == MessageStatus.RECALLED:
        made["contentType"], made["content"] = REVOKED, revoked_content(message, number, nickname)
        return made
    if message.status == MessageStatus.EXPIRED:
        made["contentType"], made["content"], made["status"] = form.TEXT, b'{"content":""}', DELETED
        return made
    if kept is not None:
        _give_back(made, kept)
        if nickname != sender_id:
            made["senderNickname"] = nickname
    made["contentType"], made["content"] = _content(message, kept, base_url)
    if message.mentions:
        made["atUserIDList"] = [form.AT_ALL_TAG if user_id == AT_ALL else user_id for user_id in message.mentions]
    return made


def _give_back(made: dict[str, Any], kept: Kept) -> None:
    made["senderPlatformID"] = kept.p or PLATFORM_WEB
    if kept.ct > 0:
        made["createTime"] = kept.ct
    if kept.x:
        made["ex"] = kept.x
    if kept.a:
        made["attachedInfo"] = kept.a
    if kept.n:
        made["senderNickname"] = kept.n
    if kept.f:
        made["senderFaceURL"] = kept.f
    if kept.o:
        made["options"] = dict.fromkeys(kept.o, False)
    if kept.op is not None:
        made["offlinePushInfo"] = msgspec.to_builtins(kept.op)


def absolute(url: str, base_url: str) -> str:
    return base_url + url if url.startswith("/") else url


def _content(message: Message, kept: Kept | None, base_url: str) -> tuple[int, bytes]:
    msg_type = message.msg_type
    if msg_type in (MsgType.TEXT, MsgType.QUOTE):
        return _text_content(message, kept)
    if msg_type == _CUSTOM:
        if kept is not None:
            return form.CUSTOM, message.content.encode()
        return form.CUSTOM, _encode({"data": message.content, "description": "", "extension": ""})
    if msg_type in MEDIA_TYPES:
        return _media_content(message, kept, base_url)
    if msg_type == _MERGED:
        return form.MERGED, _merged_content(message)
    made = {"type": msg_type, "content": _decode(message.content)}
    return form.CUSTOM, _encode({"data": _encode(made).decode(), "description": "", "extension": "nexo"})


def _text_content(message: Message, kept: Kept | None) -> tuple[int, bytes]:
    kind = kept.t if kept is not None else form.QUOTE if message.quote else form.TEXT
    if kept is None and message.mentions and not message.quote:
        kind = form.AT_TEXT
    if kept is not None and kind not in (form.TEXT, form.AT_TEXT, form.QUOTE):
        return kind, _encode(kept.c)  # a type that only OpenIM has
    if kind == form.TEXT:
        return kind, b'{"content":' + message.content.encode() + b"}"
    made: dict[str, Any] = dict(kept.c) if kept is not None else {}
    made["text"] = _decode(message.content)
    if kind == form.AT_TEXT:
        listed = [form.AT_ALL_TAG if user_id == AT_ALL else user_id for user_id in message.mentions]
        made.setdefault("atUserList", listed)
        made.setdefault("atUsersInfo", [{"atUserID": user_id, "groupNickname": user_id} for user_id in listed])
        made.setdefault("isAtSelf", False)
    if message.reply_to is not None:
        made["quoteMessage"] = _quote(message)
    return kind, _encode(made)


def _quote(message: Message) -> dict[str, Any]:
    """Returns the quoted message; of one that the reader may not see, or that was recalled, only its id."""
    quote = message.quote
    is_single = message.conversation_id.startswith(SINGLE)
    made: dict[str, Any] = {
        "serverMsgID": str(message.reply_to),
        "clientMsgID": f"nexo_{message.reply_to}",
        "sessionType": CHAT if is_single else GROUP_CHAT,
        "sendID": quote.sender_id if quote is not None else "",
        "groupID": "" if is_single else message.conversation_id[3:],
        "contentType": form.TEXT if quote is not None else REVOKED,
        "status": SENT,
    }
    if quote is not None:
        made["senderNickname"] = quote.sender_id
        made["textElem"] = {"content": quote.text}
    return made


def _media_content(message: Message, kept: Kept | None, base_url: str) -> tuple[int, bytes]:
    found = _decode(shown_content(message))
    url, size = absolute(found.get("url", ""), base_url), found.get("size") or 0
    mime, seconds = found.get("mime") or "", (found.get("duration_ms") or 0) // 1000
    width, height = found.get("width") or 0, found.get("height") or 0
    made: dict[str, Any] = dict(kept.c) if kept is not None else {}
    if message.msg_type == MsgType.IMAGE:
        picture = {"uuid": "", "type": mime, "size": size, "width": width, "height": height, "url": url}
        for name in ("sourcePicture", "bigPicture", "snapshotPicture"):
            own = made.get(name)
            made[name] = {**picture, **own, "url": url} if isinstance(own, dict) else picture
        return form.PICTURE, _encode({"sourcePath": "", **made})
    if message.msg_type == MsgType.AUDIO:
        base: dict[str, Any] = {"uuid": "", "soundPath": "", "dataSize": size, "duration": seconds, "soundType": mime}
        return form.SOUND, _encode({**base, **made, "sourceUrl": url})
    if message.msg_type == MsgType.VIDEO:
        base = {"videoPath": "", "videoUUID": "", "videoType": mime, "videoSize": size, "duration": seconds}
        base |= {"snapshotPath": "", "snapshotUUID": "", "snapshotSize": 0, "snapshotUrl": ""}
        base |= {"snapshotWidth": width, "snapshotHeight": height, "snapshotType": ""}
        return form.VIDEO, _encode({**base, **made, "videoUrl": url})
    base = {"filePath": "", "uuid": "", "fileName": found.get("name") or "", "fileSize": size, "fileType": mime}
    return form.FILE, _encode({**base, **made, "sourceUrl": url})


def _merged_content(message: Message) -> bytes:
    found = _decode(message.content)
    lines = []
    for item in found.get("items", ()):
        inside = item.get("content")
        lines.append(f"{item.get('sender_id', '')}: {inside if isinstance(inside, str) else '[…]'}")
    title = found.get("title") or ""
    return _encode({"title": title, "abstractList": lines[:100], "multiMessage": [], "messageEntityList": []})


def revoked_content(message: Message, number: int, nickname: str, revoker_id: str = "") -> bytes:
    """Returns the content of a message that was recalled: who did it, and nothing of what it was."""
    is_single = message.conversation_id.startswith(SINGLE)
    detail = {
        "revokerID": revoker_id or message.sender_id,
        "revokerRole": 0,
        "clientMsgID": client_id_of(message),
        "revokerNickname": nickname,
        "revokeTime": message.recalled_at or message.send_at,
        "sourceMessageSendTime": message.send_at,
        "sourceMessageSendID": message.sender_id,
        "sourceMessageSenderNickname": nickname,
        "sessionType": CHAT if is_single else GROUP_CHAT,
        "seq": number,
        "ex": "",
        "isAdminRevoke": False,
    }
    return _encode({"detail": _encode(detail).decode()})


def is_shown(message: Message) -> bool:
    """Returns whether a message has a place of its own among those of OpenIM's clients."""
    return message.msg_type < FIRST_EVENT
