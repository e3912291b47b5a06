"""What a client of the request dialect can ask: the numbers, their `data`, and the commands they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from nexo.core import commands
from nexo.core.message_fields import carries_plain, with_plain
from nexo.errors import NexoError
from nexo.wire.call_forms import CALL_ERROR_FIELDS
from nexo.wire.reading import Seq, reader, seq
from nexo.wire.request.calls import CALL_REQUESTS

ERROR_FIELDS = {
    "conversation_ids": "conversation_id",
    "seqs": "seq",
    "begin_seq": "seq",
    "end_seq": "seq",
    "recv_id": "receiver",
    "session_type": "receiver",
    "send_id": "user_id",
    "sender_id": "user_id",
    "from": "user_id",
    "user_ids": "user_id",
    "expires_s": "expires",
    **CALL_ERROR_FIELDS,
}


class _Conversations(Struct):
    conversation_ids: list[str] | None = None


class _NamedConversations(Struct):
    conversation_ids: list[str]


class _Seqs(Struct):
    conversation_id: str
    seqs: list[Seq]


@with_plain()
class _Send(Struct):
    client_msg_id: str
    content: Any = None
    recv_id: str | None = None
    group_id: str | None = None
    session_type: int | None = None
    msg_type: int = 1
    mentions: list[str] | None = None
    reply_to: str | int | None = None
    extra: Any = None
    send_at: Any = None
    expires_s: int | None = None
    send_id: str | None = None
    sender_id: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")


class _Place(Struct):
    conversation_id: str
    seq: Seq


class _Range(Struct):
    conversation_id: str
    begin_seq: Seq = 1
    end_seq: Seq | None = None
    limit: int | None = None


class _WhichMessage(Struct):
    server_msg_id: str | int


class _Edit(Struct):
    server_msg_id: str | int
    client_msg_id: str
    content: Any = None
    mentions: list[str] | None = None


class _React(Struct):
    server_msg_id: str | int
    emoji: str
    on: bool = True


class _Pin(Struct):
    server_msg_id: str | int
    on: bool = True


class _Typing(Struct):
    recv_id: str | None = None
    group_id: str | None = None
    on: bool = True


class _Users(Struct):
    user_ids: list[str]


def _heads(data: _Conversations, user_id: str | None) -> commands.Command:
    return commands.Heads(None if data.conversation_ids is None else tuple(data.conversation_ids))


@carries_plain
def _send(data: _Send, user_id: str | None) -> commands.Command:
    if any(named is not None and named != user_id for named in (data.send_id, data.sender_id, data.from_)):
        raise NexoError("identity_mismatch")
    recv_id, group_id = data.recv_id or None, data.group_id or None
    if data.session_type not in (None, 1, 2):
        raise NexoError("bad_receiver", "session_type is 1 (single chat) or 2 (group)")
    if (data.session_type == 1 and group_id) or (data.session_type == 2 and recv_id):
        raise NexoError("bad_receiver", "session_type 1 goes with recv_id, 2 with group_id")
    return commands.Send(
        data.client_msg_id,
        recv_id,
        group_id,
        data.msg_type,
        data.content,
        data.mentions or (),
        data.reply_to,
        data.extra,
        data.send_at,
        data.expires_s,
    )


def _pull(data: _Range, user_id: str | None) -> commands.Command:
    end_seq = None if data.end_seq is None else seq(data.end_seq)
    return commands.Pull(data.conversation_id, seq(data.begin_seq), end_seq, data.limit)


def _typing(data: _Typing, user_id: str | None) -> commands.Command:
    if not data.recv_id and not data.group_id:
        raise NexoError("missing_receiver", "Name recv_id or group_id")
    return commands.Typing(data.on, data.recv_id or None, data.group_id or None)


class RequestAction(NamedTuple):
    """A request: how its `data` is read, and which command it is."""

    read: Callable[[bytes | Raw], Any]
    command: Callable[[Any, str | None], commands.Command]
    form: type[Struct]  # the fields of `data`


def _row(form: type[Struct], command: Callable[[Any, str | None], commands.Command]) -> RequestAction:
    return RequestAction(reader(form, ERROR_FIELDS), command, form)


SEND = 1003

REQUESTS: dict[int, RequestAction] = {
    1001: _row(_Conversations, _heads),
    1002: _row(_Seqs, lambda data, _: commands.PullSeqs(data.conversation_id, tuple(map(seq, data.seqs)))),
    SEND: _row(_Send, _send),
    1004: _row(_Place, lambda data, _: commands.MarkRead(data.conversation_id, seq(data.seq))),
    1005: _row(_Range, _pull),
    1006: _row(_Conversations, _heads),
    1007: _row(_NamedConversations, lambda data, _: commands.LastMessages(tuple(data.conversation_ids))),
    1008: _row(_Place, lambda data, _: commands.Ack("delivered", None, data.conversation_id, seq(data.seq))),
    1009: _row(_WhichMessage, lambda data, _: commands.Recall(data.server_msg_id)),
    1010: _row(_Typing, _typing),
    1011: _row(_Users, lambda data, _: commands.SubscribePresence(tuple(data.user_ids))),
    1012: _row(
        _Edit, lambda data, _: commands.Edit(data.server_msg_id, data.content, data.client_msg_id, data.mentions)
    ),
    1013: _row(_React, lambda data, _: commands.React(data.server_msg_id, data.emoji, data.on)),
    1014: _row(_Pin, lambda data, _: commands.Pin(data.server_msg_id, data.on)),
    **{number: _row(*call) for number, call in CALL_REQUESTS.items()},
}
