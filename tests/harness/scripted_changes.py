"""Changes of earlier messages in the truth behind the scripted server: edits, reactions, pins, deletions, expiry."""

from __future__ import annotations

from typing import Any

from harness.scripted_truth import EDITED, PINNED, REACTIONS, TEXTS, Conversation, Frame, Message, Truth
from nexo.errors import NexoError


def edit(truth: Truth, server_msg_id: str, by: str, content: Any, mentions: list[str] | None = None) -> Message:
    """Returns the event."""
    target = _find(truth, server_msg_id)
    if target.sender_id != by:
        raise NexoError("not_message_sender")
    added = [user for user in mentions or [] if user not in target.mentions]
    event = _append(truth, target, by, EDITED, {}, added)
    target.content, target.edited_at = content, event.send_at
    if mentions is not None:
        target.mentions = mentions
    event.content |= {"edited_at": event.send_at, "by": by}
    return event


def react(truth: Truth, server_msg_id: str, by: str, emoji: str, on: bool) -> Message:
    """Returns the event."""
    target = _find(truth, server_msg_id)
    users = target.reactions.setdefault(emoji, [])
    if on and by not in users:
        users.append(by)
    elif not on and by in users:
        users.remove(by)
    target.reactions = {emoji: users for emoji, users in target.reactions.items() if users}
    changed = [{"emoji": emoji, "user_id": by}]
    content = {"reactions": [{"emoji": one, "count": len(who)} for one, who in target.reactions.items()]}
    return _append(
        truth, target, by, REACTIONS, content | {"added": changed if on else [], "removed": [] if on else changed}
    )


def pin(truth: Truth, server_msg_id: str, by: str, on: bool) -> Message:
    """Returns the event."""
    return _append(truth, _find(truth, server_msg_id), by, PINNED, {"on": on, "by": by})


def delete(conversation: Conversation, user_id: str, server_msg_ids: list[str], up_to_seq: int | None = None) -> Frame:
    """Hides messages from one user; returns the frame for the other devices."""
    member = conversation.members[user_id]
    member.deleted |= set(server_msg_ids)
    member.cleared_seq = max(member.cleared_seq, up_to_seq or 0)
    member.deletions.append((server_msg_ids, up_to_seq))
    what: Frame = {"serverMsgIds": server_msg_ids} if up_to_seq is None else {"upToSeq": up_to_seq}
    place = {"conversationId": conversation.conversation_id, "deletedRev": len(member.deletions)}
    return {"type": "DELETED"} | place | what


def expire(message: Message) -> None:
    message.status = 2
    message.content = "" if message.msg_type in TEXTS else {}
    message.mentions, message.reply_to, message.extra = [], None, None
    message.edited_at, message.reactions = None, {}


def _find(truth: Truth, server_msg_id: str) -> Message:
    target = truth.find(server_msg_id)
    if target is None:
        raise NexoError("message_not_found")
    return target


def _append(
    truth: Truth, target: Message, by: str, msg_type: int, content: Frame, mentions: list[str] | None = None
) -> Message:
    about = {"server_msg_id": target.server_msg_id, "seq": target.seq}
    return truth.append(truth.of(target.conversation_id), by, msg_type, about | content, mentions=mentions)
