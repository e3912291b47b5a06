"""Limits: what goes over one is told when to come back, and closed only when it goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus

from harness.chat import Refused, meet, world
from harness.server_process import ServerProcess
from harness.waiting import time_passes, until
from nexo.gateway.sends import HELD_MAX

PING = {"type": "PING"}
RECONNECT = range(4500, 5000)


@pytest.fixture(scope="module")
def few_frames() -> Iterator[ServerProcess]:
    """Twenty frames at once, then ten a second."""
    with ServerProcess(limits__frames_per_s=10, limits__frames_burst=20, limits__sends_per_s=5) as running:
        yield running


async def test_frames_over_the_limit_are_refused_and_later_ones_are_not(few_frames: ServerProcess) -> None:
    async with meet(few_frames, "ann", check_pushes=False) as (ann,):
        await ann.send_at_once(*[PING] * 30)
        errors = [await ann.expect_error("too_many_requests") for _ in range(30 - 19)]  # AUTH was one
        assert all(0 < error["retryAfterMs"] <= 200 for error in errors)
        assert len(ann.seen("PONG")) == 19
        await time_passes(errors[0]["retryAfterMs"] / 1000 + 0.1)
        await ann.send(PING)
        await ann.expect("PONG", where=lambda _: len(ann.seen("PONG")) == 20)


async def test_who_goes_on_and_on_is_closed(few_frames: ServerProcess) -> None:
    async with meet(few_frames, "ann", check_pushes=False) as (ann,):
        await ann.send_at_once(*[PING] * 200)
        assert await ann.expect_close() in RECONNECT
        errors = ann.seen("ERROR")
        assert {error["reason"] for error in errors} == {"too_many_requests"}
        assert len(errors) < 100


async def test_acknowledgements_have_a_limit_of_their_own(few_frames: ServerProcess) -> None:
    async with meet(few_frames, "ann", "ben", check_pushes=False) as (ann, ben):
        message = await ann.say(ben)
        got = await ben.expect("SINGLE_CHAT")
        acks = [{"type": "ACK", "ackType": "read", "serverMsgId": got["serverMsgId"]}] * 500
        await ben.send_at_once(*acks, *[{"type": "PONG"}] * 500)
        await ann.expect("ACK", ackType="read", serverMsgId=message["serverMsgId"])
        await ben.ask(PING, "PONG")
        assert ben.seen("ERROR") == []


async def test_a_refused_frame_holds_back_what_follows_it_in_its_conversation(few_frames: ServerProcess) -> None:
    async with meet(few_frames, "ann", "ben", check_pushes=False) as (ann, ben):
        await ann.say(ben, "first")
        refused, later = ann.message(ben, "refused"), ann.message(ben, "later")
        await ann.send_at_once(*[PING] * 25, refused)
        await ann.expect_error("too_many_requests", clientMsgId=refused["clientMsgId"])
        await time_passes(0.5)
        await ann.send(later)
        await ann.expect_error("too_many_requests", clientMsgId=later["clientMsgId"])
        for frame in (refused, later):
            await ann.send(frame)
            await ann.expect("ACK", clientMsgId=frame["clientMsgId"])
        assert [(await ben.expect("SINGLE_CHAT"))["body"] for _ in range(3)] == ["first", "refused", "later"]


async def test_a_sender_that_is_refused_in_too_many_conversations_is_closed() -> None:
    """The connection keeps the earliest refused send of each conversation, and no unlimited number of them."""
    with ServerProcess(limits__sends_per_s=1, limits__sends_burst=1) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            await ann.say(ben, "first")
            frames = [ann.message(ben, "refused") | {"to": f"receiver-{number}"} for number in range(HELD_MAX + 50)]
            await ann.send_at_once(*frames)
            assert await ann.expect_close() in RECONNECT
            refused = [error for error in ann.seen("ERROR") if "clientMsgId" in error]
            assert {error["reason"] for error in ann.seen("ERROR")} == {"too_many_requests"}
            assert HELD_MAX - 10 <= len(refused) <= HELD_MAX + 10, "some may have been let through as time passed"
            again = await ann.me.connect()
            await until(lambda: again.is_signed_in)


async def test_one_user_has_one_limit_over_all_connections_and_http() -> None:
    with ServerProcess(limits__sends_per_s=1, limits__sends_burst=4) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            other = await ann.me.connect()
            await ann.say(ben)
            await other.say(ben)
            await ann.me.send(ben, "http")
            await ann.say(ben)
            await other.send(other.message(ben, "too many"))
            await other.expect_error("too_many_requests")
            with pytest.raises(Refused) as refused:
                await ann.me.send(ben, "too many")
            assert (refused.value.status, refused.value.name) == (429, "too_many_requests")
            assert refused.value.body["retry_after_ms"] > 0
            await ben.say(ann, "mine is mine")


async def test_a_user_has_only_so_many_connections() -> None:
    with ServerProcess(limits__connections_per_user=2) as server:
        async with world(server) as here:
            ann, ben = await here.people("ann", "ben")
            first, second = await ann.connect(), await ann.connect()
            third = await ann.open()
            await third.send({"type": "AUTH", "token": ann.tokens.access})
            failed = await third.expect("AUTH_FAIL", reason="too_many_requests")
            assert failed["retryAfterMs"] > 0
            assert await third.expect_close() in RECONNECT
            by_header = await ann.open(headers={"Authorization": f"Bearer {ann.tokens.access}"})
            await by_header.expect("AUTH_FAIL", reason="too_many_requests")
            await ben.connect()
            watcher = await ben.connect()
            await watcher.ask({"type": "PRESENCE", "subscribe": [ann.user_id]}, "PRESENCE")
            await first.close()
            await second.close()
            await watcher.expect("PRESENCE")
            await ann.connect()


async def test_an_address_has_only_so_many_connections_and_a_trusted_proxy_speaks_for_others() -> None:
    with ServerProcess(limits__connections_per_ip=3, http__trusted_proxies="127.0.0.1") as server:
        async with world(server) as here:
            ann = await here.person("ann")
            clients = [await ann.connect() for _ in range(3)]
            with pytest.raises(InvalidStatus) as refused:
                await ann.open()
            assert refused.value.response.status_code == 429
            assert b'"err_msg":"too_many_requests"' in refused.value.response.body
            for address in ("203.0.113.7", "203.0.113.8", "2001:db8::1"):
                await ann.connect(headers={"X-Forwarded-For": address})
            clients.pop().cut()

            async def is_let_in() -> bool:
                with contextlib.suppress(InvalidStatus):
                    await ann.connect()
                    return True
                return False

            await until(is_let_in, "the place is given back")


async def test_an_instance_has_only_so_many_connections_and_failed_ones_take_no_place() -> None:
    with ServerProcess(limits__connections_total=5) as server:
        async with world(server) as here:
            ann = await here.person("ann")
            for _ in range(10):
                with pytest.raises(InvalidStatus):
                    await ann.open(headers={"Authorization": "Bearer nonsense"})
                with pytest.raises(InvalidStatus):
                    await ann.open(subprotocols=["nonsense"])
            for _ in range(5):
                await ann.connect()
            with pytest.raises(InvalidStatus) as refused:
                await ann.open()
            assert refused.value.response.status_code == 503
            assert b'"err_msg":"server_busy"' in refused.value.response.body
            await ann.get("/user/info")  # HTTP goes on


async def test_subscriptions_to_presence_have_a_limit() -> None:
    with ServerProcess(limits__presence_per_min=8) as server:
        async with meet(server, "ann", "ben") as (ann, ben):
            for _ in range(2):
                await ann.ask({"type": "PRESENCE", "subscribe": [ben.user_id]}, "PRESENCE")
            await ann.send({"type": "PRESENCE", "subscribe": [ben.user_id]})
            assert (await ann.expect_error("too_many_requests"))["retryAfterMs"] > 0
            await ben.ask({"type": "PRESENCE", "subscribe": [ann.user_id]}, "PRESENCE")


async def test_limits_of_nothing_are_no_limits(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.send_at_once(*[PING] * 2000)
        for _ in range(2000):
            await ann.expect("PONG")
        frames = [ann.message(ben, "x") for _ in range(200)]
        await ann.send_at_once(*frames)
        for frame in frames:
            await ann.expect("ACK", clientMsgId=frame["clientMsgId"])
