"""RFC 6455 and the contract of `gateway/websocket.py`, for every implementation behind a real uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from uvicorn.server import ServerState
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from harness.ws_client import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PATIENCE_S,
    PING,
    PONG,
    TEXT,
    Headers,
    RawClient,
    Received,
    accept_for,
    close,
    frame,
    new_key,
    open_client,
    parse_frames,
    plain_headers,
    raw_client,
    request_head,
    text,
)
from harness.ws_server import Decision, ScriptedGate, ScriptedPeer, ScriptedServer, listen, make_server, scripted_server
from nexo.gateway.links import MAKERS, make_protocol
from nexo.gateway.websocket import Accept, Limits, Refuse, Request, text_frame

HIGH, LOW = 150_000, 40_000  # not uvloop's own marks
PATIENT = Limits(message_bytes=1000, high_water_bytes=HIGH, low_water_bytes=LOW, close_wait_s=PATIENCE_S)
HASTY = Limits(message_bytes=1000, high_water_bytes=HIGH, low_water_bytes=LOW, close_wait_s=0.2)


@pytest.fixture(scope="module", params=MAKERS)
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.asynccontextmanager
async def one_client(
    implementation: str,
    peer: ScriptedPeer | None = None,
    limits: Limits = PATIENT,
    *,
    tight: bool = False,
) -> AsyncIterator[tuple[RawClient, ScriptedPeer]]:
    """A server and one raw client with an open WebSocket; `tight` leaves the kernel little room in between."""
    buffer_bytes = 4096 if tight else None
    async with scripted_server(implementation, limits, send_buffer_bytes=buffer_bytes) as server:
        server.gate.decision = lambda _: server.gate.accept(peer)
        async with open_client(server.port, receive_buffer_bytes=buffer_bytes) as client:
            opened = server.gate.peer
            await opened.until("opened")
            yield client, opened


def closing(frames: list[Received]) -> int | None:
    """The code of the close frame, which must be the last frame."""
    assert [received.opcode for received in frames].count(CLOSE) == 1, frames
    return frames[-1].close_code


async def failed_with(client: RawClient, peer: ScriptedPeer) -> int | None:
    """The code that the server failed the connection with; nothing but a close frame may come."""
    frames = await client.rest()
    assert len(frames) == 1, frames
    client.sock.close()
    assert await peer.until("closed") == [None]
    return closing(frames)


# The opening handshake


def browser_headers(connection: str, extensions: str, agent: str) -> Headers:
    return [
        ("Host", "chat.example:8900"),
        ("Connection", connection),
        ("Pragma", "no-cache"),
        ("Cache-Control", "no-cache"),
        ("User-Agent", agent),
        ("Upgrade", "websocket"),
        ("Origin", "https://chat.example"),
        ("Sec-WebSocket-Version", "13"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Accept-Language", "en-US,en;q=0.9"),
        ("Cookie", "theme=dark"),
        ("Sec-WebSocket-Key", new_key()),
        ("Sec-WebSocket-Extensions", extensions),
        ("Sec-WebSocket-Protocol", "nexo.envelope.v1, nexo.command.v1"),
    ]


BROWSERS = {
    "chrome": browser_headers("Upgrade", "permessage-deflate; client_max_window_bits", "Mozilla/5.0 Chrome/143"),
    "firefox": [
        *browser_headers("keep-alive, Upgrade", "permessage-deflate", "Mozilla/5.0 Firefox/145"),
        ("Accept", "*/*"),
        ("Sec-Fetch-Dest", "empty"),
        ("Sec-Fetch-Mode", "websocket"),
        ("Sec-Fetch-Site", "same-origin"),
    ],
    "safari": browser_headers("Upgrade", "permessage-deflate", "Mozilla/5.0 Version/26 Safari/605"),
    "shouting": [
        ("HOST", "chat.example"),
        ("UPGRADE", "WebSocket"),
        ("CONNECTION", "UPGRADE"),
        ("SEC-WEBSOCKET-VERSION", "13"),
        ("SEC-WEBSOCKET-KEY", new_key()),
    ],
}


@pytest.mark.parametrize("browser", BROWSERS)
async def test_browsers_are_let_in_without_extensions(implementation: str, browser: str) -> None:
    headers = BROWSERS[browser]
    key = next(value for name, value in headers if name.lower() == "sec-websocket-key")
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        response = await client.request("/ws", headers)
        assert response.status == 101
        assert response.headers["upgrade"].lower() == "websocket"
        assert response.headers["connection"].lower() == "upgrade"
        assert response.headers["sec-websocket-accept"] == accept_for(key)
        assert "sec-websocket-extensions" not in response.headers
        assert "sec-websocket-protocol" not in response.headers
        await client.send(text("ä"))
        assert await client.next_frame() == (TEXT, "ä".encode())


async def test_the_gate_sees_the_request(implementation: str) -> None:
    headers = [
        *plain_headers(sec_websocket_protocol="a,b , c"),
        ("X-Thing", "1"),
        ("x-thing", "2"),
        ("Sec-WebSocket-Protocol", "d"),
    ]
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        assert (await client.request("/w%C3%A4/x?a=1&b=%20?", headers)).status == 101
        (request,) = server.gate.requests
        assert (request.path, request.query, request.remote) == ("/wä/x", "a=1&b=%20?", "127.0.0.1")
        assert request.headers["x-thing"] == "1, 2"
        assert request.headers["host"] == "localhost"
        assert request.subprotocols == ("a", "b", "c", "d")


async def test_a_request_in_absolute_form_has_the_same_path(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        assert (await client.request("http://localhost/ws?a=1", plain_headers())).status == 101
        (request,) = server.gate.requests
        assert (request.path, request.query) == ("/ws", "a=1")


async def test_the_chosen_subprotocol_is_told(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        server.gate.decision = lambda request: server.gate.accept(subprotocol=request.subprotocols[1])
        response = await client.request("/ws", plain_headers(sec_websocket_protocol="a, b"))
        assert response.headers["sec-websocket-protocol"] == "b"


@pytest.mark.parametrize("later", [False, True])
async def test_a_refusal_is_plain_http(implementation: str, later: bool) -> None:
    refusal = Refuse(403, b'{"err_msg": "no"}')
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        server.gate.decision = lambda _: in_a_while(refusal) if later else refusal
        response = await client.request()
        assert (response.status, response.body) == (403, refusal.body)
        assert response.headers["content-type"] == "application/json"
        assert response.headers["connection"] == "close"
        assert "date" in response.headers
        assert await client.receive() == b""


async def in_a_while(decision: Accept | Refuse) -> Accept | Refuse:
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return decision


@pytest.mark.parametrize(
    ("status", "changes", "method"),
    [
        (426, {"sec_websocket_version": "8"}, "GET"),
        (426, {"sec_websocket_version": None}, "GET"),
        (400, {"sec_websocket_key": None}, "GET"),
        (400, {"sec_websocket_key": ""}, "GET"),
        (400, {"sec_websocket_key": "c2hvcnQ="}, "GET"),
        (400, {"sec_websocket_key": "!!!!!!!!!!!!!!!!!!!!!!=="}, "GET"),
        (400, {"sec_websocket_key": "\xe4" * 24}, "GET"),
        (405, {}, "POST"),
    ],
)
async def test_a_handshake_that_breaks_the_rules_does_not_reach_the_gate(
    implementation: str, status: int, changes: dict[str, str | None], method: str
) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        response = await client.request("/ws", plain_headers(**changes), method)
        assert response.status == status
        assert int(response.headers["content-length"]) == len(response.body) > 0
        assert response.headers.get("sec-websocket-version") == ("13" if status == 426 else None)
        assert await client.receive() == b""
        assert server.gate.requests == []


async def test_http_goes_on_beside_it(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        assert (await client.request("/", [("Host", "localhost")])).body == b"hello"
        assert (await client.request("/ws")).status == 101  # on the same, kept-alive connection


async def test_what_is_sent_while_the_gate_decides_is_read_afterwards(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        decided: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        server.gate.decision = lambda _: decided
        await client.send(request_head("/ws", plain_headers()))
        await server.gate.asked.wait()
        await client.send(*(text(f"hasty {number}") for number in range(500)))
        await asyncio.sleep(0.05)
        decided.set_result(server.gate.accept())
        assert (await client.response()).status == 101
        received = await client.next_frames(500)
        assert [frame.payload.decode() for frame in received] == [f"hasty {number}" for number in range(500)]
        assert server.gate.peer.names()[:2] == ["opened", "seen"]


async def test_a_refusal_reaches_a_client_that_has_sent_more(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        decided: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        server.gate.decision = lambda _: decided
        await client.send(request_head("/ws", plain_headers()))
        await server.gate.asked.wait()
        await client.send(text("x" * 500) * 100)
        decided.set_result(Refuse(401, b"no"))
        assert (await client.response()).status == 401
        await client.send(text("x" * 500) * 100)  # not a reset, which could overtake the response elsewhere
        assert await client.receive() == b""


async def test_a_client_cannot_fill_memory_while_the_gate_decides(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        decided: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        server.gate.decision = lambda _: decided
        await client.send(request_head("/ws", plain_headers()))
        await server.gate.asked.wait()
        with pytest.raises(TimeoutError):  # the kernel takes some megabytes, and then no more
            async with asyncio.timeout(1):
                await asyncio.get_running_loop().sock_sendall(client.sock, bytes(64 * 1024 * 1024))


@pytest.mark.parametrize("later", [False, True])
async def test_a_gate_that_fails_is_an_internal_error(implementation: str, later: bool) -> None:
    async def fail_later() -> Accept | Refuse:
        raise RuntimeError("the gate is broken")

    def decide(request: Request) -> Decision:
        if later:
            return fail_later()
        raise RuntimeError("the gate is broken")

    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        server.gate.decision = decide
        with capture_logs() as logs:
            assert (await client.request()).status == 500
        assert [entry["event"] for entry in logs] == ["websocket_gate_failed"]


async def test_a_client_that_went_while_the_gate_decided_is_gone_at_once(implementation: str) -> None:
    async with scripted_server(implementation) as server:
        decided: asyncio.Future[Accept | Refuse] = asyncio.get_running_loop().create_future()
        server.gate.decision = lambda _: decided
        async with raw_client(server.port) as client:
            await client.send(request_head("/ws", plain_headers()))
            await server.gate.asked.wait()
            client.vanish()
        decided.set_result(server.gate.accept())
        # Nobody reads from the socket before, so the end is seen only behind the upgrade.
        assert await server.gate.peer.until("closed") == [None]
        assert server.gate.peer.names() == ["opened", "closed"]


async def test_a_stopping_server_refuses_those_it_has_not_decided_about(implementation: str) -> None:
    async with scripted_server(implementation) as server, raw_client(server.port) as client:
        server.gate.decision = lambda _: asyncio.get_running_loop().create_future()
        await client.send(request_head("/ws", plain_headers()))
        await server.gate.asked.wait()
        (task,) = server.uvicorn.server_state.tasks  # so that uvicorn waits for it
        task.cancel()
        assert (await client.response()).status == 503


# Messages


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 1000, 65535, 65536, 200_000])
async def test_messages_of_every_length_encoding_come_back(implementation: str, size: int) -> None:
    message = bytes(32 + number % 90 for number in range(size))
    async with one_client(implementation, limits=Limits(message_bytes=max(size, 125))) as (client, peer):
        await client.send(frame(TEXT, message, mask=b"\xff\x00\xa5\x5a"))
        assert await client.next_frame() == (TEXT, message)
        assert await peer.until("text") == [message]


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_a_text_frame_is_what_a_server_sends(size: int) -> None:
    assert list(parse_frames(bytearray(text_frame(b"x" * size)))) == [(TEXT, b"x" * size)]


async def test_a_mask_of_zeros_is_a_mask(implementation: str) -> None:
    async with one_client(implementation) as (client, _):
        await client.send(frame(TEXT, b"plain", mask=bytes(4)))
        assert await client.next_frame() == (TEXT, b"plain")


async def test_binary_messages_are_counted_and_not_kept(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(
            frame(BINARY, b"\xff"), frame(BINARY, b"\xff", fin=False), frame(CONTINUATION, b"\xfe"), text("on")
        )
        assert await client.next_frame() == (TEXT, b"on")
        assert peer.names() == ["opened", "seen", "binary", "binary", "text", "read_done"]


async def test_fragments_become_one_message_whatever_stands_between_them(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(
            frame(TEXT, b"one ", fin=False),
            frame(PING, b"between"),
            frame(CONTINUATION, b"", fin=False),
            frame(PONG, b"unasked"),
            frame(CONTINUATION, b"two", fin=False),
            frame(CONTINUATION),
            frame(TEXT, b"", fin=False),
            frame(CONTINUATION),
            text("next"),
        )
        received = await client.next_frames(4)
        assert (PONG, b"between") in received
        assert [frame.payload for frame in received if frame.opcode == TEXT] == [b"one two", b"", b"next"]
        assert peer.values("text") == [b"one two", b"", b"next"]


async def test_many_empty_fragments_cost_nothing(implementation: str) -> None:
    async with one_client(implementation) as (client, _):
        await client.send(
            frame(TEXT, b"a", fin=False), frame(CONTINUATION, fin=False) * 20_000, frame(CONTINUATION, b"b")
        )
        assert await client.next_frame() == (TEXT, b"ab")


async def test_frames_of_one_segment_are_one_read(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(*(text(str(number)) for number in range(100)))
        await client.next_frames(100)
        assert peer.names() == ["opened", "seen", *["text"] * 100, "read_done"]


async def test_a_long_burst_arrives_whole_and_in_order(implementation: str) -> None:
    async with one_client(implementation) as (client, _):
        expected = [f"message {number}".encode() for number in range(20_000)]
        sending = asyncio.create_task(client.send(*(frame(TEXT, message) for message in expected)))
        assert [frame.payload for frame in await client.next_frames(20_000)] == expected
        await sending


@pytest.mark.parametrize(
    "message",
    [
        "κόσμε".encode(),
        "\U0010ffff\ud7ff\ue000\x00".encode(),
        "\ufffe\uffff".encode(),  # no characters, and yet valid
    ],
)
async def test_valid_utf8_passes_also_when_fragments_cut_characters(implementation: str, message: bytes) -> None:
    async with one_client(implementation) as (client, _):
        first, *rest = (bytes((byte,)) for byte in message)
        await client.send(
            frame(TEXT, message),
            frame(TEXT, first, fin=False),
            *(frame(CONTINUATION, byte, fin=False) for byte in rest),
            frame(CONTINUATION),
        )
        assert await client.next_frames(2) == [(TEXT, message)] * 2


INVALID_UTF8 = {
    "a lone continuation": b"ok \x80",
    "a character cut off": "ä".encode()[:1],
    "an overlong slash": b"\xc0\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "beyond the last one": b"\xf4\x90\x80\x80",
    "latin-1": "Grüße".encode("latin-1"),
}


@pytest.mark.parametrize("message", INVALID_UTF8.values(), ids=INVALID_UTF8)
@pytest.mark.parametrize("cut", [None, 1])
async def test_invalid_utf8_fails_with_1007(implementation: str, message: bytes, cut: int | None) -> None:
    async with one_client(implementation) as (client, peer):
        if cut is None:
            await client.send(frame(TEXT, message))
        else:
            await client.send(frame(TEXT, message[:cut], fin=False), frame(CONTINUATION, message[cut:]))
        assert await failed_with(client, peer) == 1007
        assert "text" not in peer.names()


# What the protocol forbids

VIOLATIONS = {
    **{f"RSV bits {rsv:03b}": frame(TEXT, b"x", rsv=rsv) for rsv in (1, 2, 4, 7)},
    "an RSV bit on a ping": frame(PING, rsv=4),
    **{f"opcode {opcode:#x}": frame(opcode, b"") for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    "no mask": frame(TEXT, b"x", mask=None),
    "no mask on an empty frame": frame(TEXT, mask=None),
    "no mask on a close": frame(CLOSE, mask=None),
    "a fragmented ping": frame(PING, b"x", fin=False),
    "a fragmented close": frame(CLOSE, b"\x03\xe8", fin=False),
    "a ping of 126 bytes": frame(PING, b"x" * 126),
    "a pong of 126 bytes": frame(PONG, b"x" * 126),
    "a close of 126 bytes": frame(CLOSE, b"\x03\xe8" + b"x" * 124),
    "a continuation of nothing": frame(CONTINUATION, b"x"),
    "a last continuation twice": frame(TEXT, fin=False) + frame(CONTINUATION) + frame(CONTINUATION),
    "a message within another": frame(TEXT, b"x", fin=False) + frame(BINARY, b"y", fin=False),
    "a whole message within another": frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"),
    "a close of one byte": frame(CLOSE, b"\x03"),
}


@pytest.mark.parametrize("violation", VIOLATIONS.values(), ids=VIOLATIONS)
async def test_a_violation_fails_with_1002(implementation: str, violation: bytes) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(violation)
        if violation.startswith(frame(TEXT, fin=False)[:2]):  # the first message was whole
            assert closing(await client.rest()) == 1002
        else:
            assert await failed_with(client, peer) == 1002


async def test_what_came_before_a_violation_is_answered_before_the_close_frame(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(text("good"), frame(PING, b"p"), frame(TEXT, b"bad", mask=None), text("late"))
        received = await client.rest()
        assert sorted(received[:-1]) == [(TEXT, b"good"), (PONG, b"p")]
        assert closing(received) == 1002
        assert peer.values("text") == [b"good"]


@pytest.mark.parametrize(("size", "length_bytes"), [(5, 2), (5, 8), (200, 8)])
async def test_a_length_with_needless_bytes_is_never_misread(implementation: str, size: int, length_bytes: int) -> None:
    async with one_client(implementation) as (client, _):
        await client.send(frame(TEXT, b"x" * size, length_bytes=length_bytes))
        answer = await client.next_frame()
        # RFC 6455 forbids it; the parser of `websockets` does not mind.
        assert answer.close_code == 1002 or (implementation == "websockets" and answer == (TEXT, b"x" * size))


@pytest.mark.parametrize("length", [2**32, 2**63 - 1, 2**63, 2**64 - 1])
async def test_absurd_lengths_fail_at_once(implementation: str, length: int) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(frame(TEXT, b"x", length=length))
        assert await failed_with(client, peer) in (1002, 1009)


@pytest.mark.parametrize("parts", [1, 2, 3])
async def test_a_message_of_the_largest_size_passes_and_one_byte_more_does_not(implementation: str, parts: int) -> None:
    def pieces(size: int) -> Iterator[bytes]:
        cuts = [size * part // parts for part in range(parts + 1)]
        for part in range(parts):
            opcode = CONTINUATION if part else TEXT
            yield frame(opcode, b"x" * (cuts[part + 1] - cuts[part]), fin=part == parts - 1)

    async with one_client(implementation) as (client, peer):
        await client.send(*pieces(1000), text("next"))
        assert (await client.next_frames(2))[1].payload == b"next"
        await client.send(*pieces(1001), text("late"))
        assert await failed_with(client, peer) == 1009
        assert peer.values("too_big") == [1000]
        assert peer.values("text") == [b"x" * 1000, b"next"]


async def test_a_peer_can_say_what_was_too_big(implementation: str) -> None:
    peer = ScriptedPeer(too_big=lambda limit: peer.link.write(text_frame(b"too big")))
    async with one_client(implementation, peer) as (client, _):
        await client.send(text("before"), text("x" * 1001))
        received = await client.rest()
        assert sorted(received[:-1]) == [(TEXT, b"before"), (TEXT, b"too big")]
        assert closing(received) == 1009


async def test_a_client_that_goes_on_sending_can_still_read_why_it_was_closed(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(frame(TEXT, b"x" * 20_000_000))
        assert await failed_with(client, peer) == 1009
        assert peer.names() == ["opened", "seen", "too_big", "read_done", "closed"]


async def test_control_frames_fit_between_fragments_of_the_largest_message(implementation: str) -> None:
    async with one_client(implementation) as (client, _):
        await client.send(frame(TEXT, b"x" * 1000, fin=False), frame(PING, b"p" * 125), frame(CONTINUATION))
        assert sorted(await client.next_frames(2)) == [(TEXT, b"x" * 1000), (PONG, b"p" * 125)]


# Ping and pong


@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(125))])
async def test_a_ping_is_answered_with_its_payload(implementation: str, payload: bytes) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(frame(PING, payload))
        assert await client.next_frame() == (PONG, payload)
        assert peer.names() == ["opened", "seen", "read_done"]


async def test_every_ping_of_a_burst_is_answered_in_order(implementation: str) -> None:
    async with one_client(implementation) as (client, _):
        await client.send(*(frame(PING, str(number).encode()) for number in range(100)))
        assert [frame.payload for frame in await client.next_frames(100)] == [str(n).encode() for n in range(100)]


async def test_a_ping_of_ours_and_its_pong(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        peer.link.ping()
        assert await client.next_frame() == (PING, b"")
        await client.send(frame(PONG))
        await peer.until("read_done")
        assert peer.names() == ["opened", "seen", "read_done"]


# Goodbyes


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, *range(1007, 1015), 3000, 3999, 4000, 4999])
async def test_a_close_is_answered_in_kind(implementation: str, code: int) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(close(code, "tschüß".encode()))
        assert closing(await client.rest()) == code
        assert await peer.until("closed") == [code]
        assert peer.names() == ["opened", "closed"]


async def test_an_empty_close_is_answered_with_an_empty_one(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(frame(CLOSE))
        assert await client.rest() == [(CLOSE, b"")]
        assert await peer.until("closed") == [1005]


@pytest.mark.parametrize("code", [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535])
async def test_close_codes_that_are_not_for_the_wire_fail_with_1002(implementation: str, code: int) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(close(code))
        assert await failed_with(client, peer) == 1002


async def test_a_close_reason_must_be_utf8(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(close(1000, b"\xff"))
        assert await failed_with(client, peer) == 1007


async def test_a_close_may_stand_between_fragments(implementation: str) -> None:
    for goodbye, expected in ((close(4001), 4001), (frame(CLOSE), None)):
        async with one_client(implementation) as (client, peer):
            await client.send(frame(TEXT, b"never ", fin=False), goodbye)
            assert closing(await client.rest()) == expected
            assert await peer.until("closed") == [expected or 1005]
            assert "text" not in peer.names()


async def test_messages_before_a_close_are_answered_and_those_behind_it_ignored(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(text("before"), close(1000), text("behind"), frame(TEXT, b"bad", mask=None), close(1001))
        received = await client.rest()
        assert received[0] == (TEXT, b"before")
        assert closing(received) == 1000
        assert len(received) == 2
        assert await peer.until("closed") == [1000]
        assert peer.values("text") == [b"before"]


async def test_our_close_waits_for_the_answer(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        peer.link.close(4500, "server_shutdown")
        peer.link.close(1000)
        peer.link.write(text_frame(b"too late"))
        peer.link.ping()
        assert await client.next_frame() == (CLOSE, (4500).to_bytes(2, "big") + b"server_shutdown")
        await client.send(text("crossed"), frame(PING), close(4500))
        assert await client.rest() == []
        assert await peer.until("closed") == [4500]
        assert "text" not in peer.names()


async def test_a_client_that_does_not_answer_our_close_is_cut_off(implementation: str) -> None:
    async with one_client(implementation, limits=HASTY) as (client, peer):
        peer.link.close(1001)
        assert (await client.next_frame()).close_code == 1001
        assert await client.is_reset()
        assert await peer.until("closed") == [None]


async def test_a_client_that_breaks_the_rules_behind_our_close_is_not_told_again(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        peer.link.close(1001)
        await client.send(frame(TEXT, b"x" * 5000), text("y"))
        assert closing(await client.rest()) == 1001
        client.sock.close()
        assert await peer.until("closed") == [None]
        assert "too_big" not in peer.names()


async def test_a_close_reason_is_cut_between_characters(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        peer.link.close(1000, "ä" * 100)
        assert (await client.next_frame()).payload[2:].decode() == "ä" * 61


async def test_a_peer_may_close_while_it_is_told_of_a_message(implementation: str) -> None:
    peer = ScriptedPeer(echo=False, text=lambda _: peer.link.close(4000, "enough"))
    async with one_client(implementation, peer) as (client, _):
        await client.send(text("one"), text("two"), close(1000))
        assert closing(await client.rest()) == 4000
        assert await peer.until("closed") == [1000]
        assert peer.values("text") == [b"one"]


async def test_a_peer_may_abort_while_it_is_told_of_a_message(implementation: str) -> None:
    peer = ScriptedPeer(text=lambda _: peer.link.abort())
    async with one_client(implementation, peer) as (client, _):
        await client.send(text("one"), text("two"))
        assert await client.is_reset()
        assert await peer.until("closed") == [None]
        assert peer.values("text") == [b"one"]


# Connections that end without a goodbye


async def test_half_a_connection_is_none(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(text("last words"))
        client.half_close()
        assert await client.rest() == [(TEXT, b"last words")]
        assert await peer.until("closed") == [None]


async def test_a_client_that_vanishes_is_gone(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(frame(TEXT, b"x", length=100))  # in the middle of a frame
        client.vanish()
        assert await peer.until("closed") == [None]
        peer.link.write(text_frame(b"nobody listens"))
        peer.link.close(1000)
        peer.link.pause_reading()
        peer.link.abort()
        assert peer.link.buffered() == 0
        assert peer.names() == ["opened", "closed"]


async def test_half_a_connection_that_is_never_read_is_cut_off(implementation: str) -> None:
    async with one_client(implementation, limits=HASTY, tight=True) as (client, peer):
        fill(peer)
        client.half_close()
        assert await peer.until("closed") == [None]


# Back-pressure


def fill(peer: ScriptedPeer) -> None:
    """Write until the peer is paused; it is told within the write that goes over the mark."""
    while "pause_writing" not in peer.names():
        before = peer.link.buffered()
        peer.link.write(text_frame(b"x" * 10_000))
        assert before <= HIGH
    assert peer.link.buffered() > HIGH


async def test_a_client_that_does_not_read_pauses_its_peer_and_reading_resumes_it(implementation: str) -> None:
    async with one_client(implementation, tight=True) as (client, peer):
        for round_number in (1, 2):
            peer.calls.clear()
            fill(peer)
            assert peer.names() == ["pause_writing"]
            while "resume_writing" not in peer.names():
                assert await client.receive()
            assert peer.link.buffered() <= LOW
            assert peer.names() == ["pause_writing", "resume_writing"], round_number
        await client.send(text("still there"))
        while (await client.next_frame()).payload != b"still there":
            pass


async def test_an_abort_resets_and_leaves_nothing_behind(implementation: str) -> None:
    async with one_client(implementation, tight=True) as (client, peer):
        fill(peer)
        peer.link.abort()
        peer.link.abort()
        assert await peer.until("closed") == [None]
        assert await client.is_reset()
        assert len(client.data) < HIGH  # what was buffered was not sent first


async def test_a_close_to_a_client_that_does_not_read_is_cut_off(implementation: str) -> None:
    async with one_client(implementation, limits=HASTY, tight=True) as (client, peer):
        fill(peer)
        peer.link.close(4501, "slow_consumer")
        assert await peer.until("closed") == [None]
        assert await client.is_reset()


async def test_pings_of_a_client_that_does_not_read_do_not_pile_up(implementation: str) -> None:
    async with one_client(implementation, tight=True) as (client, peer):
        fill(peer)
        full = peer.link.buffered()
        await client.send(*(frame(PING, bytes(120) + number.to_bytes(4, "big")) for number in range(5000)), text("end"))
        await peer.until("text")
        assert peer.link.buffered() <= full + len(text_frame(b"end"))
        pongs = []
        while not pongs:
            pongs += [received for received in [await client.next_frame()] if received.opcode == PONG]
        assert int.from_bytes(pongs[0].payload[-4:], "big") == 4999  # only the last is owed


async def test_messages_wait_while_reading_is_paused(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        peer.link.pause_reading()
        peer.link.pause_reading()
        await client.send(text("wait"))
        await asyncio.sleep(0.05)
        assert peer.names() == ["opened"]
        peer.link.resume_reading()
        peer.link.resume_reading()
        assert await client.next_frame() == (TEXT, b"wait")


async def test_our_close_gets_its_answer_although_reading_was_paused(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        peer.link.pause_reading()
        await client.send(text("unwanted"))
        peer.link.close(1001)
        assert (await client.next_frame()).close_code == 1001
        await client.send(close(1001))
        assert await peer.until("closed") == [1001]
        assert "text" not in peer.names()


# Peers that fail


def explode(*_: object) -> None:
    raise RuntimeError("the peer is broken")


@pytest.mark.parametrize("where", ["opened", "seen", "text", "binary", "read_done"])
async def test_a_peer_that_raises_loses_its_connection_only(implementation: str, where: str) -> None:
    async with scripted_server(implementation, PATIENT) as server, open_client(server.port) as other:
        server.gate.decision = lambda _: server.gate.accept(ScriptedPeer(**{where: explode}))
        with capture_logs() as logs:
            async with raw_client(server.port) as client:
                assert (await client.request()).status == 101
                await client.send(text("bang"), frame(BINARY), text("again"))
                while (received := await client.next_frame()).opcode != CLOSE:
                    pass
                assert received.close_code == 1011
                await client.send(close(1011))
                assert await server.gate.peer.until("closed") == [1011]
        assert {entry["event"] for entry in logs} == {"websocket_peer_failed"}
        await other.send(text("still there"))
        assert await other.next_frame() == (TEXT, b"still there")


async def test_a_peer_that_raises_about_an_oversized_message_changes_nothing(implementation: str) -> None:
    async with one_client(implementation, ScriptedPeer(too_big=explode)) as (client, _):
        with capture_logs() as logs:
            await client.send(text("x" * 1001))
            assert closing(await client.rest()) in (1009, 1011)
        assert [entry["event"] for entry in logs] == ["websocket_peer_failed"]


@pytest.mark.parametrize("where", ["pause_writing", "resume_writing"])
async def test_a_peer_that_raises_about_its_buffer_is_closed(implementation: str, where: str) -> None:
    async with one_client(implementation, ScriptedPeer(**{where: explode}), tight=True) as (client, peer):
        with capture_logs() as logs:
            fill(peer)
            while (received := await client.next_frame()).opcode != CLOSE:
                pass
            assert received.close_code == 1011
            await client.send(close(1011))
            assert await peer.until("closed") == [1011]
        assert [entry["event"] for entry in logs] == ["websocket_peer_failed"]


async def test_a_peer_that_raises_at_its_end_is_only_logged(implementation: str) -> None:
    async with one_client(implementation, ScriptedPeer(closed=explode)) as (client, peer):
        with capture_logs() as logs:
            await client.send(close(1000))
            assert closing(await client.rest()) == 1000
            await peer.until("closed")
        assert [entry["event"] for entry in logs] == ["websocket_peer_failed"]


# The server around it


async def test_uvicorn_stops_without_waiting_and_lets_goodbyes_be_said(implementation: str) -> None:
    gate = ScriptedGate()

    async def app(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        assert (await receive())["type"] == "lifespan.startup"
        await send({"type": "lifespan.startup.complete"})
        assert (await receive())["type"] == "lifespan.shutdown"
        gate.peer.link.close(4500, "server_shutdown")
        await gate.peer.until("closed")
        await send({"type": "lifespan.shutdown.complete"})

    server = make_server(implementation, gate, lifespan="on")
    server.config.app = app
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    with listen() as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with open_client(listener.getsockname()[1]) as client:
            await gate.peer.until("opened")
            server.should_exit = True
            assert (await client.next_frame()).close_code == 4500
            await client.send(close(4500))
            async with asyncio.timeout(PATIENCE_S):
                await serving
            assert await client.rest() == []


# An independent client


async def test_the_websockets_client_agrees(implementation: str) -> None:
    async with scripted_server(implementation) as server:
        server.gate.decision = lambda request: server.gate.accept(subprotocol=request.subprotocols[-1])
        async with connect(f"ws://127.0.0.1:{server.port}/ws?x=1", subprotocols=["a", "b"]) as client:  # type: ignore[list-item]
            assert client.subprotocol == "b"
            for message in ("", "héllo", "x" * 65_000):
                await client.send(message)
                assert await client.recv() == message
            await client.send(["frag", "men", "ted"])
            assert await client.recv() == "fragmented"
            await (await client.ping(b"payload"))
            await client.close(4321, "bye")
            assert client.close_code == 4321
        assert await server.gate.peer.until("closed") == [4321]


async def test_the_websockets_client_understands_our_goodbye(implementation: str) -> None:
    async with scripted_server(implementation) as server:
        async with connect(f"ws://127.0.0.1:{server.port}/ws") as client:
            (await server.gate.peer.until("opened"),)
            server.gate.peer.link.close(4001, "kicked")
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "kicked")
        assert await server.gate.peer.until("closed") == [4001]


async def test_many_clients_at_once(implementation: str) -> None:
    async def talk(server: ScriptedServer, number: int) -> None:
        async with connect(f"ws://127.0.0.1:{server.port}/ws") as client:
            for turn in range(20):
                await client.send(f"{number} {turn}")
                assert await client.recv() == f"{number} {turn}"

    async with scripted_server(implementation) as server:
        server.gate.decision = lambda _: in_a_while(server.gate.accept())
        await asyncio.gather(*(talk(server, number) for number in range(50)))
        for peer in server.gate.peers:
            assert await peer.until("closed") == [1000]


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


async def open_without_sockets(implementation: str, limits: Limits) -> tuple[FakeTransport, ScriptedPeer]:
    gate = ScriptedGate()
    protocol = cast(Any, make_protocol(implementation, gate, limits))(None, ServerState(), {})
    transport = FakeTransport()
    protocol.connection_made(transport)
    protocol.data_received(request_head("/ws", plain_headers()))
    transport.set_protocol(protocol)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
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
    transport, peer = await open_without_sockets(implementation, Limits(message_bytes=300))
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
    assert len(peer.values("read_done")) == len(peer.values("seen"))
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
    transport, peer = await open_without_sockets("picows", Limits(message_bytes=65536))
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
    transport, peer = await open_without_sockets("picows", Limits(message_bytes=65536))
    flood = frame(TEXT, b"x" * 65536) + text("y") * 100_000
    for _ in range(3):
        transport.feed(flood)  # as much as a read takes
    room = 0
    for size in (10, 60_000):  # behind a part of a message, too
        transport.feed(frame(TEXT, b"z" * 65536)[:size])
        room = max(room, len(transport.protocol.get_buffer(-1)) + size)
    assert room < 256 * 1024
    assert len(peer.values("text")) == 3 * 100_001
