"""RFC 6455's frames and messages, for every WebSocket implementation behind a real uvicorn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from harness.ws_client import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    frame,
    parse_frames,
    text,
)
from harness.ws_server import (
    ScriptedPeer,
    closing,
    failed_with,
    one_client,
)
from nexo.transport.implementations import MAKERS
from nexo.transport.websocket import SocketLimits
from nexo.wire.framing import text_frame


@pytest.fixture(scope="module", params=MAKERS)
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# Messages


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 1000, 65535, 65536, 200_000])
async def test_messages_of_every_length_encoding_come_back(implementation: str, size: int) -> None:
    message = bytes(32 + number % 90 for number in range(size))
    async with one_client(implementation, limits=SocketLimits(message_bytes=max(size, 125))) as (client, peer):
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


async def test_binary_messages_are_handed_over_whole(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(
            frame(BINARY, b"\xff"), frame(BINARY, b"\xff", fin=False), frame(CONTINUATION, b"\xfe"), text("on")
        )
        assert await client.next_frame() == (TEXT, b"on")
        assert peer.names() == ["opened", "binary", "binary", "text", "read_done"]
        assert peer.values("binary") == [b"\xff", b"\xff\xfe"]


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
        assert peer.names() == ["opened", *["text"] * 100, "read_done"]


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
        assert peer.names() == ["opened", "too_big", "read_done", "closed"]


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
        assert peer.names() == ["opened", "read_done"]


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
        assert peer.names() == ["opened", "read_done"]
