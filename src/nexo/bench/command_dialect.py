"""How the generator writes and reads the command dialect.

Conversations have other names there; the ones of the run are known, so the names can be translated back.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from nexo.bench.frame import Frame, PlainData
from nexo.ids import group_of, peers_of

_encode = msgspec.json.Encoder().encode


class _Frame(Struct):
    cmd: str = ""
    request_id: str = ""
    code: int = 0
    message: str = ""
    data: PlainData = msgspec.field(default_factory=PlainData)


# what the envelope dialect calls it
_TYPES = {
    "auth.token": "AUTH_OK", "chat.sync_conversations": "SYNC", "chat.send_message": "ACK", "chat.saved": "ACK",
    "chat.pull_offline": "PULL_OK", "chat.message": "SINGLE_CHAT", "group.event": "GROUP_EVENT",
    "chat.delivered_receipt": "ACK", "chat.read_receipt": "ACK", "sync.resync": "RESYNC",
    "chat.notify": "GROUP_NOTIFY", "chat.heads": "HEADS", "session.error": "ERROR", "heartbeat": "PONG",
}  # fmt: skip
_ACKS = {"chat.delivered_receipt": "delivered", "chat.read_receipt": "read"}


class CommandDialect:
    subprotocol = "nexo.command.v1"
    resends = False
    acks_by_seq = False

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(_Frame).decode
        self._names: dict[str, str] = {}  # as this dialect calls them
        self._aliases: dict[str, str] = {}

    def know(self, conversation_id: str) -> None:
        peers = peers_of(conversation_id)
        alias = f"p_{peers[0]}_{peers[1]}" if peers else group_of(conversation_id) or ""
        self._names[alias] = conversation_id
        self._aliases[conversation_id] = alias

    def path(self, user_id: str) -> str:
        return "/ws/cmd"

    def bearer(self, token: str) -> str:
        return ""

    def hello(self, token: str, device_id: str, baselines: dict[str, int]) -> bytes | None:
        return _encode({"cmd": "auth.token", "request_id": "hello", "data": {"token": token}})

    def renewal(self, token: str) -> bytes:
        return _encode({"cmd": "auth.token", "request_id": "again", "data": {"token": token}})

    def after_auth(self) -> bytes | None:
        return self.sync()

    def _send(self, chat_type: int, to_id: str, client_msg_id: str, body: str) -> bytes:
        return (
            f'{{"cmd":"chat.send_message","request_id":"s","data":{{"chat_type":{chat_type},"to_id":"{to_id}",'
            f'"client_msg_id":"{client_msg_id}","content":"{body}"}}}}'
        ).encode()

    def single(self, client_msg_id: str, to: str, body: str) -> bytes:
        return self._send(1, to, client_msg_id, body)

    def group(self, client_msg_id: str, group_id: str, body: str) -> bytes:
        return self._send(2, group_id, client_msg_id, body)

    def delivered(self, conversation_id: str, seq: int, server_msg_id: str) -> bytes:
        return f'{{"cmd":"chat.ack","request_id":"a","data":{{"msg_id":"{server_msg_id}"}}}}'.encode()

    def pull(self, conversation_id: str, begin_seq: int, limit: int = 200) -> bytes:
        """The answer does not say what it is about, but repeats the request's id."""
        data = {"baselines": {self._aliases[conversation_id]: begin_seq - 1}, "limit": limit}
        return _encode({"cmd": "chat.pull_offline", "request_id": conversation_id, "data": data})

    def sync(self) -> bytes:
        return b'{"cmd":"chat.sync_conversations","request_id":"y","data":{"limit":200}}'

    def decode(self, payload: bytes) -> Frame:
        found = self._decode(payload)
        data = found.data
        if found.code:
            kind = "AUTH_FAIL" if found.cmd == "auth.token" else "ERROR"
            return Frame(kind, data.client_msg_id, reason=found.message, retry_after_ms=data.retry_after_ms)
        frame = data.frame(self._named)
        frame.type = _TYPES.get(found.cmd, "OTHER")
        if frame.type == "ACK":
            frame.ack_type = _ACKS.get(found.cmd) or ("accepted" if data.status == "accepted" else "saved")
        elif frame.type == "PULL_OK":
            name = frame.conversation_id = found.request_id
            frame.messages = [message for message in frame.messages if message.conversation_id == name]
        return frame

    def _named(self, alias: str) -> str:
        return self._names.get(alias, alias)
