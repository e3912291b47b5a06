"""O1: a chat of OpenIM's clients (JSON envelope) against one of the envelope dialect, per CPU-second of the server.

    .venv/bin/python bench/openim.py                   three rounds of each, in turn
    .venv/bin/python bench/openim.py --seconds 2 --rounds 1

Both are full: stored, answered and pushed. On the envelope dialect the receiver acknowledges each message, and the
sender gets the receipt; OpenIM's clients have no such acknowledgement, and the sender gets its own message as a push
instead. So the envelope dialect is also measured without acknowledgements. Pairs of a sender and a receiver, a window
of messages without answer, random client_msg_ids, a fresh database for each run; server and generator have a core
each.
Every run is checked: each receiver got each acknowledged message once, in order.
"""

from __future__ import annotations

import argparse
import asyncio
import binascii
import json
import os
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlencode

import msgspec
import uvloop

from nexo.bench.api_requests import HttpCaller
from nexo.bench.http import ServerAddress
from nexo.bench.processes import usage_of
from nexo.bench.server import own_server
from nexo.bench.websocket import upgrade_request
from nexo.wire.openim import tables
from nexo.wire.openim.protobuf import encode

TEXT = "a message of ordinary length, as people write them: eighty characters or so "
DRAIN_S = 30.0
KINDS = ("openim", "envelope", "envelope, no acknowledgements")
_decode_json = msgspec.json.decode


class _Push(msgspec.Struct, rename="camel"):
    type: str
    conversation_id: str = ""
    msg_seq: int = 0
    body: str = ""


_decode_push = msgspec.json.Decoder(_Push).decode


def frame(payload: bytes, opcode: int) -> bytes:
    """Returns a frame of a client, with the mask 0."""
    size = len(payload)
    head = bytes((0x80 | opcode, 0x80 | size)) if size < 126 else bytes((0x80 | opcode, 0xFE)) + size.to_bytes(2, "big")
    return head + b"\0\0\0\0" + payload


class Connection(asyncio.Protocol):
    """Hands every data frame to `on_frame`. What is sent while frames are read leaves in one write."""

    def __init__(self, upgrade: bytes, opcode: int) -> None:
        self._upgrade = upgrade
        self._opcode = opcode
        self._buffer = b""
        self._out: list[bytes] | None = None
        self._in_head = True
        loop = asyncio.get_running_loop()
        self.opened, self.greeted = loop.create_future(), loop.create_future()
        self.on_frame: Callable[[bytes], None] = self._greet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._upgrade)

    def _greet(self, payload: bytes) -> None:
        if not self.greeted.done():
            self.greeted.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the upgrade was refused"))

    def send(self, payload: bytes) -> None:
        if self._out is not None:
            self._out.append(frame(payload, self._opcode))
        else:
            self.transport.write(frame(payload, self._opcode))

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data
        at = 0
        if self._in_head:
            at = buffer.find(b"\r\n\r\n") + 4
            if at < 4:
                self._buffer = buffer
                return
            if not buffer.startswith(b"HTTP/1.1 101"):
                self.transport.abort()
                return
            self._in_head = False
            self.opened.set_result(None)
        self._out = []
        while len(buffer) - at >= 2:
            size, start = buffer[at + 1], at + 2
            if size == 126:
                size, start = int.from_bytes(buffer[at + 2 : at + 4], "big"), at + 4
            elif size == 127:
                size, start = int.from_bytes(buffer[at + 2 : at + 10], "big"), at + 10
            if start + size > len(buffer):
                break
            if buffer[at] & 0x0F in (1, 2):
                self.on_frame(buffer[start : start + size])
            at = start + size
        self._buffer = buffer[at:]
        out, self._out = self._out, None
        if out:
            self.transport.write(b"".join(out))


class Speech(Protocol):
    """A dialect, as far as a pair needs it. Texts begin with ten digits: which message of its sender it is."""

    opcode: int

    def upgrade(self, address: ServerAddress, user_id: str, token: str) -> bytes: ...
    def hello(self, token: str) -> bytes | None: ...
    def send(self, sender: str, receiver: str, number: int) -> bytes: ...
    def is_saved(self, payload: bytes) -> bool: ...
    def received(self, payload: bytes) -> tuple[int, bytes | None] | None:
        """Returns the number of a pushed message, and the acknowledgement that answers it."""


