"""Frames that do not even keep to the dialect: an error each time, closed at the fourth within ten seconds."""

from __future__ import annotations

import json

import pytest

from harness.chat import Client, meet, world
from harness.server_process import ServerProcess

DO_NOT_RECONNECT = range(4000, 4500)

VIOLATIONS: list[tuple[str | bytes, str]] = [
    ("", "bad_json"),
    ("nonsense", "bad_json"),
    ("{", "bad_json"),
    ("[]", "bad_json"),
    ('"AUTH"', "bad_json"),
    ("null", "bad_json"),
    ("17", "bad_json"),
    ('{"type":"PING"} {"type":"PING"}', "bad_json"),
    ("[" * 60_000, "bad_json"),
    ('{"a":' * 10_000 + "1" + "}" * 10_000, "bad_json"),
    ('{"type":"PING","x":"\\ud8"}', "bad_json"),
    (b"binary", "bad_json"),
    (b'{"type":"PING"}', "bad_json"),
    ("{}", "missing_type"),
    ('{"type":null}', "missing_type"),
    ('{"type":""}', "missing_type"),
    ('{"type":5}', "missing_type"),
    ('{"body":"x"}', "missing_type"),
    ('{"type":"NONSENSE"}', "unknown_type"),
    ('{"type":"ping"}', "unknown_type"),
    ('{"type":"AUTH_OK"}', "unknown_type"),
    ('{"type":"MESSAGE_REVOKED"}', "unknown_type"),
]


@pytest.mark.parametrize(("data", "reason"), VIOLATIONS, ids=lambda value: repr(value)[:40])
async def test_each_is_told_by_name_and_the_connection_goes_on(
    server: ServerProcess, data: str | bytes, reason: str
) -> None:
    async with meet(server, "ann") as (ann,):
        await ann.send_raw(data)
        await ann.expect_error(reason)
        await ann.ask({"type": "PING"}, "PONG")


async def test_what_can_be_read_of_it_is_echoed(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        await ann.send({"type": "NONSENSE", "clientMsgId": "c1", "serverMsgId": 7})
        await ann.expect_error("unknown_type", clientMsgId="c1", serverMsgId="7")
        await ann.send({"clientMsgId": "c2"})
        await ann.expect_error("missing_type", clientMsgId="c2")


async def test_half_an_emoji_is_refused_and_no_violation_however_often_it_is_tried(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        cut = ann.message(ben, "\ud83d", clientMsgId="cut")
        for _ in range(6):
            await ann.send_raw(json.dumps(cut))
            await ann.expect_error("bad_content", clientMsgId="cut")
        await ann.say(ben, "\U0001f600")
        await ben.expect("SINGLE_CHAT", body="\U0001f600")


async def close_by_violations(client: Client) -> None:
    for data, reason in [("nonsense", "bad_json"), ("{}", "missing_type"), ('{"type":"X"}', "unknown_type")]:
        await client.send_raw(data)
        await client.expect_error(reason)
    await client.ask({"type": "PING"}, "PONG")
    await client.send_raw(b"binary")
    await client.expect_error("bad_json")
    assert await client.expect_close() in DO_NOT_RECONNECT


async def test_the_fourth_of_any_kind_closes(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        await close_by_violations(ann)


async def test_the_fourth_closes_also_before_signing_in(server: ServerProcess) -> None:
    async with world(server) as here:
        await close_by_violations(await (await here.person("ann")).open())


async def test_requests_that_are_refused_are_no_violations(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for _ in range(20):
            await ann.send({"type": "SINGLE_CHAT", "clientMsgId": "c", "to": 5})
            await ann.expect_error("bad_receiver")
            await ann.send({"type": "CALL_INVITE"})
            await ann.expect("CALL_ERROR", reason="missing_receiver")
        await ann.say(ben)


def padded(size: int) -> str:
    frame = {"type": "PING", "pad": ""}
    return json.dumps(frame | {"pad": "x" * (size - len(json.dumps(frame)))})


async def test_a_frame_of_sixty_four_kibibytes_is_taken_and_a_larger_one_ends_the_connection(
    server: ServerProcess,
) -> None:
    async with meet(server, "ann") as (ann,):
        await ann.send_raw(padded(64 * 1024))
        await ann.expect("PONG")
        await ann.send_raw(padded(64 * 1024 + 1))
        await ann.expect_error("body_too_long")
        assert await ann.expect_close() == 1009


async def test_a_message_in_fragments_is_one_frame(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        frame = ann.message(ben, "in pieces ✓")
        ann.replica.sends(frame)
        text = json.dumps(frame, ensure_ascii=False)
        await ann.socket.send([text[:5], text[5:30], text[30:]])
        assert (await ben.expect("SINGLE_CHAT"))["body"] == "in pieces ✓"


async def test_too_many_fragments_together_end_the_connection(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        text = padded(100_000)
        await ann.socket.send([text[start : start + 1000] for start in range(0, len(text), 1000)])
        await ann.expect_error("body_too_long")
        assert await ann.expect_close() == 1009


async def test_websocket_pings_are_answered(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        await (await ann.socket.ping(b"are you there"))
