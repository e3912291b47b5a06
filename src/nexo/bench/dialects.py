"""How the generator writes and reads the envelope and the request dialect."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from nexo.bench.command_dialect import CommandDialect
from nexo.bench.frame import BenchDialect, Frame, PlainData

_encode = msgspec.json.Encoder().encode


class EnvelopeDialect:
    subprotocol = "nexo.envelope.v1"
    resends = True
    acks_by_seq = True

    def __init__(self) -> None:
        self.decode = msgspec.json.Decoder(Frame).decode

    def path(self, user_id: str) -> str:
        return "/ws"

    def bearer(self, token: str) -> str:
        return ""

    def hello(self, token: str, device_id: str, baselines: dict[str, int]) -> bytes | None:
        return _encode({"type": "AUTH", "token": token, "deviceId": device_id, "baselines": baselines})

    def renewal(self, token: str) -> bytes:
        return _encode({"type": "REAUTH", "token": token})

    def after_auth(self) -> bytes | None:
        return None  # SYNC and the resend come by themselves

    def single(self, client_msg_id: str, to: str, body: str) -> bytes:
        return f'{{"type":"SINGLE_CHAT","clientMsgId":"{client_msg_id}","to":"{to}","body":"{body}"}}'.encode()

    def group(self, client_msg_id: str, group_id: str, body: str) -> bytes:
        return (
            f'{{"type":"GROUP_CHAT","clientMsgId":"{client_msg_id}","groupId":"{group_id}","body":"{body}"}}'.encode()
        )

    def delivered(self, conversation_id: str, seq: int, server_msg_id: str) -> bytes:
        if server_msg_id:
            return f'{{"type":"ACK","ackType":"delivered","serverMsgId":"{server_msg_id}"}}'.encode()
        return _encode({"type": "ACK", "ackType": "delivered", "conversationId": conversation_id, "msgSeq": seq})

    def pull(self, conversation_id: str, begin_seq: int, limit: int = 200) -> bytes:
        return _encode({"type": "PULL", "conversationId": conversation_id, "beginSeq": begin_seq, "limit": limit})

    def sync(self) -> bytes:
        return b'{"type":"SYNC"}'

    def know(self, conversation_id: str) -> None:
        pass


class _RequestFrame(Struct):
    req_identifier: int = 0
    err_code: int = 0
    err_msg: str = ""
    data: PlainData = msgspec.field(default_factory=PlainData)


# what the envelope dialect calls it
_REQUEST_TYPES = {
    0: "AUTH_OK", 1001: "SYNC", 1003: "ACK", 1005: "PULL_OK", 1008: "ANSWER", 2001: "MESSAGE", 2003: "ACK",
    2004: "RESYNC", 2006: "GROUP_NOTIFY", 2008: "ACK", 2009: "ACK", 2010: "ERROR", 2013: "HEADS",
}  # fmt: skip
_REQUEST_ACKS = {1003: "saved", 2003: "read", 2008: "delivered", 2009: "saved"}


class RequestDialect:
    subprotocol = "nexo.request.v1"
    resends = False
    acks_by_seq = True

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(_RequestFrame).decode

    def path(self, user_id: str) -> str:
        return "/ws?" + urlencode({"send_id": user_id, "platform_id": 5, "is_msg_resp": "true"})

    def bearer(self, token: str) -> str:
        return token

    def hello(self, token: str, device_id: str, baselines: dict[str, int]) -> bytes | None:
        return None

    def renewal(self, token: str) -> bytes:
        return _encode({"req_identifier": 1001, "token": token, "msg_incr": "1", "operation_id": "b", "data": {}})

    def after_auth(self) -> bytes | None:
        return self.sync()

    def _ask(self, number: int, data: str) -> bytes:
        return f'{{"req_identifier":{number},"msg_incr":"1","operation_id":"b","data":{data}}}'.encode()

    def single(self, client_msg_id: str, to: str, body: str) -> bytes:
        return self._ask(1003, f'{{"client_msg_id":"{client_msg_id}","recv_id":"{to}","content":"{body}"}}')

    def group(self, client_msg_id: str, group_id: str, body: str) -> bytes:
        return self._ask(1003, f'{{"client_msg_id":"{client_msg_id}","group_id":"{group_id}","content":"{body}"}}')

    def delivered(self, conversation_id: str, seq: int, server_msg_id: str) -> bytes:
        return self._ask(1008, f'{{"conversation_id":"{conversation_id}","seq":{seq}}}')

    def pull(self, conversation_id: str, begin_seq: int, limit: int = 200) -> bytes:
        data = f'{{"conversation_id":"{conversation_id}","begin_seq":{begin_seq},"limit":{limit}}}'
        return self._ask(1005, data)

    def sync(self) -> bytes:
        return self._ask(1001, "{}")

    def know(self, conversation_id: str) -> None:
        pass

    def decode(self, payload: bytes) -> Frame:
        found = self._decode(payload)
        data = found.data
        if found.err_code:
            kind = "ERROR" if found.req_identifier else "AUTH_FAIL"
            return Frame(kind, data.client_msg_id, reason=found.err_msg, retry_after_ms=data.retry_after_ms)
        frame = data.frame()
        frame.type = _REQUEST_TYPES.get(found.req_identifier, "OTHER")
        frame.ack_type = _REQUEST_ACKS.get(found.req_identifier, "")
        if frame.type == "ACK" and data.status == "accepted":
            frame.ack_type = "accepted"
        elif frame.type == "MESSAGE":
            frame.type = "GROUP_EVENT" if data.msg_type >= 100 else "SINGLE_CHAT"
        return frame


_DIALECTS: dict[str, type[BenchDialect]] = {
    "envelope": EnvelopeDialect,
    "request": RequestDialect,
    "command": CommandDialect,
}


def make_dialect(name: str) -> BenchDialect:
    return _DIALECTS[name]()
