"""Calls over two instances, of which one is killed while a call rings or goes on; connections that take no frames."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.test_calls import ANSWER, OFFER, invitation, record, ring, talk
from harness.chat import Client, Person, World, fetch_messages, meet, world
from harness.cluster import Cluster, cluster
from harness.engines import SERVER_ENGINES
from harness.server_process import ServerProcess
from harness.waiting import until

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module", params=list(SERVER_ENGINES))
def two(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster(request.param, 2, bus__detect_s=2) as running:
        yield running


def moved(person: Person, there: World) -> Person:
    """The same user and session, at another instance."""
    same = Person(there, person.user_id)
    same.tokens = person.tokens
    return same


async def assert_one_record(person: Person, call_id: str, outcome: str) -> None:
    (call,) = (await person.get("/call/list"))["calls"]
    assert (call["call_id"], call["outcome"]) == (call_id, outcome)
    written = await fetch_messages(person, call["conversation_id"])
    assert [(one["msg_type"], one["content"]["outcome"]) for one in written] == [(120, outcome)]


async def test_a_call_goes_on_when_the_instance_of_its_caller_is_killed_while_it_rings(two: Cluster) -> None:
    async with world(two[0], check_pushes=False) as first, world(two[1], check_pushes=False) as second:
        (ann,), (ben,) = await first.people("ann"), await second.people("ben")
        caller, callee = await ann.connect(), await ben.connect()
        call_id = await ring(caller, callee)
        two[0].kill()
        try:
            await callee.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": ANSWER})
            await callee.send({"type": "CALL_ICE", "callId": call_id, "candidate": "candidate:1"})

            async def is_answered() -> bool:
                return bool((await ben.get("/call/list"))["calls"][0]["answered_at"])

            await until(is_answered)  # while the caller is away
            caller = await moved(ann, second).connect()
            await caller.expect("CALL_ACCEPT", callId=call_id, sdp=ANSWER)
            await caller.send({"type": "CALL_END", "callId": call_id})
            assert (await callee.expect("CALL_END", callId=call_id))["reason"] == "ended"
            await record(callee, call_id)
            await assert_one_record(ben, call_id, "completed")
        finally:
            two[0].start()


async def test_a_call_goes_on_when_the_instance_of_its_caller_is_killed_while_they_talk(two: Cluster) -> None:
    async with world(two[0], check_pushes=False) as first, world(two[1], check_pushes=False) as second:
        (ann,), (ben,) = await first.people("ann"), await second.people("ben")
        caller, callee = await ann.connect(), await ben.connect()
        call_id = await talk(caller, callee)
        two[0].kill()
        try:
            caller = await moved(ann, second).connect()
            for side, other in ((caller, callee), (callee, caller)):
                await side.send({"type": "CALL_ICE", "callId": call_id, "candidate": f"candidate:{side.user_id}"})
                await other.expect("CALL_ICE", callId=call_id, candidate=f"candidate:{side.user_id}")
            assert callee.seen("CALL_END") == []
            await callee.send({"type": "CALL_END", "callId": call_id})
            await caller.expect("CALL_END", callId=call_id)
            await record(caller, call_id)
            await assert_one_record(ben, call_id, "completed")
        finally:
            two[0].start()


@pytest.mark.parametrize("moment", ["ringing", "talking"])
async def test_a_caller_whose_instance_was_killed_and_who_stays_away_ends_the_call(moment: str) -> None:
    engine = "mariadb" if moment == "ringing" else "postgresql"
    with cluster(engine, 2, bus__detect_s=2, calls__gone_s=2, calls__ring_s=600) as two:
        async with world(two[0], check_pushes=False) as first, world(two[1], check_pushes=False) as second:
            (ann,), (ben,) = await first.people("ann"), await second.people("ben")
            caller, callee = await ann.connect(), await ben.connect()
            call_id = await (ring if moment == "ringing" else talk)(caller, callee)
            two[0].kill()
            ended = await callee.expect("CALL_END", callId=call_id)
            assert ended["reason"] == "connection_lost"
            await record(callee, call_id)
            await assert_one_record(ben, call_id, "canceled" if moment == "ringing" else "failed")
            await callee.send(invitation(ann))  # both are free again
            await callee.expect("CALL_ERROR", reason="callee_offline")


@pytest.fixture(scope="module")
def narrow() -> Iterator[ServerProcess]:
    """A connection that does not read is soon full, and kept for long all the same."""
    with ServerProcess(
        log_level="debug",
        backpressure__high_water_bytes=65_536,
        backpressure__low_water_bytes=32_768,
        backpressure__close_after_ms=600_000,
    ) as running:
        yield running


async def fill(writer: Client, reader: Client) -> None:
    """Until pushes to a connection that does not read are dropped."""

    async def is_full() -> bool:
        await writer.say(reader, {"fill": "x" * 15_000}, msgType=6)
        lines = (await writer.me.world.http.get("/metrics")).text.splitlines()
        dropped = [line for line in lines if line.startswith('nexo_pushes_dropped_total{reason="slow_consumer"}')]
        return float(dropped[0].rpartition(" ")[2]) > 0

    await until(is_full)


async def test_a_connection_that_cannot_take_a_frame_of_a_call_is_closed(narrow: ServerProcess) -> None:
    async with meet(narrow, "ann", "ben", check_pushes=False) as (ann, ben):
        ben.socket.transport.pause_reading()
        await fill(ann, ben)
        frame = invitation(ben)
        call_id = (await ann.ask(frame, "CALL_INVITE_OK"))["callId"]
        await until(lambda: "call_frame_not_taken" in narrow.output)
        ben.socket.transport.resume_reading()
        assert await ben.expect_close() in (1006, *range(4500, 5000))
        assert ben.seen("CALL_INVITE") == []
        back = await ben.me.connect()
        await back.expect("CALL_INVITE", callId=call_id, sdp=OFFER)
