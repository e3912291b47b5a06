"""Content of messages between OpenIM and Nexo. Pure.

What an OpenIM client sends becomes a type of Nexo where there is one. The rest of the message (`ex`, options and what
Nexo has no place for) is kept in `extra.openim` and given back as it was. A text is always taken from the message
itself, so that what a filter or an edit has changed is shown.
"""

from __future__ import annotations

from typing import Any

import msgspec

from nexo.core.commands import Send
from nexo.core.files import is_file_id
from nexo.core.model import MsgType
from nexo.errors import NexoError
from nexo.ids import AT_ALL

TEXT, PICTURE, SOUND, VIDEO, FILE, AT_TEXT, MERGED, CARD, LOCATION, CUSTOM = range(101, 111)
TYPING, QUOTE, FACE, ADVANCED_TEXT = 113, 114, 115, 117
FIRST_NOTIFICATION = 1000  # such types are made by the server: recalls, changes of groups, receipts
AT_ALL_TAG = "AtAllTag"
_SINGLE, _GROUP = 1, 3
_KEPT_TEXTS = {"ex": "x", "attachedInfo": "a", "senderNickname": "n", "senderFaceURL": "f"}
_TEXT_FIELDS = {TEXT: "content", AT_TEXT: "text", QUOTE: "text"}
_MEDIA = {PICTURE: MsgType.IMAGE, SOUND: MsgType.AUDIO, VIDEO: MsgType.VIDEO, FILE: MsgType.FILE}
_LINES = {
    MERGED: ("[Chat history]", "title"),
    CARD: ("[Contact card]", "nickname"),
    LOCATION: ("[Location]", "description"),
    FACE: ("[Sticker]", ""),
    ADVANCED_TEXT: ("", "text"),
}

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


def _bad(reason: str) -> NexoError:
    return NexoError("bad_content", reason)


def send_of(data: dict[str, Any], own_files: bool = True) -> Send:
    """Returns the command of a message that a client sends. Without `own_files` no address is that of a file of this
    server."""
    kind = data["contentType"]
    if kind >= FIRST_NOTIFICATION:
        raise _bad("A client sends no notifications")
    try:
        content = _decode(data["content"])
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise _bad("content is a JSON object") from None
    recv_id, group_id = _target(data)
    kept: dict[str, Any] = {"t": kind, "p": data["senderPlatformID"], "ct": data["createTime"]}
    for name, short in _KEPT_TEXTS.items():
        if data[name]:
            kept[short] = data[name]
    if refused := [name for name, value in data["options"].items() if not value]:
        kept["o"] = sorted(refused)
    if data["offlinePushInfo"]:
        kept["op"] = {name: value for name, value in data["offlinePushInfo"].items() if value}
    mentions: tuple[str, ...] = ()
    if group_id is not None and data["atUserIDList"]:
        mentions = tuple(AT_ALL if user_id == AT_ALL_TAG else user_id for user_id in data["atUserIDList"])
    reply_to = None
    shown: Any
    if kind in _TEXT_FIELDS:
        name = _TEXT_FIELDS[kind]
        text = content.pop(name, None)
        msg_type, shown = int(MsgType.TEXT), text if isinstance(text, str) else None
        reply_to = _quoted(content)
        if reply_to is not None and kind == QUOTE:
            msg_type = int(MsgType.QUOTE)
        if content:
            kept["c"] = content
    elif kind in _MEDIA:
        msg_type, shown = int(_MEDIA[kind]), _media(kind, content, own_files)
        kept["c"] = content
    elif kind == CUSTOM:
        msg_type, shown = int(MsgType.CUSTOM), content
    else:
        line, name = _LINES.get(kind, (f"[Message of type {kind}]", ""))
        detail = content.get(name)
        msg_type, shown = int(MsgType.TEXT), f"{line} {detail}".strip() if isinstance(detail, str) else line
        shown = shown[:4096] or "[Message]"
        kept["c"] = content
    return Send(
        client_msg_id=data["clientMsgID"],
        recv_id=recv_id,
        group_id=group_id,
        msg_type=msg_type,
        content=shown,
        mentions=mentions,
        reply_to=reply_to,
        extra={"openim": kept},
        sent_at=data["createTime"],
    )


def _target(data: dict[str, Any]) -> tuple[str | None, str | None]:
    if data["sessionType"] == _SINGLE:
        return data["recvID"], None
    if data["sessionType"] == _GROUP:
        return None, data["groupID"]
    raise NexoError("bad_receiver", "sessionType is 1 for a user or 3 for a group")


def _quoted(content: dict[str, Any]) -> str | None:
    """Returns the server_msg_id of the message that a content quotes. What it shows of that message is not kept: the
    server shows the message itself, as far as a reader may see it."""
    quoted = content.get("quoteMessage")
    server_msg_id = quoted.get("serverMsgID") if isinstance(quoted, dict) else None
    if isinstance(server_msg_id, str) and server_msg_id.isascii() and server_msg_id.isdigit():
        del content["quoteMessage"]
        return server_msg_id
    return None


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def _media(kind: int, content: dict[str, Any], own_files: bool) -> dict[str, Any]:
    """Returns the content of media: a file of this server by its id, any other by its address."""
    url: Any
    if kind == PICTURE:
        source = content.get("sourcePicture")
        source = source if isinstance(source, dict) else {}
        url = source.get("url")
        made = {"size": source.get("size"), "width": source.get("width"), "height": source.get("height")}
    elif kind == SOUND:
        url = content.get("sourceUrl")
        made = {"size": content.get("dataSize"), "duration_ms": _seconds(content.get("duration"))}
    elif kind == VIDEO:
        url = content.get("videoUrl")
        made = {"size": content.get("videoSize"), "duration_ms": _seconds(content.get("duration"))}
        made |= {"width": content.get("snapshotWidth"), "height": content.get("snapshotHeight")}
    else:
        url = content.get("sourceUrl")
        made = {"size": content.get("fileSize")}
    shown: dict[str, Any] = {name: value for name, value in made.items() if _number(value)}
    if kind == FILE and isinstance(content.get("fileName"), str):
        shown["name"] = content["fileName"][:255]
    if not isinstance(url, str) or not url:
        raise NexoError("missing_content", "The message has no address of its file")
    file_id = file_in(url) if own_files else ""
    if file_id:
        return {"file_id": file_id}
    shown["url"] = url
    return shown


def _seconds(value: object) -> int | None:
    number = _number(value)
    return None if number is None else number * 1000


def file_in(url: str) -> str:
    """Returns the file_id in the address of a file of this server; empty for any other address."""
    path = url.partition("?")[0].partition("#")[0]
    for part in reversed(path.split("/")):
        if is_file_id(part):
            return part
    return ""
