"""The codec of OpenIM's clients: requests inside frames to commands, events to answers and pushes.

Messages are numbered by their place among the messages of a conversation (events of Nexo have no place there). What is
pushed about anything else than a message needs more than its event has: it is returned as a `Deferred`, which the
gateway has completed by `openim.notices`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, structs

from nexo.core import commands, events
from nexo.core.model import Message
from nexo.core.numbering import NumberedMessages
from nexo.errors import NexoError
from nexo.ids import is_user_id
from nexo.wire.dialect import BadFrame, Deferred
from nexo.wire.framing import binary_frame
from nexo.wire.openim import content as form
from nexo.wire.openim import tables
from nexo.wire.openim.errors import code_of, encode_outcome
from nexo.wire.openim.frames import GOB_FRAMING, JSON_FRAMING, PACKED_FRAMING, Framing, OpenimRequest
from nexo.wire.openim.names import GROUP, has_name, name_of, read_name, twin_of
from nexo.wire.openim.protobuf import decode, encode, number_field, sized_field
from nexo.wire.openim.shown import (
    CHAT,
    DELETED,
    GROUP_CHAT,
    PLATFORM_WEB,
    USER_MESSAGE,
    Names,
    is_shown,
    msg_data,
    no_names,
)

NEWEST, RANGES, SEND, LISTS, READ_AND_MAX, LAST = 1001, 1002, 1003, 1005, 1006, 1007
PUSH, KICK, LOGOUT, BACKGROUND, STATUS = 2001, 2002, 2003, 2004, 2005
DATA_ERROR = 3001  # the answer to a frame that cannot be read
ECHO_S = 0.1  # a JavaScript client knows its own send some milliseconds after the answer
SPANS_MAX = 500
SUBSCRIBED_MAX = 100
RECENT_MAX = 1024
# Messages of the last batches as frames carry them: the copy for the sender and that for receivers follow each other.
_recent: dict[tuple[int, str], bytes] = {}
_operations = itertools.count(1)
_KICKED = frozenset(("kicked", "replaced", "session_invalid", "user_disabled"))
_NO_OPTIONS = dict.fromkeys(
    ("history", "persistent", "unreadCount", "conversationUpdate", "offlinePush", "senderSync", "notPrivate",
     "senderConversationUpdate"), False,
)  # fmt: skip


class OpenimRef(Struct, frozen=True):
    """What an answer echoes."""

    number: int = 0
    msg_incr: str = ""
    operation_id: str = ""
    client_msg_id: str = ""
    send_time: int = 0


class OpenimCodec:
    """The codec of one connection. It remembers whose presence the client watches: requests change that list."""

    signs_in = False
    confirms = True
    is_binary = True
    catches_up = False
    resyncs = False
    echo_s = ECHO_S

    def __init__(self, framing: Framing, base_url: str = "", names: Names = no_names) -> None:
        """`base_url` is the address by which the client reaches the server, for files. Connections of the same name
        get the same bytes."""
        self.name = f"nexo.openim.v1;{framing.name};{base_url}"
        self._framing = framing
        self.base_url = base_url
        self._names = names
        self._watched: dict[str, None] = {}

    def for_connection(self, token: str | None) -> OpenimCodec:
        return OpenimCodec(self._framing, self.base_url, self._names)

    @staticmethod
    def frame(payload: bytes) -> bytes:
        """Returns a binary frame. A deferred push, or nothing, stays what it is."""
        return binary_frame(payload) if type(payload) is bytes and payload else payload

    def encode_outcome(self, error: NexoError | None) -> bytes:
        return encode_outcome(error)

    def answer_text(self, payload: bytes) -> bytes | None:
        """Returns the answer to a heartbeat, the only text that clients send."""
        return _answer_ping(payload)

    def log_fields(self, ref: OpenimRef | None) -> Mapping[str, str | int]:
        return {} if ref is None else {"operation_id": ref.operation_id}

    # -- in ----------------------------------------------------------------------------------------------

    def decode(self, frame: bytes, user_id: str | None) -> tuple[commands.Command, OpenimRef]:
        try:
            request = self._framing.read(frame)
        except BadFrame as bad:
            bad.ref = OpenimRef(DATA_ERROR)
            raise
        ref = OpenimRef(request.number, request.msg_incr, request.operation_id)
        read = _REQUESTS.get(request.number)
        if read is None:
            raise BadFrame(NexoError("unknown_type", f"There is no request {request.number}"), ref)
        if user_id is None:
            raise BadFrame(NexoError("unauthorized"), ref)
        try:
            if request.send_id and request.send_id != user_id:
                raise NexoError("identity_mismatch", "sendID is not the user of the token")
            return read(self, request, user_id, ref)
        except NexoError as error:
            raise BadFrame(error, ref) from None

    def _send(self, request: OpenimRequest, user_id: str, ref: OpenimRef) -> tuple[commands.Command, OpenimRef]:
        data = decode(tables.MSG_DATA, request.data)
        if data["sendID"] and data["sendID"] != user_id:
            raise NexoError("identity_mismatch", "sendID is not the user of the token")
        ref = OpenimRef(ref.number, ref.msg_incr, ref.operation_id, data["clientMsgID"], data["createTime"])
        if data["contentType"] == form.TYPING:
            on = b"yes" in data["content"]
            if data["sessionType"] == CHAT:
                return commands.Typing(on, recv_id=data["recvID"]), ref
            return commands.Typing(on, group_id=data["groupID"]), ref
        if data["options"].get("history") is False:
            raise NexoError("not_implemented", "Messages that are not stored are typing only")
        send = form.send_of(data)
        if send.recv_id and is_user_id(send.recv_id) and not has_name(send.place(user_id)):
            raise NexoError("bad_receiver", "The name of this chat reads like that of another one")
        return send, ref

    def _newest(self, request: OpenimRequest, user_id: str, ref: OpenimRef) -> tuple[commands.Command, OpenimRef]:
        decode(tables.USER_REQUEST, request.data)
        return commands.Numbers(), ref

    def _read_and_max(self, request: OpenimRequest, user_id: str, ref: OpenimRef) -> tuple[commands.Command, OpenimRef]:
        names = decode(tables.NAMED_CONVERSATIONS, request.data)["conversationIDs"]
        if not names:
            return commands.Numbers(), ref
        found = (read_name(name, user_id) for name in names)
        return commands.Numbers(tuple(one[0] for one in found if one is not None and not one[1])), ref

    def _ranges(self, request: OpenimRequest, user_id: str, ref: OpenimRef) -> tuple[commands.Command, OpenimRef]:
        spans = []
        for asked in decode(tables.PULL_RANGES, request.data)["seqRanges"]:
            spans.append(_span(asked["conversationID"], user_id, asked["begin"], asked["end"], asked["num"]))
        return commands.PullNumbers(_checked(spans)), ref

    def _lists(self, request: OpenimRequest, user_id: str, ref: OpenimRef) -> tuple[commands.Command, OpenimRef]:
        spans = []
        for asked in decode(tables.PULL_LISTS, request.data)["conversations"]:
            spans.append(_span(asked["conversationID"], user_id, numbers=tuple(asked["seqs"])))
        return commands.PullNumbers(_checked(spans)), ref

    def _last(self, request: OpenimRequest, user_id: str, ref: OpenimRef) -> tuple[commands.Command, OpenimRef]:
        names = decode(tables.NAMED_CONVERSATIONS, request.data)["conversationIDs"]
        return commands.PullNumbers(_checked([_span(name, user_id, 1, 1 << 62, 1) for name in names])), ref

    def _subscribe(self, request: OpenimRequest, user_id: str, ref: OpenimRef) -> tuple[commands.Command, OpenimRef]:
        asked = decode(tables.SUBSCRIPTION, request.data)
        watched = dict(self._watched)
        for other in asked["unsubscribeUserID"]:
            watched.pop(other, None)
        for other in asked["subscribeUserID"]:
            if is_user_id(other):
                watched.pop(other, None)
                watched[other] = None
        # the latest ones are watched: a client that lists all its conversations has no use for an error
        self._watched = dict.fromkeys(list(watched)[-SUBSCRIBED_MAX:])
        return commands.SubscribePresence(tuple(self._watched)), ref

    def _done(self, request: OpenimRequest, user_id: str, ref: OpenimRef) -> tuple[commands.Command, OpenimRef]:
        return commands.Pass(closes=request.number == LOGOUT), ref

    # -- out ---------------------------------------------------------------------------------------------

    def encode(self, event: events.Event, ref: OpenimRef | None = None) -> bytes:
        if ref is None:
            return self._encode_push(event)
        if type(event) is events.Saved:
            return self._saved(event.message, ref)
        if isinstance(event, events.Failed | events.SignInFailed):
            return self._answer(ref, b"", event.error)
        match event:
            case events.Accepted():
                return self._answer(ref, send_answer(event.server_msg_id, event.client_msg_id, ref.send_time))
            case events.Done() if ref.client_msg_id:  # typing
                shown = {"clientMsgID": ref.client_msg_id, "sendTime": ref.send_time}
                return self._answer(ref, encode(tables.SEND_ANSWER, shown))
            case events.NumbersListed():
                return self._answer(ref, _encode_numbers(event, ref.number))
            case events.NumbersPulled():
                return self._answer(ref, self._encode_pulled(event, ref.number))
            case events.Presence():
                return self._answer(ref, _encode_presence(event))
            case events.SignedIn():
                return b""
        return self._answer(ref, b"")

    def _answer(self, ref: OpenimRef, data: bytes, error: NexoError | None = None) -> bytes:
        code, text = (0, "") if error is None else (code_of(error), error.name)
        framing = self._framing
        return framing.write(ref.number, ref.msg_incr, ref.operation_id, code, text, framing.prepare(data))

    def _saved(self, message: Message, ref: OpenimRef) -> bytes:
        return self._answer(ref, send_answer(message.server_msg_id, message.client_msg_id or "", message.send_at))

    def echo(self, message: Message, ref: OpenimRef) -> bytes:
        """Returns the push by which the sender learns the number of its own message."""
        return self.push_message(message, ref.operation_id)

    def push_message(self, message: Message, operation_id: str = "") -> bytes:
        if not message.number:
            return Deferred.of(events.Pushed(message))
        name = name_of(message.conversation_id)
        if not name:
            return b""
        prepared = None
        key = (message.server_msg_id, self.name)
        is_shared = message.quote is None  # what is quoted is shown to some of the receivers only
        if is_shared:
            prepared = _recent.get(key)
        if prepared is None:
            shown = encode(tables.MSG_DATA, msg_data(message, message.number, self.base_url, self._names))
            prepared = self._framing.prepare(push_of_one(name, shown))
            if is_shared:
                if len(_recent) >= RECENT_MAX:
                    _recent.clear()
                _recent[key] = prepared
        operation_id = operation_id or f"nexo_{message.server_msg_id}"
        return self._framing.write(PUSH, "", operation_id, 0, "", prepared)

    def push(
        self,
        messages: Mapping[str, list[dict[str, Any]]],
        notifications: Mapping[str, list[dict[str, Any]]],
        operation_id: str,
    ) -> bytes:
        """Returns a push of messages and notifications by the names of their conversations."""
        data = encode(
            tables.MESSAGES,
            {
                "msgs": {name: {"Msgs": listed} for name, listed in messages.items()},
                "notificationMsgs": {name: {"Msgs": listed} for name, listed in notifications.items()},
            },
        )
        # a client calls the server in the name of the operation that it learns of, and refuses an empty one
        operation_id = operation_id or f"nexo_push_{next(_operations)}"
        return self._framing.write(PUSH, "", operation_id, 0, "", self._framing.prepare(data))

    def shown(self, message: Message, number: int) -> dict[str, Any]:
        return msg_data(message, number, self.base_url, self._names)

    def _encode_push(self, event: events.Event) -> bytes:
        match event:
            case events.Pushed():
                if event.provisional:
                    return b""
                message = event.message if event.quoted else _unquoted(event.message)
                return self.push_message(message) if is_shown(message) else Deferred.of(event)
            case events.Saved():
                return self.push_message(event.message)
            case events.IsTyping():
                return self._typing(event)
            case events.Presence():
                prepared = self._framing.prepare(_encode_presence(event))
                return self._framing.write(STATUS, "", "", 0, "", prepared)
            case events.Failed() | events.SignInFailed():
                return self._kick(event.error)
            case events.Receipt():
                return Deferred.of(event) if event.ack_type == "read" else b""
            case (
                events.Synced()
                | events.Notify()
                | events.HeadsChanged()
                | events.Deleted()
                | events.ContactRequested()
                | events.ContactDecided()
                | events.JoinRequested()
            ):
                return Deferred.of(event)
        return b""

    def _kick(self, error: NexoError) -> bytes:
        """Returns the notice that a session is over. Any other error just closes the connection, and the
        client connects again."""
        return self._framing.write(KICK, "", "", 0, "", self._framing.prepare(b"")) if error.name in _KICKED else b""

    def _typing(self, event: events.IsTyping) -> bytes:
        name = name_of(event.conversation_id)
        if not name:
            return b""
        is_group = name.startswith(GROUP)
        low, _, high = event.conversation_id[3:].partition(":")
        shown = {
            "sendID": event.user_id,
            "recvID": "" if is_group else high if low == event.user_id else low,
            "groupID": event.conversation_id[3:] if is_group else "",
            "clientMsgID": f"typing_{event.user_id}_{int(event.on)}",
            "senderPlatformID": PLATFORM_WEB,
            "sessionType": GROUP_CHAT if is_group else CHAT,
            "msgFrom": USER_MESSAGE,
            "contentType": form.TYPING,
            "content": b'{"msgTips":"yes"}' if event.on else b'{"msgTips":"no"}',
            "options": _NO_OPTIONS,
        }
        return self.push({name: [shown]}, {}, "")

    def _encode_pulled(self, event: events.NumbersPulled, number: int) -> bytes:
        """Returns an entry per conversation that was asked for, also for one without messages."""
        made: dict[str, dict[str, Any]] = {"msgs": {}, "notificationMsgs": {}}
        if number == LAST:
            last = {name: self._pulled(part)[-1:] for name, part in event.parts}
            return encode(tables.LAST_MESSAGES, {"msgs": {name: found[0] for name, found in last.items() if found}})
        for name, part in event.parts:
            is_twin = name.startswith("n_")
            listed = list(part.notices) if is_twin else self._pulled(part)
            made["notificationMsgs" if is_twin else "msgs"][name] = {
                "Msgs": listed,
                "isEnd": part.is_end,
                "endSeq": part.end_number,
            }
        return encode(tables.MESSAGES, made)

    def _pulled(self, part: NumberedMessages) -> list[dict[str, Any]]:
        base_url, names = self.base_url, self._names
        shown = [msg_data(message, number, base_url, names, is_read) for number, message, is_read in part.messages]
        return shown + [_gone(number) for number in part.gone]


def send_answer(server_msg_id: int, client_msg_id: str, send_at: int) -> bytes:
    """Returns what `tables.SEND_ANSWER` encodes."""
    ids = sized_field(1, b"%d" % server_msg_id) + sized_field(2, client_msg_id.encode())
    return ids + number_field(3, send_at)


def push_of_one(name: str, shown: bytes) -> bytes:
    """Returns what `tables.MESSAGES` encodes for one message of a conversation."""
    return sized_field(1, sized_field(1, name.encode()) + sized_field(2, sized_field(1, shown)))


def _gone(number: int) -> dict[str, Any]:
    """Returns what is in the place of a message that is not shown to the user."""
    return {"clientMsgID": f"gone_{number}", "seq": number, "status": DELETED, "contentType": form.TEXT}


def _unquoted(message: Message) -> Message:
    if message.quote is not None:
        return structs.replace(message, quote=None)
    return message


def _span(
    name: str, user_id: str, begin: int = 0, end: int = 0, limit: int = 0, numbers: tuple[int, ...] | None = None
) -> commands.NumberSpan:
    found = read_name(name, user_id)
    conversation_id, is_twin = found if found is not None else ("", name.startswith("n_"))
    return commands.NumberSpan(name, conversation_id, is_twin, begin, end, limit, numbers)


def _checked(spans: list[commands.NumberSpan]) -> tuple[commands.NumberSpan, ...]:
    if len(spans) > SPANS_MAX:
        raise NexoError("bad_conversation_id", f"At most {SPANS_MAX} conversations can be asked for at once")
    return tuple(spans)


class _Heartbeat(Struct):
    type: str
    body: str | None = None


_decode_heartbeat = msgspec.json.Decoder(_Heartbeat).decode


def _answer_ping(payload: bytes) -> bytes | None:
    try:
        found = _decode_heartbeat(payload)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if found.type != "ping":
        return None
    if found.body is None:
        return b'{"type":"pong"}'
    return msgspec.json.encode({"type": "pong", "body": found.body})


def _encode_presence(event: events.Presence) -> bytes:
    listed = [
        {"userID": user_id, "onlinePlatformIDs": list(platforms) if online else []}
        for user_id, online, platforms in event.users
    ]
    return encode(tables.STATUSES, {"subscribers": listed})


def _encode_numbers(event: events.NumbersListed, number: int) -> bytes:
    named = [(name_of(head.conversation_id), head) for head in event.heads]
    if number == READ_AND_MAX:
        seqs = {
            name: {"maxSeq": head.head, "hasReadSeq": max(0, head.head - head.unread), "maxSeqTime": head.last_at}
            for name, head in named
            if name
        }
        return encode(tables.READ_AND_MAX_SEQS, {"seqs": seqs})
    heads = {name: head.head for name, head in named if name and head.head}
    heads |= {twin_of(head.conversation_id): head.head_seq for name, head in named if name and head.head_seq}
    return encode(
        tables.MAX_SEQS,
        {"maxSeqs": heads, "minSeqs": {name: head.first for name, head in named if name and head.first}},
    )


Reader = Callable[[OpenimCodec, OpenimRequest, str, OpenimRef], tuple[commands.Command, OpenimRef]]

_REQUESTS: dict[int, Reader] = {
    NEWEST: OpenimCodec._newest,
    RANGES: OpenimCodec._ranges,
    SEND: OpenimCodec._send,
    LISTS: OpenimCodec._lists,
    READ_AND_MAX: OpenimCodec._read_and_max,
    LAST: OpenimCodec._last,
    LOGOUT: OpenimCodec._done,
    BACKGROUND: OpenimCodec._done,
    STATUS: OpenimCodec._subscribe,
}


def codec_for(sdk_type: str, compression: str, base_url: str, names: Names) -> OpenimCodec:
    """Returns the codec that a client asks for with its query."""
    if sdk_type == "js":
        return OpenimCodec(JSON_FRAMING, base_url, names)
    return OpenimCodec(PACKED_FRAMING if compression == "gzip" else GOB_FRAMING, base_url, names)
