"""What the server stored of a message, made from what was sent and its ACK."""

from __future__ import annotations

import msgspec

from nexo.client.model import Message, Quote
from nexo.client.outbox import Outgoing
from nexo.client.view import View
from nexo.core.content import quote_text


def own_message(view: View, outgoing: Outgoing) -> Message:
    fields = outgoing.fields
    reply_to = fields.get("replyToServerMsgId")
    return Message(
        server_msg_id=outgoing.server_msg_id or "",
        client_msg_id=outgoing.client_msg_id,
        conversation_id=view.conversation_id,
        seq=outgoing.seq,
        sender_id=view.me,
        recv_id=fields.get("to"),
        group_id=fields.get("groupId"),
        msg_type=fields.get("msgType", 1),
        content=fields.get("body"),
        mentions=tuple(fields.get("mentions") or ()),
        reply_to=reply_to,
        quote=None if reply_to is None else _quote(view, reply_to),
        extra=fields.get("extra"),
        send_at=outgoing.send_at or 0,
    )


def _quote(view: View, reply_to: str) -> Quote | None:
    """As the server makes it; none where the target is recalled, or not in memory."""
    target = view.find(reply_to)
    if target is None or target.is_recalled:
        return None
    text = quote_text(target.msg_type, msgspec.json.encode(target.content).decode())
    return Quote(target.server_msg_id, target.sender_id, target.msg_type, text)
