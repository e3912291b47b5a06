"""How calls end by themselves: no answer, a participant who is gone, a server that is killed; and what no log has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.test_calls import ANSWER, OFFER, assert_unread, invitation, record, ring, talk
from harness.chat import meet, world
from harness.server_process import ServerProcess


@pytest.fixture(scope="module")
def impatient() -> Iterator[ServerProcess]:
    with ServerProcess(log_level="debug", calls__ring_s=3, calls__gone_s=1) as running:
        yield running


async def test_a_call_that_nobody_answers_times_out_on_both_sides(impatient: ServerProcess) -> None:
    async with meet(impatient, "ann", "ben") as (ann, ben):
        call_id = await ring(ann, ben)
        for side in (ann, ben):
            assert await side.expect("CALL_TIMEOUT") == {"type": "CALL_TIMEOUT", "callId": call_id}
            written = await record(side, call_id)
            assert written["body"]["outcome"] == "missed"
        await assert_unread(ben.me, written["conversationId"], 1)
        await assert_unread(ann.me, written["conversationId"], 0)
        assert [one["outcome"] for one in (await ben.me.get("/call/list"))["calls"]] == ["missed"]


async def test_a_participant_who_is_gone_ends_the_call(impatient: ServerProcess) -> None:
    async with world(impatient, check_pushes=False) as here:
        for outcome in ("failed", "canceled"):
            ann, ben = await here.people("ann", "ben")
            caller, callee = await ann.connect(), await ben.connect()
            call_id = await (talk(caller, callee) if outcome == "failed" else ring(caller, callee))
            await caller.close()
            assert (await callee.expect("CALL_END", callId=call_id))["reason"] == "connection_lost"
            assert (await record(callee, call_id))["body"]["outcome"] == outcome


async def test_a_call_survives_a_short_break_of_the_connection(impatient: ServerProcess) -> None:
    async with world(impatient, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        tokens = await ann.log_in(5, "phone")
        caller, callee = await ann.connect(tokens), await ben.connect()
        call_id = await talk(caller, callee)
        again = await ann.connect(tokens)
        await caller.close()
        await callee.send({"type": "CALL_ICE", "callId": call_id, "candidate": "candidate:9"})
        await again.expect("CALL_ICE", callId=call_id)
        await again.send({"type": "CALL_END", "callId": call_id})
        await record(callee, call_id)


async def test_a_call_survives_the_server_and_is_recorded_once() -> None:
    with ServerProcess(calls__ring_s=600, calls__gone_s=2) as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            caller, callee = await ann.connect(), await ben.connect()
            call_id = await ring(caller, callee)
            server.kill()
            server.start()
            callee = await ben.connect()
            await callee.expect("CALL_INVITE", callId=call_id, sdp=OFFER)
            ended = await callee.expect("CALL_END", callId=call_id)  # the caller stays away
            assert ended["reason"] == "connection_lost"
            await record(callee, call_id)
            (call,) = (await ben.get("/call/list"))["calls"]
            assert (call["call_id"], call["outcome"]) == (call_id, "canceled")
            history = await ben.get("/msg/history", conversation_id=call["conversation_id"])
            assert [message["msg_type"] for message in history["messages"]] == [120]


async def test_no_description_or_candidate_is_in_a_log(impatient: ServerProcess) -> None:
    async with meet(impatient, "ann", "ben") as (ann, ben):
        call_id = await ring(ann, ben, sdp="v=0 secret-offer")
        await ann.send({"type": "CALL_ICE", "callId": call_id, "candidate": "secret-candidate"})
        await ben.expect("CALL_ICE")
        await ben.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": "v=0 secret-answer"})
        await ann.expect("CALL_ACCEPT")
        await ann.send({"type": "CALL_ICE", "callId": call_id, "candidate": {"candidate": 5}, "sdpMid": []})
        await ann.expect("CALL_ERROR", reason="bad_candidate")
        await ann.send({"type": "CALL_END", "callId": call_id})
        await record(ben, call_id)
        assert not [line for line in impatient.log.read_text().splitlines() if "secret-" in line or ANSWER in line]


async def test_calls_can_be_switched_off() -> None:
    with ServerProcess(calls__enabled=False) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            for frame in (invitation(ben), {"type": "CALL_END"}):
                await ann.send(frame)
                await ann.expect_error("not_implemented")
