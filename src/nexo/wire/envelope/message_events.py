"""Edits, reactions and pins in the envelope dialect: their ACKs, and a frame of its own for each kind of event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from nexo.core import events
from nexo.core.message_events import content_of
from nexo.core.model import Message, MsgType

Fill = Callable[[dict[str, Any], Message, dict[str, Any]], None]


def edited_ack(event: events.Edited) -> dict[str, Any]:
    """`body` is there when the filter changed it; `msgSeq` is that of the event."""
    frame = {"ackType": "edited", **_place(event.server_msg_id, event.conversation_id), "msgSeq": event.seq}
    if event.edited_at is not None:
        frame["editedAt"] = event.edited_at
    if event.content is not None:
        frame["body"] = Raw(event.content.encode())
    return frame


def reacted_ack(event: events.Reacted) -> dict[str, Any]:
    place = _place(event.server_msg_id, event.conversation_id)
    return {"ackType": "reacted", **place, "reactions": event.reactions}


def pinned_ack(event: events.PinChanged) -> dict[str, Any]:
    return {"ackType": "pinned", **_place(event.server_msg_id, event.conversation_id), "msgSeq": event.seq}


def _place(server_msg_id: int, conversation_id: str) -> dict[str, Any]:
    return {"serverMsgId": str(server_msg_id), "conversationId": conversation_id}


def quiet_frame(pushed: events.Pushed) -> dict[str, Any]:
    """A frame about an earlier message; `msgSeq` is that of the event. What its receiver may not see is left out."""
    message = pushed.message
    content = content_of(message)
    frame: dict[str, Any] = {
        "type": _TYPES[message.msg_type],
        "serverMsgId": content["server_msg_id"],
        "conversationId": message.conversation_id,
        "msgSeq": message.seq,
    }
    _FILL[message.msg_type](frame, message, content)
    frame["ts"] = message.send_at
    for flag in ("important", "resend"):
        if getattr(pushed, flag):
            frame[flag] = True
    return frame


def _fill_edited(frame: dict[str, Any], message: Message, content: dict[str, Any]) -> None:
    frame["from"] = message.sender_id
    if "content" in content:
        frame["body"] = content["content"]
        frame["mentions"] = content["mentions"]
    frame["editedAt"] = content["edited_at"]


def _fill_reactions(frame: dict[str, Any], message: Message, content: dict[str, Any]) -> None:
    if "reactions" in content:
        frame["reactions"] = content["reactions"]
    for change in ("added", "removed"):
        if change in content:
            frame[change] = [{"emoji": one["emoji"], "userId": one["user_id"]} for one in content[change]]


def _fill_pinned(frame: dict[str, Any], message: Message, content: dict[str, Any]) -> None:
    frame["from"] = message.sender_id
    frame["on"] = content["on"]


_TYPES: dict[int, str] = {MsgType.EDITED: "MESSAGE_EDITED", MsgType.REACTIONS: "REACTIONS", MsgType.PINNED: "PINNED"}
_FILL: dict[int, Fill] = {
    MsgType.EDITED: _fill_edited,
    MsgType.REACTIONS: _fill_reactions,
    MsgType.PINNED: _fill_pinned,
}
