"""Any bytes, cut anywhere, into every WebSocket implementation; no sockets, so every read is known."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from harness.waiting import loop_turns
from harness.ws_client import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    close,
    frame,
    parse_frames,
    plain_headers,
    request_head,
    text,
)
from harness.ws_server import (
    PATIENT,
    ScriptedGate,
    ScriptedPeer,
)
from nexo.transport.implementations import MAKERS, make_protocol
from nexo.transport.websocket import SocketLimits


@pytest.fixture(scope="module", params=MAKERS)
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# Properties, without sockets


class FakeTransport:
    """Enough of a transport to hand bytes to whatever protocol is set on it."""

    def __init__(self) -> None:
        self.protocol: Any = None
        self.written = bytearray()
        self.closing = False

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def feed(self, data: bytes) -> None:
        """One read after the other, as many as the protocol's buffer needs."""
        while data and not self.closing:
            if hasattr(self.protocol, "get_buffer"):
                room = self.protocol.get_buffer(65536)
                size = min(len(room), len(data))
                room[:size] = data[:size]
                self.protocol.buffer_updated(size)
                data = data[size:]
            else:
                self.protocol.data_received(data)
                data = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> None:
        return None


async def open_without_sockets(implementation: str, limits: SocketLimits) -> tuple[FakeTransport, ScriptedPeer]:
    gate = ScriptedGate()
    protocol = cast(Any, make_protocol(implementation, gate, limits))(None, ServerState(), {})
    transport = FakeTransport()
    protocol.connection_made(transport)
    protocol.data_received(request_head("/ws", plain_headers()))
    transport.set_protocol(protocol)
    await loop_turns(2)
    assert transport.written.startswith(b"HTTP/1.1 101 ")
    transport.written.clear()
    return transport, gate.peer


def lose(transport: FakeTransport, peer: ScriptedPeer) -> None:
    transport.protocol.connection_lost(None)
    assert peer.names().count("closed") == 1
    assert peer.names()[-1] == "closed"


CONVERSATION = (
    text("short")
    + frame(TEXT, b"x" * 300)
    + frame(PING, b"ping")
    + frame(TEXT, "grüße ".encode()[:3], fin=False)
    + frame(PONG)
    + frame(CONTINUATION, "grüße ".encode()[3:], fin=False)
    + frame(CONTINUATION, b"!")
    + frame(BINARY, b"\xff\xff")
    + close(4000, b"bye")
)
ANSWERS = [b"short", b"x" * 300, "grüße !".encode()]


def check_conversation(transport: FakeTransport, peer: ScriptedPeer) -> None:
    answers = list(parse_frames(transport.written))
    assert [frame.payload for frame in answers if frame.opcode == TEXT] == ANSWERS
    assert (PONG, b"ping") in answers
    assert answers[-1].close_code == 4000
    assert peer.values("text") == ANSWERS
    assert peer.names().count("binary") == 1
    lose(transport, peer)
    assert peer.values("closed") == [4000]


async def test_a_conversation_cut_in_two_anywhere_reads_the_same(implementation: str) -> None:
    for cut in range(len(CONVERSATION)):
        transport, peer = await open_without_sockets(implementation, PATIENT)
        transport.feed(CONVERSATION[:cut])
        transport.feed(CONVERSATION[cut:])
        check_conversation(transport, peer)


@settings(deadline=None, max_examples=50)
@given(cuts=st.lists(st.integers(0, len(CONVERSATION)), max_size=len(CONVERSATION)))
async def test_a_conversation_reads_the_same_however_it_is_cut(implementation: str, cuts: list[int]) -> None:
    transport, peer = await open_without_sockets(implementation, PATIENT)
    edges = [0, *sorted(cuts), len(CONVERSATION)]
    for start, end in itertools.pairwise(edges):
        transport.feed(CONVERSATION[start:end])
    check_conversation(transport, peer)


def any_frame() -> st.SearchStrategy[bytes]:
    """Mostly sensible frames, so that the nonsense comes in all states."""
    return st.builds(
        frame,
        opcode=st.one_of(st.sampled_from([TEXT, TEXT, BINARY, CONTINUATION, PING, PONG, CLOSE]), st.integers(0, 15)),
        payload=st.one_of(st.text(max_size=40).map(str.encode), st.binary(max_size=200)),
        fin=st.booleans(),
        rsv=st.one_of(st.just(0), st.integers(0, 7)),
        mask=st.one_of(st.just(b"abcd"), st.none(), st.binary(min_size=4, max_size=4)),
    )


@settings(deadline=None, max_examples=300)
@given(data=st.lists(st.one_of(any_frame(), any_frame(), st.binary(max_size=300)), max_size=12), seed=st.randoms())
async def test_no_bytes_make_a_protocol_raise(implementation: str, data: list[bytes], seed: Any) -> None:
    transport, peer = await open_without_sockets(implementation, SocketLimits(message_bytes=300))
    for piece in data:
        cut = seed.randint(0, len(piece))
        transport.feed(piece[:cut])
        transport.feed(piece[cut:])
    for payload in peer.values("text"):
        payload.decode()
        assert len(payload) <= 300
    frames = list(parse_frames(transport.written))
    assert not transport.written, "half a frame was written"
    assert [received.opcode for received in frames[:-1]].count(CLOSE) == 0, "a close frame is the last one"
    lose(transport, peer)


@settings(deadline=None, max_examples=100)
@given(data=st.binary(max_size=200))
async def test_no_bytes_behind_a_failure_are_read(implementation: str, data: bytes) -> None:
    transport, peer = await open_without_sockets(implementation, PATIENT)
    transport.feed(frame(TEXT, b"x" * 1001))
    assert peer.values("too_big") == [1000]
    before = list(peer.calls)
    transport.feed(text("whole") + data)
    assert peer.calls == before
    lose(transport, peer)


# What is picows's own


async def test_picows_gives_a_grown_buffer_back_when_a_client_only_answers_pings() -> None:
    transport, peer = await open_without_sockets("picows", SocketLimits(message_bytes=65536))
    small = transport.protocol
    transport.feed(frame(TEXT, b"x" * 60_000))
    transport.feed(frame(PONG) + frame(TEXT, b"half")[:8])
    assert transport.protocol is small  # there is something in it
    transport.feed(frame(TEXT, b"half")[8:])
    assert len(small.get_buffer(-1)) > 10_000
    transport.feed(frame(PONG))
    assert transport.protocol is not small
    assert len(transport.protocol.get_buffer(-1)) < 2048
    transport.feed(frame(TEXT, b"y" * 60_000))
    assert peer.values("text") == [b"x" * 60_000, b"half", b"y" * 60_000]
    lose(transport, peer)


async def test_picows_buffers_stay_bounded_in_a_flood() -> None:
    transport, peer = await open_without_sockets("picows", SocketLimits(message_bytes=65536))
    flood = frame(TEXT, b"x" * 65536) + text("y") * 100_000
    for _ in range(3):
        transport.feed(flood)  # as much as a read takes
    room = 0
    for size in (10, 60_000):  # behind a part of a message, too
        transport.feed(frame(TEXT, b"z" * 65536)[:size])
        room = max(room, len(transport.protocol.get_buffer(-1)) + size)
    assert room < 256 * 1024
    assert len(peer.values("text")) == 3 * 100_001
