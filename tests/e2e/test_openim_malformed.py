"""1,000 malformed frames of every kind against a running server: errors, no crash, bounded memory."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import gzip
import json
import random
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from harness.chat import PATIENCE_S, Person, world
from harness.openim import people
from harness.server_process import ServerProcess
from nexo.wire.openim import gob, tables
from nexo.wire.openim.protobuf import encode

FRAMES = 1000
WARM_UP = 100  # what is imported and remembered once
GROWTH_MAX_BYTES = 48 << 20
REQUEST = gob.Encoder(
    "Req", {"ReqIdentifier": gob.INT, "MsgIncr": gob.TEXT, "OperationID": gob.TEXT, "Data": gob.BYTES}
)
NUMBERS = (1001, 1002, 1003, 1005, 1006, 1007, 2004, 2005, 9999, -1, 0)
GOOD = encode(
    tables.MSG_DATA,
    {"sendID": "x", "recvID": "y", "clientMsgID": "c", "sessionType": 1, "contentType": 101, "content": b"{}"},
)


def as_json(number: int, data: str) -> bytes:
    return json.dumps({"reqIdentifier": number, "msgIncr": "1", "operationID": "o", "data": data}).encode()


def as_gob(number: int, data: bytes) -> bytes:
    return REQUEST.encode({"ReqIdentifier": number, "MsgIncr": "1", "OperationID": "o", "Data": data})


def broken(source: random.Random, data: bytes) -> bytes:
    """Some bytes changed, taken out or put in."""
    out = bytearray(data)
    for _ in range(source.randint(1, 6)):
        at = source.randrange(len(out) + 1)
        match source.randrange(4):
            case 0:
                out[at:at] = source.randbytes(source.randint(1, 8))
            case 1:
                del out[at : at + source.randint(1, 8)]
            case 2 if at < len(out):
                out[at] = source.randrange(256)
            case _:
                del out[at:]
    return bytes(out)


def nested(source: random.Random) -> bytes:
    made = b""
    for _ in range(source.randint(20, 400)):
        made = b"\xa2\x01" + bytes((min(127, len(made)),)) + made
    return made


def json_frame(source: random.Random) -> bytes:
    good = as_json(source.choice(NUMBERS), base64.b64encode(GOOD).decode())
    odd = [
        b"[" * 20_000,
        b'{"reqIdentifier":1e400}',
        b'{"reqIdentifier":"x"}',
        b"\xff\xfe",
        b"null",
        b'{"data":7}',
        b"",
    ]
    return source.choice(odd) if source.random() < 0.2 else broken(source, good)


def base64_frame(source: random.Random) -> bytes:
    text = base64.b64encode(source.randbytes(source.randint(1, 300))).decode()
    odd = [text[:-1] + "!", text + "=", text[1:], "=" * 50, "A" * 3, text.replace("A", "\n"), "ü" * 9]
    return as_json(source.choice(NUMBERS), source.choice(odd))


def protobuf_frame(source: random.Random) -> bytes:
    made = [broken(source, GOOD), source.randbytes(100), nested(source), b"\x0a\xff\xff\xff\xff\x0f", b"\x18" * 40_000]
    return as_json(source.choice(NUMBERS), base64.b64encode(source.choice(made)).decode())


def gob_frame(source: random.Random) -> bytes:
    return broken(source, as_gob(source.choice(NUMBERS), source.choice([GOOD, source.randbytes(50), nested(source)])))


@functools.cache
def bomb(mib: int) -> bytes:
    return gzip.compress(bytes(mib << 20), 9)


def packed_frame(source: random.Random) -> bytes:
    match source.randrange(4):
        case 0:
            made = bomb(source.choice([2, 20, 50]))
            return made if source.random() < 0.9 else made[:50]
        case 1:
            return broken(source, gzip.compress(as_gob(1003, GOOD)))
        case 2:
            return gzip.compress(gob_frame(source))
        case _:
            return gzip.compress(bomb(5))


KINDS: dict[str, tuple[Callable[[random.Random], bytes], dict[str, str]]] = {
    "json": (json_frame, {"sdkType": "js"}),
    "base64": (base64_frame, {"sdkType": "js"}),
    "protobuf": (protobuf_frame, {"sdkType": "js"}),
    "gob": (gob_frame, {}),
    "gzip": (packed_frame, {"compression": "gzip"}),
}


async def attack(
    server: ServerProcess, person: Person, make: Callable[[], bytes], query: dict[str, str], frames: int
) -> int:
    """Returns how many frames were answered. The server may close a connection that breaks the rules; the next frame
    then goes over a new one."""
    asked: dict[str, Any] = {"sendID": person.user_id, "token": person.tokens.access, "platformID": 5, **query}
    uri = f"{server.ws_address.removesuffix('/ws')}/openim?{urlencode(asked)}&isMsgResp=true"
    answered = sent = 0
    while sent < frames:
        async with connect(uri, ping_interval=None, max_size=None, compression=None, proxy=None) as socket:
            assert json.loads(await socket.recv())["errCode"] == 0
            with contextlib.suppress(ConnectionClosed):
                while sent < frames:
                    sent += 1
                    await socket.send(make())
                    async with asyncio.timeout(PATIENCE_S):
                        await socket.recv()
                    answered += 1
    return answered


@pytest.mark.parametrize("kind", KINDS)
async def test_malformed_frames_are_errors_and_nothing_else(kind: str) -> None:
    make, query = KINDS[kind]
    source = random.Random(kind)
    with ServerProcess(limits__frames_per_s=0, limits__sends_per_s=0) as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await people(here, "ann", "ben")
            listener = await ben.connect()
            await attack(server, ann, lambda: make(source), query, WARM_UP)
            before, pid = server.rss_bytes, server.pid
            answered = await attack(server, ann, lambda: make(source), query, FRAMES)
            assert answered
            assert server.rss_bytes - before < GROWTH_MAX_BYTES
            assert server.pid == pid
            await ann.send(ben, "still there")
            await listener.expect("SINGLE_CHAT", body="still there")
            assert "Traceback" not in server.output