class Envelope:
    opcode = 1

    def __init__(self, acknowledges: bool) -> None:
        self._acknowledges = acknowledges

    def upgrade(self, address: ServerAddress, user_id: str, token: str) -> bytes:
        return upgrade_request(address, "/ws", "nexo.envelope.v1")

    def hello(self, token: str) -> bytes | None:
        return msgspec.json.encode({"type": "AUTH", "token": token, "deviceId": "bench", "baselines": {}})

    def send(self, sender: str, receiver: str, number: int) -> bytes:
        return (
            f'{{"type":"SINGLE_CHAT","clientMsgId":"{secrets.token_hex(16)}","to":"{receiver}",'
            f'"body":"{number:010d}{TEXT}"}}'
        ).encode()

    def is_saved(self, payload: bytes) -> bool:
        return b'"ackType":"saved"' in payload

    def received(self, payload: bytes) -> tuple[int, bytes | None] | None:
        found = _decode_push(payload)
        if found.type != "SINGLE_CHAT":
            return None
        ack = None
        if self._acknowledges:
            ack = b'{"type":"ACK","ackType":"delivered","conversationId":"%b","msgSeq":%d}' % (
                found.conversation_id.encode(),
                found.msg_seq,
            )
        return int(found.body[:10]), ack


class Openim:
    opcode = 2

    def upgrade(self, address: ServerAddress, user_id: str, token: str) -> bytes:
        query = {
            "sendID": user_id, "token": token, "platformID": 5, "operationID": "o", "isBackground": "false",
            "isMsgResp": "true", "sdkType": "js",
        }  # fmt: skip
        made = upgrade_request(address, "/openim?" + urlencode(query), "x")
        return made.replace(b"Sec-WebSocket-Protocol: x\r\n", b"")

    def hello(self, token: str) -> bytes | None:
        return None

    def __init__(self) -> None:
        self._parts: dict[str, list[bytes]] = {}

    def send(self, sender: str, receiver: str, number: int) -> bytes:
        """What `@openim/client-sdk` sends for a text: the same fields with values of the same length."""
        parts = self._parts.get(sender)
        if parts is None:
            parts = self._parts[sender] = self._template(sender, receiver)
        made = b"%b%b%b%010d%b" % (parts[0], secrets.token_hex(16).encode(), parts[1], number, parts[2])
        packed = binascii.b2a_base64(made, newline=False)
        return b'{"reqIdentifier":1003,"msgIncr":"%d","operationID":"op-%032d","sendID":"%b","data":"%b"}' % (
            number,
            number,
            sender.encode(),
            packed,
        )

    @staticmethod
    def _template(sender: str, receiver: str) -> list[bytes]:
        """Returns the parts around the client id and the number, which alone differ."""
        now = int(time.time() * 1000)
        data = {
            "sendID": sender, "recvID": receiver, "clientMsgID": "c" * 32, "senderPlatformID": 5,
            "senderNickname": sender, "sessionType": 1, "msgFrom": 100, "contentType": 101,
            "content": f'{{"content":"##########{TEXT}"}}'.encode(), "sendTime": now, "createTime": now, "status": 1,
            "offlinePushInfo": {"title": "", "desc": "", "ex": "", "iOSPushSound": "", "iOSBadgeCount": True},
        }  # fmt: skip
        first, rest = encode(tables.MSG_DATA, data).split(b"c" * 32)
        return [first, *rest.split(b"#" * 10)]

    def is_saved(self, payload: bytes) -> bool:
        return b'"reqIdentifier":1003' in payload and b'"errCode":0' in payload

    def received(self, payload: bytes) -> tuple[int, bytes | None] | None:
        if b'"reqIdentifier":2001' not in payload:
            return None
        at = payload.index(b'"data":"') + 8
        data = binascii.a2b_base64(payload[at:-2])
        at = data.find(b'{"content":"')
        return (int(data[at + 12 : at + 22]), None) if at > 0 else None


class Pair:
    def __init__(self, speech: Speech, names: tuple[str, str]) -> None:
        self.speech = speech
        self.sender, self.receiver = names
        self.sent = self.saved = 0
        self.got: list[int] = []
        self.is_over = False

    def start(self, sending: Connection, receiving: Connection, window: int) -> None:
        self._sending, self._receiving = sending, receiving
        sending.on_frame, receiving.on_frame = self._answered, self._pushed
        for _ in range(window):
            self._send()

    def _send(self) -> None:
        self._sending.send(self.speech.send(self.sender, self.receiver, self.sent))
        self.sent += 1

    def _answered(self, payload: bytes) -> None:
        if self.speech.is_saved(payload):
            self.saved += 1
            if not self.is_over:
                self._send()

    def _pushed(self, payload: bytes) -> None:
        found = self.speech.received(payload)
        if found is not None:
            self.got.append(found[0])
            if found[1] is not None:
                self._receiving.send(found[1])


