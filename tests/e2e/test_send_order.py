"""What one connection sends to one conversation stays in its order, also around refusals and retries (SPEC §4)."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator

import pytest

from harness.chat import Client, fetch_messages, meet
from harness.replica import Frame
from harness.server_process import ServerProcess
from harness.waiting import time_passes

SHORT_MS = 1500  # a deadline for sends that is soon over, and that a busy machine keeps while nothing hangs


def answers(client: Client, frames: list[Frame]) -> list[str]:
    """The clientMsgIds of these sends in the order in which they were answered."""
    wanted = {frame["clientMsgId"] for frame in frames}
    return [frame["clientMsgId"] for frame in client.frames if frame.get("clientMsgId") in wanted]


async def answer(client: Client, frame: Frame) -> Frame:
    return await client.expect(where=lambda got: got.get("clientMsgId") == frame["clientMsgId"])


async def test_pipelined_sends_are_stored_and_answered_in_their_order(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        targets = [ben.user_id, cid.user_id, group]
        frames = {target: [ann.message(target, f"{i}") for i in range(80)] for target in targets}  # 240 in flight
        mixed = [frame for row in zip(*frames.values(), strict=True) for frame in row]
        await ann.send_at_once(*mixed)
        for frame in mixed:
            await answer(ann, frame)
        for target, sent in frames.items():
            assert answers(ann, sent) == [frame["clientMsgId"] for frame in sent]
            acks = [ann.seen("ACK", clientMsgId=frame["clientMsgId"])[0] for frame in sent]
            first = 2 if target == group else 1
            assert [ack["msgSeq"] for ack in acks] == list(range(first, first + 80))
        for i in range(80):
            assert (await ben.expect("SINGLE_CHAT"))["body"] == str(i)
            assert (await ben.expect("GROUP_CHAT"))["body"] == str(i)


@pytest.mark.parametrize("refused", [{"body": 5}, {"body": "x" * 5000}, {"replyToServerMsgId": "1"}, {"msgType": 77}])
async def test_a_refusal_in_the_middle_is_answered_in_its_turn(server: ServerProcess, refused: Frame) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        frames = [ann.message(ben, "before"), ann.message(ben, "bad") | refused, ann.message(ben, "after")]
        await ann.send_at_once(*frames)
        kinds = [(await answer(ann, frame))["type"] for frame in frames]
        assert kinds == ["ACK", "ERROR", "ACK"]
        assert answers(ann, frames) == [frame["clientMsgId"] for frame in frames]


async def test_the_same_send_twice_in_one_write_is_one_message_with_two_answers(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        frame = ann.message(ben, "twice")
        await ann.send_at_once(frame, frame)
        first, second = [await answer(ann, frame) for _ in range(2)]
        assert first == second
        assert (await ann.say(ben, "next"))["msgSeq"] == 2


@pytest.fixture(scope="module")
def slow_senders() -> Iterator[ServerProcess]:
    """Three sends at once, then five a second."""
    with ServerProcess(limits__sends_per_s=5, limits__sends_burst=3) as running:
        yield running


async def test_after_a_refusal_for_speed_later_sends_wait_for_the_refused_one(slow_senders: ServerProcess) -> None:
    async with meet(slow_senders, "ann", "ben") as (ann, ben):
        frames = [ann.message(ben, f"{i}") for i in range(6)]
        await ann.send_at_once(*frames)
        outcomes = [await answer(ann, frame) for frame in frames]
        assert [got["type"] for got in outcomes] == ["ACK"] * 3 + ["ERROR"] * 3
        assert answers(ann, frames) == [frame["clientMsgId"] for frame in frames]
        for refused in outcomes[3:]:
            assert (refused["reason"], 0 < refused["retryAfterMs"] <= 400) == ("too_many_requests", True)
        await time_passes(0.5)  # there are tokens again
        await ann.send(frames[4])
        assert (await answer(ann, frames[4]))["reason"] == "too_many_requests"
        for frame in frames[3:]:
            await ann.send(frame)
            while (await answer(ann, frame))["type"] == "ERROR":
                await time_passes(0.25)
                await ann.send(frame)
        texts = [m["content"] for m in await fetch_messages(ben.me, outcomes[0]["conversationId"])]
        assert texts == ["0", "1", "2", "3", "4", "5"]


async def test_only_the_refused_conversation_and_connection_wait(slow_senders: ServerProcess) -> None:
    async with meet(slow_senders, "ann", "ben", "cid") as (ann, ben, cid):
        frames = [ann.message(ben, f"{i}") for i in range(4)]
        await ann.send_at_once(*frames)
        assert (await answer(ann, frames[3]))["type"] == "ERROR"
        other = await ann.me.connect()
        await time_passes(0.7)
        await ann.say(cid, "another conversation")
        await other.say(ben, "another connection")
        held = ann.message(ben, "held")
        await ann.send(held)
        assert (await answer(ann, held))["type"] == "ERROR"


async def test_a_refused_send_that_never_comes_back_is_waited_for_five_seconds(slow_senders: ServerProcess) -> None:
    async with meet(slow_senders, "ann", "ben") as (ann, ben):
        frames = [ann.message(ben, f"{i}") for i in range(4)]
        started = time.monotonic()
        await ann.send_at_once(*frames)
        assert (await answer(ann, frames[3]))["type"] == "ERROR"
        later = ann.message(ben, "later")
        while True:
            await ann.send(later)
            if (await answer(ann, later))["type"] == "ACK":
                break
            await time_passes(0.3)
        assert time.monotonic() - started > 4.9


async def test_a_refusal_for_good_holds_nothing_up(slow_senders: ServerProcess) -> None:
    async with meet(slow_senders, "ann", "ben") as (ann, ben):
        await ben.me.post("/user/block", user_id=ann.user_id)
        await ann.send(frame := ann.message(ben, "blocked"))
        assert (await answer(ann, frame))["reason"] == "blocked"
        await ben.me.post("/user/unblock", user_id=ann.user_id)
        await ann.say(ben, "not blocked")


async def test_only_so_many_sends_may_wait_for_their_answer() -> None:
    with ServerProcess(limits__inflight_sends=5) as server:
        async with meet(server, "ann", "ben") as (ann, ben):
            frames = [ann.message(ben, f"{i}") for i in range(20)]
            await ann.send_at_once(*frames)
            outcomes = [await answer(ann, frame) for frame in frames]
            assert [got["type"] for got in outcomes] == ["ACK"] * 5 + ["ERROR"] * 15
            assert {got["reason"] for got in outcomes[5:]} == {"too_many_requests"}
            assert answers(ann, frames) == [frame["clientMsgId"] for frame in frames]
            for frame in frames[5:]:
                await ann.send(frame)
                assert (await answer(ann, frame))["type"] == "ACK"
            texts = [m["content"] for m in await fetch_messages(ben.me, outcomes[0]["conversationId"])]
            assert texts == [str(i) for i in range(20)]


@contextlib.contextmanager
def write_lock(server: ServerProcess) -> Iterator[None]:
    """Somebody else is writing to the database file, and does not finish."""
    other = sqlite3.connect(server.database, timeout=30, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
    finally:
        if other.in_transaction:
            other.execute("ROLLBACK")
        other.close()


async def test_a_database_that_hangs_shows_as_server_busy_and_keeps_the_order() -> None:
    with ServerProcess(send__deadline_ms=SHORT_MS) as server:
        async with meet(server, "ann", "ben") as (ann, ben):
            name = (await ann.say(ben, "0"))["conversationId"]
            frames = [ann.message(ben, f"{i}") for i in range(1, 6)]
            with write_lock(server):
                started = time.monotonic()
                await ann.send_at_once(*frames[:3])
                outcomes = [await answer(ann, frame) for frame in frames[:3]]
                assert time.monotonic() - started < 10
            assert [(got["type"], got["reason"]) for got in outcomes] == [("ERROR", "server_busy")] * 3
            assert all(got["retryAfterMs"] > 0 for got in outcomes)
            await ann.send(frames[3])  # the database is back, but the first of them is not
            assert (await answer(ann, frames[3]))["reason"] == "server_busy"
            for frame in frames:
                await ann.send(frame)
                assert (await answer(ann, frame))["type"] == "ACK"
            texts = [m["content"] for m in await fetch_messages(ben.me, name)]
            assert texts == ["0", "1", "2", "3", "4", "5"]
        server.check()


async def test_what_was_refused_as_busy_was_surely_not_saved() -> None:
    with ServerProcess(send__deadline_ms=SHORT_MS) as server:
        async with meet(server, "ann", "ben") as (ann, ben):
            name = (await ann.say(ben, "0"))["conversationId"]
            with write_lock(server):
                await ann.send(frame := ann.message(ben, "never"))
                assert (await answer(ann, frame))["reason"] == "server_busy"
            await ann.settle()
            assert [m["content"] for m in await fetch_messages(ben.me, name)] == ["0"]
            await ben.expect_nothing("SINGLE_CHAT", body="never")
