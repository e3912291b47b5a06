"""Two-phase acknowledgement while Redis is killed, emptied or gone. One server, SQLite, a Redis of its own."""

from __future__ import annotations

import asyncio
import json

import pytest

from harness.chat import meet
from harness.servers import Redis
from harness.two_phase import LONG, QUICK, backlog, metric, streams, two_phase
from harness.two_phase_talk import talking
from harness.waiting import until

pytestmark = pytest.mark.servers
ROUNDS = 10 if LONG else 1

both_modes = pytest.mark.parametrize("deliver_before_saved", [False, True], ids=["saved_first", "delivered_first"])


@both_modes
async def test_a_redis_that_is_killed_and_comes_back_with_its_data_loses_nothing(deliver_before_saved: bool) -> None:
    with (
        Redis() as redis,
        two_phase(redis=redis, deliver_before_saved=deliver_before_saved, **QUICK) as server,
    ):
        async with talking(server) as talk:
            for _ in range(ROUNDS):
                await talk.until_more_accepted()
                await asyncio.to_thread(redis.kill)
                await talk.until_more()  # Redis is not needed for that
                await asyncio.to_thread(redis.start)
                await talk.until_more_accepted()
        assert backlog(server) == {"accepted": 0, "to_save": 0, "dead": 0}


@both_modes
async def test_a_redis_that_comes_back_empty_loses_nothing_that_a_client_still_has(deliver_before_saved: bool) -> None:
    with (
        Redis("appendonly no") as redis,
        two_phase(redis=redis, deliver_before_saved=deliver_before_saved, **QUICK) as server,
    ):
        async with talking(server) as talk:
            for _ in range(ROUNDS):
                await talk.until_more_accepted()
                await asyncio.to_thread(redis.kill)
                await asyncio.to_thread(redis.start)
                await talk.until_more_accepted()
            for talker in talk.talkers:  # everybody loses the connection, and what the server knew of it
                talker.cut()
            await asyncio.to_thread(redis.flush)
            await talk.until_more()


@both_modes
async def test_a_redis_that_is_emptied_under_traffic_changes_nothing(deliver_before_saved: bool) -> None:
    with (
        Redis("appendonly no") as redis,
        two_phase(redis=redis, deliver_before_saved=deliver_before_saved, **QUICK) as server,
    ):
        async with talking(server) as talk:
            for _ in range(10 if LONG else 3):
                await talk.until_more(20)
                await asyncio.to_thread(redis.flush)
        assert backlog(server) == {"accepted": 0, "to_save": 0, "dead": 0}


async def test_what_was_accepted_is_accepted_again_in_order_after_everything_was_lost() -> None:
    """Nobody saves; Redis is emptied; the server still knows, and puts the next message behind the earlier ones."""
    with (
        Redis("appendonly no") as redis,
        two_phase(redis=redis, two_phase__workers=False, **QUICK) as server,
    ):
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            frames = [ann.message(ben, str(i)) for i in range(5)]
            await ann.send(*frames[:4])
            await wait_for_early(ann, 4)
            redis.flush()
            assert backlog(server)["accepted"] == 0
            await ann.send(frames[4])
            await wait_for_early(ann, 5)
            assert metric(server, "nexo_accepts_total", result="restored") == 4
            assert backlog(server)["accepted"] == 5
            server.kill()
            server.settings["two_phase__workers"] = True
            server.start()
            again = await ben.me.connect()
            found: list[str] = []
            while len(found) < 5:
                found = [frame["body"] for frame in await again.pull_all(f"si_{ann.user_id}:{ben.user_id}")]
            assert found == ["0", "1", "2", "3", "4"]


async def test_what_redis_lost_and_nobody_asks_for_is_saved_all_the_same() -> None:
    with (
        Redis("appendonly no") as redis,
        two_phase(redis=redis, two_phase__workers=False, **QUICK) as server,
    ):
        async with meet(server, "ann", "ben") as (ann, ben):
            await ann.send(ann.message(ben, "hello"))
            await wait_for_early(ann, 1)
            redis.kill()
            saved = await ann.expect("ACK", ackType="saved")  # after a while, without anybody sending more
            got = await ben.expect("SINGLE_CHAT", body="hello")
            assert saved["serverMsgId"] == ann.early[0]["serverMsgId"] == got["serverMsgId"]


async def wait_for_early(client: object, count: int) -> None:
    await until(lambda: len(client.early) >= count)  # type: ignore[attr-defined]


async def test_without_redis_sends_are_refused_when_that_is_wanted() -> None:
    with (
        Redis() as redis,
        two_phase(redis=redis, two_phase__fail_open=False, **QUICK) as server,
    ):
        async with talking(server) as talk:
            await talk.until_more()
            await asyncio.to_thread(redis.kill)
            before = talk.busy
            await talk.until(lambda: talk.busy >= before + 20, "refused")
            await asyncio.to_thread(redis.start)
            await talk.until_more()
        async with meet(server, "ann", "ben") as (ann, ben):
            await ann.say(ben, "so that the chat exists")
            redis.kill()
            for _ in range(2):
                frame = ann.message(ben, "not now")
                await ann.send(frame)
                await ann.expect_error("server_busy", clientMsgId=frame["clientMsgId"])


