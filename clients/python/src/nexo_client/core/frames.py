"""Frames with more than one field that the client sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexo_client.core.outbox import OutboxItem

Frame = dict[str, Any]

CALL_FRAMES = tuple(f"CALL_{what}" for what in ("INVITE", "INVITE_OK", "ACCEPT", "ICE", "END", "TIMEOUT", "ERROR"))


def auth_frame(token: str, device_id: str, baselines: Mapping[str, int]) -> Frame:
    frame: Frame = {"type": "AUTH", "token": token, "deviceId": device_id}
    return frame | ({"baselines": dict(baselines)} if baselines else {})


def send_frame(item: OutboxItem) -> Frame:
    kind = "GROUP_CHAT" if "groupId" in item.fields else "SINGLE_CHAT"
    # `ts` is when it was written, which may be long before it is sent.
    return {"type": kind, "clientMsgId": item.client_msg_id, "ts": item.created_at} | item.fields


def ack_frame(ack_type: str, conversation_id: str, seq: int) -> Frame:
    return {"type": "ACK", "ackType": ack_type, "conversationId": conversation_id, "msgSeq": seq}
