"""The texts of notifications, in English and Chinese, and their payload."""

from __future__ import annotations

from typing import Any

import msgspec

from nexo.core.content import quote_text
from nexo.core.model import MsgType
from nexo.core.push import Composed, ShownMessage, language_of, tag_of

PREVIEW_MAX_CHARS = 200  # of the text of a message, without the word for its type

_TEXTS = {
    "en": {
        "message": "New message",
        "mention": "You were mentioned",
        "test": "This is a test notification.",
        "call_audio": "Incoming call",
        "call_video": "Incoming video call",
        "missed_call": "Missed call",
        MsgType.IMAGE: "Photo",
        MsgType.VIDEO: "Video",
        MsgType.AUDIO: "Voice message",
        MsgType.FILE: "File",
        MsgType.MERGED: "Chat history",
    },
    "zh": {
        "message": "新消息",
        "mention": "有人提到了你",
        "test": "这是一条测试通知。",
        "call_audio": "语音来电",
        "call_video": "视频来电",
        "missed_call": "未接来电",
        MsgType.IMAGE: "图片",
        MsgType.VIDEO: "视频",
        MsgType.AUDIO: "语音消息",
        MsgType.FILE: "文件",
        MsgType.MERGED: "聊天记录",
    },
}


def message_payload(one: Composed, shown: ShownMessage, content: str, at_ms: int, *, quiet: bool) -> dict[str, Any]:
    """Returns the notification of a message. `content` is `push.content`."""
    assert one.target is not None
    lang = language_of(one.target.lang)
    title, body = _wording(one, shown, content, lang)
    payload: dict[str, Any] = {
        "kind": "message",
        "tag": tag_of(one.conversation_id),
        "title": title,
        "body": body,
        "conversation_id": one.conversation_id,
        "server_msg_id": str(shown.server_msg_id),
        "sender_id": shown.sender_id,
        "unread": one.unread,
        "badge": one.badge,
        "lang": lang,
        "ts": at_ms,
    }
    if content == "none":
        del payload["sender_id"]
    if shown.is_mention:
        payload["mention"] = True
    if quiet:
        payload["quiet"] = True
    return payload


def read_payload(one: Composed, at_ms: int) -> dict[str, Any]:
    """Returns the request to close the notification of a conversation."""
    assert one.target is not None
    return {
        "kind": "read",
        "tag": tag_of(one.conversation_id),
        "title": "",
        "body": "",
        "conversation_id": one.conversation_id,
        "server_msg_id": "",
        "unread": one.unread,
        "badge": one.badge,
        "lang": language_of(one.target.lang),
        "ts": at_ms,
    }


def trial_payload(lang: str, at_ms: int) -> dict[str, Any]:
    lang = language_of(lang)
    return {
        "kind": "message",
        "tag": tag_of("test"),
        "title": "Nexo",
        "body": _TEXTS[lang]["test"],
        "conversation_id": "",
        "server_msg_id": "",
        "unread": 0,
        "badge": 0,
        "lang": lang,
        "ts": at_ms,
    }


def call_payload(
    call_id: str,
    call_kind: str,
    caller: tuple[str, str],
    conversation_id: str,
    expires_at: int,
    content: str,
    lang: str,
    at_ms: int,
    *,
    ended: bool,
) -> dict[str, Any]:
    """Returns the notification of a call that rings, or has ended. `caller` is id and name."""
    lang = language_of(lang)
    text = _TEXTS[lang]["call_video" if call_kind == "video" else "call_audio"]
    payload: dict[str, Any] = {
        "kind": "call",
        "tag": tag_of(f"call:{call_id}"),
        "title": "" if ended else text if content == "none" else caller[1],
        "body": "" if ended or content == "none" else text,
        "conversation_id": conversation_id,
        "server_msg_id": "",
        "sender_id": caller[0],
        "call_id": call_id,
        "call_kind": call_kind,
        "ended": ended,
        "expires_at": expires_at,
        "lang": lang,
        "ts": at_ms,
    }
    if content == "none":
        del payload["sender_id"]
    return payload


def _wording(one: Composed, shown: ShownMessage, content: str, lang: str) -> tuple[str, str]:
    texts = _TEXTS[lang]
    general = texts["mention" if shown.is_mention else "message"]
    if content == "none":
        return general, ""
    if content == "full":
        general = _preview(shown, lang)
    if one.group_name is None:
        return shown.sender_name, general
    return one.group_name, f"{shown.sender_name}: {general}"


def _preview(shown: ShownMessage, lang: str) -> str:
    """Returns the line that a notification shows of a message."""
    texts = _TEXTS[lang]
    if shown.msg_type == MsgType.CALL:
        return texts["missed_call"]
    try:
        text = quote_text(shown.msg_type, shown.content, PREVIEW_MAX_CHARS)
    except (msgspec.DecodeError, AttributeError):
        text = ""
    text = " ".join(text.split())
    named = texts.get(shown.msg_type)
    if named is not None:
        text = f"[{named}] {text}" if text and shown.msg_type in (MsgType.FILE, MsgType.MERGED) else f"[{named}]"
    return text or texts["message"]