async def test_groups_go_the_direct_way_when_only_single_chats_are_meant() -> None:
    with two_phase(two_phase__scope="single") as server:
        async with meet(server, "ann", "ben", "cat") as (ann, ben, cat):
            group = await ann.me.post("/group/create", name="us", member_ids=[ben.user_id, cat.user_id])
            await ann.say(group["group_id"], "to all")
            assert ann.early == []
            await ann.say(ben, "to one")
            assert [frame["ackType"] for frame in ann.early] == ["accepted"]


@both_modes
async def test_the_backlog_gate_opens_and_closes_and_nobody_is_overtaken(deliver_before_saved: bool) -> None:
    """A backlog of four for everybody: sends are accepted, refused and saved directly in turn."""
    settings = {"two_phase__max_backlog": 4, "two_phase__shards": 1, "two_phase__batch_size": 2, **QUICK}
    with two_phase(deliver_before_saved=deliver_before_saved, **settings) as server:
        async with talking(server, 8, window=8) as talk:
            await talk.until(
                lambda: min(metric(server, "nexo_accepts_total", result=way) for way in ("busy", "accepted")) >= 50,
                "refused and accepted in turn",
            )
            await talk.until(lambda: metric(server, "nexo_accepts_total", result="direct") > 0, "some go directly")


async def test_an_entry_that_cannot_be_saved_is_a_dead_letter_that_can_be_replayed_or_dropped() -> None:
    with Redis() as redis, two_phase(redis=redis, two_phase__shards=1, two_phase__max_tries=2) as server:
        async with meet(server, "ann", "ben") as (ann, ben):
            await ann.say(ben, "before")
            # by somebody who writes into the stream what is no entry
            with redis_client(redis) as client:
                client.execute_command("XADD", "nexo:stream:{0}:accepted", "*", "conversation_id", "si_x:y", "no", "1")
            await ann.say(ben, "after")
            (letter,) = json.loads(streams(server, "show", "--json").stdout)
            assert letter["reason"].startswith("unreadable")
            assert backlog(server) == {"accepted": 0, "to_save": 0, "dead": 1}
            refused = streams(server, "replay", letter["entry"])
            assert (refused.returncode, "cannot be read" in refused.stderr) == (1, True)
            dropped = streams(server, "drop", letter["entry"])
            assert (dropped.returncode, dropped.stdout) == (0, "1 removed.\n")
            gone = streams(server, "drop", letter["entry"])
            assert (gone.returncode, "no dead letter" in gone.stderr) == (1, True)
            assert "There are no dead letters" in streams(server, "show").stdout
            await check_poison(server, redis, ann, ben)


async def check_poison(server: object, redis: Redis, ann: object, ben: object) -> None:
    """A message that the database does not take (its id belongs to another one) is kept, and the others go on."""
    sent = await ann.say(ben, "taken")  # type: ignore[attr-defined]
    with redis_client(redis) as client:
        client.execute_command(
            "XADD", "nexo:stream:{0}:accepted", "*",
            "server_msg_id", sent["serverMsgId"], "client_msg_id", "poison", "sender_id", ann.user_id,  # type: ignore[attr-defined]
            "conversation_id", sent["conversationId"], "msg_type", "1", "content", '"poison"',
            "request_hash", "00" * 32, "accepted_at", "1", "producer", "test",
        )  # fmt: skip
    await ann.say(ben, "goes on")  # type: ignore[attr-defined]
    await until(lambda: backlog(server)["dead"] == 1)  # type: ignore[arg-type]
    shown = streams(server, "show")  # type: ignore[arg-type]
    assert "poison" in shown.stdout
    assert "content" not in shown.stdout
    assert '"poison"' in streams(server, "show", "--content").stdout  # type: ignore[arg-type]
    # the cause is gone (here: the letter is changed), so it is tried again
    with redis_client(redis) as client:
        ((entry, fields),) = client.xrange("nexo:stream:{0}:dead")
        client.xdel("nexo:stream:{0}:dead", entry)
        fields[b"server_msg_id"] = str(int(sent["serverMsgId"]) + 1).encode()
        client.xadd("nexo:stream:{0}:dead", fields)
    assert streams(server, "replay", "all").stdout == "1 will be tried again.\n"  # type: ignore[arg-type]
    await ben.expect("SINGLE_CHAT", body="poison")  # type: ignore[attr-defined]
    assert backlog(server)["dead"] == 0  # type: ignore[arg-type]


def redis_client(server: Redis) -> object:
    import redis  # noqa: PLC0415

    return redis.Redis.from_url(server.url)
