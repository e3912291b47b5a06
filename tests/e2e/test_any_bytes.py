"""Whatever comes over a socket, the server answers only what is documented, and stays up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.pair_load import sign_up
from harness.server_process import ServerProcess
from harness.ws_client import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    RawClient,
    frame,
    open_client,
    parse_frames,
)
from nexo.errors import ERRORS
from nexo.wire.envelope.requests import EnvelopeFrame

ANSWERS = {
    "AUTH_OK", "AUTH_FAIL", "PONG", "SYNC", "RESEND_DONE", "RESYNC", "SINGLE_CHAT", "GROUP_CHAT", "GROUP_EVENT",
    "GROUP_NOTIFY", "ACK", "MESSAGE_REVOKED", "PULL_OK", "HEADS", "TYPING", "PRESENCE", "ERROR",
}  # fmt: skip
CLOSES = {1000, 1002, 1005, 1007, 1009, *range(3000, 5000)}
CHAT = "si_ann:ben"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
KINDS = [
    "AUTH",
    "REAUTH",
    "PING",
    "SINGLE_CHAT",
    "GROUP_CHAT",
    "ACK",
    "MESSAGE_REVOKE",
    "PULL",
    "SYNC",
    "RESEND",
    "TYPING",
    "PRESENCE",
    "CALL_X",
    "X",
]
WORDS = f"read delivered 1 ann ben nobody {CHAT} sg_g_000000000000 g_000000000000 7".split()
kinds = st.sampled_from(KINDS)
likely = st.sampled_from([*WORDS, 0, 1, -1, 1 << 62, 1 << 63, 1 << 80, True, [], ["ben"], {}, {CHAT: 1}, "x" * 5000])
names = st.sampled_from([name for name in EnvelopeFrame.__struct_encode_fields__ if name != "type"])
requests = st.builds(
    lambda kind, fields: {"type": kind} | fields, kinds, st.dictionaries(names, likely | json_values, max_size=8)
)
texts = st.one_of(
    requests.map(lambda value: json.dumps(value).encode()),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=200),
    st.text(max_size=100).map(str.encode),
)
frames = st.one_of(
    texts.map(lambda payload: frame(TEXT, payload)),
    st.binary(max_size=100).map(lambda payload: frame(BINARY, payload)),
    st.binary(max_size=125).map(lambda payload: frame(PING, payload)),
    st.binary(max_size=125).map(lambda payload: frame(PONG, payload)),
    st.binary(max_size=50).map(lambda payload: frame(TEXT, payload, fin=False)),
    st.binary(max_size=50).map(lambda payload: frame(CONTINUATION, payload)),
    st.binary(max_size=20).map(lambda payload: frame(CLOSE, payload)),
)
noise = st.just(b"") | st.binary(max_size=60)  # no frame at all, or half of one


@pytest.fixture(scope="module")
def tough() -> Iterator[tuple[ServerProcess, dict[str, str]]]:
    """A server of its own, so that its log can be judged, with ann and ben."""
    with ServerProcess(auth__access_ttl_s=3600) as server:
        tokens = asyncio.run(sign_up(server.address, ["ann", "ben"]))
        yield server, tokens
        assert "Traceback" not in server.output, server.output[-3000:]
        assert "internal_error" not in server.output


def check_answer(opcode: int, payload: bytes) -> None:
    if opcode == TEXT:
        told: Any = json.loads(payload)
        assert told["type"] in ANSWERS, told
        if told["type"] in ("ERROR", "AUTH_FAIL"):
            assert told["reason"] in ERRORS, told
            assert told["reason"] != "internal_error", told
    elif opcode == CLOSE:
        assert not payload or int.from_bytes(payload[:2], "big") in CLOSES
    else:
        assert opcode in (PING, PONG)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(sent=st.lists(frames, min_size=1, max_size=10), last=noise, signed_in=st.booleans())
async def test_any_bytes_lead_only_to_documented_answers(
    tough: tuple[ServerProcess, dict[str, str]], sent: list[bytes], last: bytes, signed_in: bool
) -> None:
    server, tokens = tough
    async with open_client(server.port) as client:
        if signed_in:
            auth = {"type": "AUTH", "token": tokens["ann"]}
            await client.send(frame(TEXT, json.dumps(auth).encode()))
            while b"RESEND_DONE" not in (await client.next_frame()).payload:
                pass
        goodbye = [] if last else [frame(TEXT, b'{"type":"PING"}'), frame(CLOSE, (1000).to_bytes(2, "big"))]
        try:
            await client.send(*sent, last, *goodbye)
            await read_to_the_end(client)
        except (ConnectionResetError, BrokenPipeError):
            pass  # it was closed before all of it was read
        for answer in parse_frames(client.data):
            check_answer(answer.opcode, answer.payload)
    async with httpx.AsyncClient(base_url=server.address, trust_env=False, timeout=30) as http:
        assert (await http.get("/healthz")).status_code == 200


async def read_to_the_end(client: RawClient) -> None:
    """What waits for the rest of a frame is ended from this side."""
    try:
        async with asyncio.timeout(0.1):
            while await client.receive():
                pass
    except TimeoutError:
        client.half_close()
        while await client.receive():
            pass
