"""How connections end, fill up and fail, for every WebSocket implementation behind a real uvicorn."""

from __future__ import annotations

import contextlib

import pytest
from structlog.testing import capture_logs

from harness.waiting import nothing_for
from harness.ws_client import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Received,
    close,
    frame,
    open_client,
    raw_client,
    text,
)
from harness.ws_server import (
    HASTY,
    HIGH,
    LOW,
    PATIENT,
    ScriptedPeer,
    closing,
    failed_with,
    one_client,
    scripted_server,
)
from nexo.transport.implementations import MAKERS
from nexo.wire.framing import text_frame


@pytest.fixture(scope="module", params=MAKERS)
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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


async def test_a_client_that_floods_behind_our_close_is_cut_off_before_the_time(implementation: str) -> None:
    async with one_client(implementation, limits=PATIENT) as (client, peer):
        peer.link.close(4500)
        with contextlib.suppress(OSError):
            for _ in range(100):
                await client.send(frame(TEXT, b"x" * 900) * 40)
        assert await peer.until("closed") == [None]
        assert "text" not in peer.names()


async def test_control_frames_and_fragments_are_counted_apart_from_messages(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        await client.send(text("whole"), frame(PING), frame(PONG), frame(TEXT, b"in ", fin=False))
        await client.send(frame(CONTINUATION, b"parts"), text("last"))
        await peer.until("text", 3)
        assert (peer.link.frames_in, peer.link.extra_frames) == (3, 4)


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
        pongs: list[Received] = []
        while not pongs:
            pongs += [received for received in [await client.next_frame()] if received.opcode == PONG]
        assert int.from_bytes(pongs[0].payload[-4:], "big") == 4999  # only the last is owed


async def test_messages_wait_while_reading_is_paused(implementation: str) -> None:
    async with one_client(implementation) as (client, peer):
        peer.link.pause_reading()
        peer.link.pause_reading()
        await client.send(text("wait"))
        await nothing_for(0.05)
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


def broken_peer(where: str) -> ScriptedPeer:
    peer = ScriptedPeer()
    peer.scripts[where] = explode
    return peer


@pytest.mark.parametrize("where", ["opened", "text", "binary", "read_done"])
async def test_a_peer_that_raises_loses_its_connection_only(implementation: str, where: str) -> None:
    async with scripted_server(implementation, PATIENT) as server, open_client(server.port) as other:
        server.gate.decision = lambda _: server.gate.accept(broken_peer(where))
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
    async with one_client(implementation, broken_peer("too_big")) as (client, _):
        with capture_logs() as logs:
            await client.send(text("x" * 1001))
            assert closing(await client.rest()) in (1009, 1011)
        assert [entry["event"] for entry in logs] == ["websocket_peer_failed"]


@pytest.mark.parametrize("where", ["pause_writing", "resume_writing"])
async def test_a_peer_that_raises_about_its_buffer_is_closed(implementation: str, where: str) -> None:
    async with one_client(implementation, broken_peer(where), tight=True) as (client, peer):
        with capture_logs() as logs:
            fill(peer)
            while (received := await client.next_frame()).opcode != CLOSE:
                pass
            assert received.close_code == 1011
            await client.send(close(1011))
            assert await peer.until("closed") == [1011]
        assert [entry["event"] for entry in logs] == ["websocket_peer_failed"]


async def test_a_peer_that_raises_at_its_end_is_only_logged(implementation: str) -> None:
    async with one_client(implementation, broken_peer("closed")) as (client, peer):
        with capture_logs() as logs:
            await client.send(close(1000))
            assert closing(await client.rest()) == 1000
            await peer.until("closed")
        assert [entry["event"] for entry in logs] == ["websocket_peer_failed"]