async def connect(address: ServerAddress, speech: Speech, user_id: str, token: str) -> Connection:
    loop = asyncio.get_running_loop()
    upgrade = speech.upgrade(address, user_id, token)
    _, made = await loop.create_connection(lambda: Connection(upgrade, speech.opcode), address.host, address.port)
    await made.opened
    hello = speech.hello(token)
    if hello is not None:
        made.send(hello)
    await made.greeted
    return made


async def measure(kind: str, url: str, pid: int, pairs: int, window: int, seconds: float) -> tuple[float, float]:
    """Returns messages per second and per CPU-second of the server."""
    speech: Speech = Openim() if kind == "openim" else Envelope(kind == "envelope")
    address = ServerAddress(url)
    caller = HttpCaller([address])
    tokens: dict[str, str] = {}

    async def join(user_id: str) -> None:
        account = {"user_id": user_id, "password": "a password"}
        await caller.call("POST", "/user/register", body=account)
        answer = await caller.call("POST", "/auth/login", body={**account, "platform_id": 5, "device_id": "bench"})
        tokens[user_id] = _decode_json(answer)["access_token"]

    names = [(f"s{number:04d}", f"r{number:04d}") for number in range(pairs)]
    await asyncio.gather(*(join(name) for pair in names for name in pair))
    caller.close()
    people = {name: await connect(address, speech, name, tokens[name]) for pair in names for name in pair}
    crowd = [Pair(speech, pair) for pair in names]
    for pair in crowd:
        pair.start(people[pair.sender], people[pair.receiver], window)
    await asyncio.sleep(1.0)  # the first second finds everything cold
    saved, cpu_s, began = sum(pair.saved for pair in crowd), usage_of([pid]).cpu_s, time.perf_counter()
    await asyncio.sleep(seconds)
    took_s, used_s = time.perf_counter() - began, usage_of([pid]).cpu_s - cpu_s
    done = sum(pair.saved for pair in crowd) - saved
    for pair in crowd:
        pair.is_over = True
    async with asyncio.timeout(DRAIN_S):
        while any(pair.saved < pair.sent or len(pair.got) < pair.sent for pair in crowd):
            await asyncio.sleep(0.05)
    for pair in crowd:
        if pair.got != list(range(pair.sent)):
            raise SystemExit(f"{kind}: {pair.receiver} did not get each message once and in order")
    for connection in people.values():
        connection.transport.abort()
    return done / took_s, done / used_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="run `nexo check` on what each run stored")
    parser.add_argument("--json", type=Path, help="write the figures into this file")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(args.rounds):
        for kind in KINDS:
            with own_server(cores={cores[0]}) as server:
                work = measure(kind, server.url, server.pid, args.pairs, args.window, args.seconds)
                found[kind].append(uvloop.run(work))
                sys.stderr.write(f"{kind}: {found[kind][-1][0]:,.0f}/s, {found[kind][-1][1]:,.0f} per CPU-s\n")
                if args.check and (wrong := server.check_store()):
                    raise SystemExit(f"{kind}: {wrong}")
    shown: dict[str, Any] = {
        kind: {name: statistics.median(run[i] for run in runs) for i, name in enumerate(("per_s", "per_cpu_s"))}
        for kind, runs in found.items()
    }
    for kind, row in shown.items():
        sys.stdout.write(f"{kind:32}{row['per_s']:>10,.0f} msg/s{row['per_cpu_s']:>10,.0f} per CPU-s\n")
    shown["ratio"] = shown[KINDS[0]]["per_cpu_s"] / shown[KINDS[1]]["per_cpu_s"]
    bare = shown[KINDS[0]]["per_cpu_s"] / shown[KINDS[2]]["per_cpu_s"]
    sys.stdout.write(f"O1: {shown['ratio']:.2f} × (against no acknowledgements {bare:.2f} ×; wanted 0.60, aim 0.80)\n")
    if args.json:
        args.json.write_text(json.dumps(shown))


if __name__ == "__main__":
    main()
