"""What a client of the envelope dialect can ask: the fields of a frame, the types, and the commands they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from nexo.core import commands
from nexo.core.message_fields import carries_plain, with_plain
from nexo.errors import NexoError


@with_plain(in_camel_case=True)
class EnvelopeFrame(Struct, rename="camel", gc=False):
    """Any frame of a client: what a type does not use is ignored."""

    type: str | None = None
    client_msg_id: str | None = None
    server_msg_id: str | int | None = None
    conversation_id: str | None = None
    msg_seq: int | str | None = None
    sender: str | None = msgspec.field(default=None, name="from")
    send_id: Any = None  # other names of the sender: they have to be right as well
    sender_id: Any = None
    send_id_: Any = msgspec.field(default=None, name="send_id")
    sender_id_: Any = msgspec.field(default=None, name="sender_id")
    to: str | None = None
    group_id: str | None = None
    token: str | None = None
    device_id: str | None = None
    baselines: dict[str, int | str] | None = None
    ack_type: str | None = None
    msg_type: int | None = None
    body: Any = None
    mentions: list[str] | None = None
    reply_to_server_msg_id: str | int | None = None
    extra: Any = None
    begin_seq: int | str | None = None
    end_seq: int | str | None = None
    limit: int | None = None
    cursor: str | None = None
    conversations: list[str] | None = None
    subscribe: list[str] | None = None
    on: bool | None = None
    emoji: str | None = None
    ts: Any = None  # the client's time of sending
    expires_s: int | None = None


def command_of(
    build: Callable[[EnvelopeFrame], commands.Command], frame: EnvelopeFrame, user_id: str | None
) -> commands.Command:
    """Returns the command of a frame, after comparing a claimed sender with the signed-in user."""
    check_sender(frame, user_id)
    return build(frame)


def check_sender(frame: EnvelopeFrame, user_id: str | None) -> None:
    if user_id is not None and _claims_another(frame, user_id):
        raise NexoError("identity_mismatch")


def _claims_another(frame: EnvelopeFrame, user_id: str) -> bool:
    """Each field that names the sender is optional, and has to name the signed-in user."""
    return not (
        (frame.sender is None or frame.sender == user_id)
        and (frame.sender_id is None or frame.sender_id == user_id)
        and (frame.send_id is None or frame.send_id == user_id)
        and (frame.sender_id_ is None or frame.sender_id_ == user_id)
        and (frame.send_id_ is None or frame.send_id_ == user_id)
    )


def _seq(value: int | str | None, default: int | None = None) -> int | None:
    """Seqs are integers; strings of digits are accepted."""
    if value is None:
        return default
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit() and len(value) <= 18):
            raise NexoError("bad_seq", "A seq is a whole number")
        return int(value)
    if not -(1 << 62) < value < 1 << 62:
        raise NexoError("bad_seq", "No conversation is that long")
    return value


def _need(value: Any, name: str) -> Any:
    if value is None or value == "":
        raise NexoError(name)
    return value


def _baselines(frame: EnvelopeFrame) -> dict[str, int]:
    found = frame.baselines or {}
    return {name: _seq(value) or 0 for name, value in found.items()}


def auth(frame: EnvelopeFrame) -> commands.Command:
    return commands.Auth(_need(frame.token, "missing_token"), frame.device_id, _baselines(frame))


def _reauth(frame: EnvelopeFrame) -> commands.Command:
    return commands.Reauth(_need(frame.token, "missing_token"))


@carries_plain
def _send(frame: EnvelopeFrame, recv_id: str | None, group_id: str | None) -> commands.Command:
    return commands.Send(
        _need(frame.client_msg_id, "missing_client_msg_id"),
        recv_id,
        group_id,
        1 if frame.msg_type is None else frame.msg_type,
        frame.body,
        frame.mentions or (),
        frame.reply_to_server_msg_id,
        frame.extra,
        frame.ts,
        frame.expires_s,
    )


def _single(frame: EnvelopeFrame) -> commands.Command:
    if frame.group_id:
        raise NexoError("bad_receiver", "A SINGLE_CHAT has no groupId")
    return _send(frame, _need(frame.to, "missing_receiver"), None)


def _group(frame: EnvelopeFrame) -> commands.Command:
    if frame.to:
        raise NexoError("bad_receiver", "A GROUP_CHAT has no to")
    return _send(frame, None, _need(frame.group_id, "missing_group_id"))


def _ack(frame: EnvelopeFrame) -> commands.Command:
    ack_type = _need(frame.ack_type, "unknown_ack_type")
    if frame.server_msg_id is not None:
        return commands.Ack(ack_type, frame.server_msg_id)
    if frame.conversation_id is None and frame.msg_seq is None:
        raise NexoError("missing_server_msg_id", "Name serverMsgId, or conversationId and msgSeq")
    conversation_id = _need(frame.conversation_id, "missing_conversation_id")
    return commands.Ack(ack_type, None, conversation_id, _seq(_need(frame.msg_seq, "missing_seq")))


def _revoke(frame: EnvelopeFrame) -> commands.Command:
    return commands.Recall(_need(frame.server_msg_id, "missing_server_msg_id"))


def _edit(frame: EnvelopeFrame) -> commands.Command:
    return commands.Edit(
        _need(frame.server_msg_id, "missing_server_msg_id"),
        frame.body,
        _need(frame.client_msg_id, "missing_client_msg_id"),
        frame.mentions,
    )


def _react(frame: EnvelopeFrame) -> commands.Command:
    server_msg_id = _need(frame.server_msg_id, "missing_server_msg_id")
    return commands.React(server_msg_id, _need(frame.emoji, "missing_emoji"), frame.on is not False)


def _pin(frame: EnvelopeFrame) -> commands.Command:
    return commands.Pin(_need(frame.server_msg_id, "missing_server_msg_id"), frame.on is not False)


def _pull(frame: EnvelopeFrame) -> commands.Command:
    conversation_id = _need(frame.conversation_id, "missing_conversation_id")
    return commands.Pull(conversation_id, _seq(frame.begin_seq, 1) or 0, _seq(frame.end_seq), frame.limit)


def _sync(frame: EnvelopeFrame) -> commands.Command:
    names = None if frame.conversations is None else tuple(frame.conversations)
    return commands.Sync(frame.cursor, frame.limit, names)


def _typing(frame: EnvelopeFrame) -> commands.Command:
    if not frame.to and not frame.group_id:
        raise NexoError("missing_receiver", "Name to or groupId")
    return commands.Typing(frame.on is not False, frame.to or None, frame.group_id or None)


def _presence(frame: EnvelopeFrame) -> commands.Command:
    return commands.SubscribePresence(tuple(_need(frame.subscribe, "missing_user_id")))


COMMANDS: dict[str, Callable[[EnvelopeFrame], commands.Command]] = {
    "AUTH": auth,
    "REAUTH": _reauth,
    "PING": lambda frame: commands.Ping(),
    "PONG": lambda frame: commands.Pong(),
    "SINGLE_CHAT": _single,
    "GROUP_CHAT": _group,
    "ACK": _ack,
    "MESSAGE_REVOKE": _revoke,
    "MESSAGE_EDIT": _edit,
    "REACT": _react,
    "PIN": _pin,
    "PULL": _pull,
    "SYNC": _sync,
    "RESEND": lambda frame: commands.Resend(_baselines(frame)),
    "TYPING": _typing,
    "PRESENCE": _presence,
}
