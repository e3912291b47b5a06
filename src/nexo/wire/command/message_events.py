"""Edits, reactions and pins in the command dialect: their answers, and a push of its own for each kind of event."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from nexo.core import events
from nexo.core.message_events import content_of
from nexo.core.model import MsgType
from nexo.wire.command.names import naming, shown_name

QUIET_NAMES: dict[int, str] = {
    MsgType.EDITED: "chat.edited",
    MsgType.REACTIONS: "chat.reactions",
    MsgType.PINNED: "chat.pinned",
}


def edited(event: events.Edited) -> dict[str, Any]:
    data = _place(event.server_msg_id, event.conversation_id, event.seq)
    if event.edited_at is not None:
        data["edited_at"] = event.edited_at
    if event.content is not None:
        data["content"] = Raw(event.content.encode())
    return data


def reacted(event: events.Reacted) -> dict[str, Any]:
    name = shown_name(event.conversation_id)
    return {"msg_id": str(event.server_msg_id), "conversation_id": name, "reactions": event.reactions}


def pin_changed(event: events.PinChanged) -> dict[str, Any]:
    return _place(event.server_msg_id, event.conversation_id, event.seq)


def _place(server_msg_id: int, conversation_id: str, seq: int) -> dict[str, Any]:
    return {"msg_id": str(server_msg_id), "conversation_id": shown_name(conversation_id), "seq": seq}


def quiet(event: events.Pushed) -> dict[str, Any]:
    """A push about an earlier message; `seq` is that of the event. What its receiver may not see is left out."""
    message = event.message
    content = content_of(message)
    data: dict[str, Any] = {
        "msg_id": content["server_msg_id"],
        **naming(message.conversation_id),
        "seq": message.seq,
    }
    if message.msg_type != MsgType.REACTIONS:
        data["by"] = message.sender_id
    shown = ("content", "mentions", "edited_at", "reactions", "added", "removed", "on")
    data.update((name, content[name]) for name in shown if name in content)
    data["timestamp"] = message.send_at
    for flag in ("important", "resend"):
        if getattr(event, flag):
            data[flag] = True
    return data
