"""/metrics of a running server: everything that is promised is there, is true, and does not grow with use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness import servers
from harness.chat import Refused, fresh_id, meet
from harness.pair_load import open_socket
from harness.server_process import ServerProcess
from harness.waiting import until
from nexo.config import parse_store_url
from nexo.metrics.families import FAMILIES, MetricKind
from nexo.store import migrate

ELSEWHERE = ("Many instances", "Two-phase acknowledgement")  # there is no Redis here

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(
        receipts__flush_ms=1,
        backpressure__high_water_bytes=65_536,
        backpressure__low_water_bytes=32_768,
        backpressure__close_after_ms=1000,
    ) as running:
        yield running


async def scrape(server: ServerProcess) -> Values:
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        text = (await http.get(f"{server.address}/metrics")).text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(values: Values, name: str, **labels: str) -> float:
    return values.get((name, tuple(sorted(labels.items()))), 0.0)


async def live(server: ServerProcess) -> None:
    """Some of everything that people do, well and badly."""
    async with meet(server, "ann", "ben", "cid", check_pushes=False) as (ann, ben, cid):
        for i in range(5):
            await ann.say(ben, f"{i}")
        messages = [await ben.expect("SINGLE_CHAT") for _ in range(5)]
        for message in messages:
            await ben.acknowledge(message, "delivered")
        await ann.expect("ACK", ackType="delivered", msgSeq=5)
        await ben.acknowledge(messages[-1], "read")
        await ann.expect("ACK", ackType="read")
        group = await ann.me.found_group(ben, cid)
        await ann.say(group, "hello")
        await cid.expect("GROUP_CHAT")
        await cid.ask({"type": "PULL", "conversationId": f"sg_{group}", "beginSeq": 1}, "PULL_OK")
        await ann.send(ann.message("nobody-there", "x"))
        await ann.expect_error("user_not_found")
        await ben.send({"type": "ACK", "ackType": "read", "serverMsgId": "12345"})
        await ben.expect_error("message_not_found")
        await ann.me.send(ben, "by HTTP")
        with pytest.raises(Refused):
            await ann.me.get("/msg/history", conversation_id="si_x:y")
        async with httpx.AsyncClient(base_url=server.address, trust_env=False, verify=False) as http:
            for path in ("/readyz", f"/nothing/{fresh_id()}"):
                await http.get(path)


async def test_every_metric_of_the_table_is_told_and_no_other(server: ServerProcess) -> None:
    await live(server)
    found = {name for name, _ in await scrape(server)}
    endings = {MetricKind.HISTOGRAM: "_count", MetricKind.COUNTER: "", MetricKind.GAUGE: ""}
    # nothing was dropped, lost or resynced here; these have no word of their own before
    rare = {"nexo_resyncs_total", "nexo_key_calls_total", "nexo_media_examined_total", "nexo_push_notifications_total"}
    rare |= {"nexo_calls_ended_total", "nexo_calls_refused_total", "nexo_replica_reads_total"}
    rare |= {name for name, family in FAMILIES.items() if family.chapter in ELSEWHERE}
    rare |= {name for name, family in FAMILIES.items() if "consumer" in family.labels}  # the journal has none here
    rare |= {name for name, family in FAMILIES.items() if "hook" in family.labels or "before_send" in name}
    missing = {family.name for family in FAMILIES.values() if family.name + endings[family.kind] not in found} - rare
    assert missing == set()
    known = {
        family.name + ending
        for family in FAMILIES.values()
        for ending in (("_bucket", "_count", "_sum") if family.kind is MetricKind.HISTOGRAM else ("",))
    }
    assert {name for name in found if not name.endswith("_created")} <= known


async def test_the_numbers_say_what_happened(server: ServerProcess) -> None:
    before = await scrape(server)
    await live(server)
    after = await scrape(server)

    def grown(name: str, **labels: str) -> float:
        return of(after, name, **labels) - of(before, name, **labels)

    assert 7 <= grown("nexo_sends_total", result="saved") <= 10  # readiness is measured by messages of its own
    assert grown("nexo_sends_total", result="refused") == 1
    assert grown("nexo_send_seconds_count") >= 7  # /readyz sends its own; who is not there is found out before
    for stage in ("queue", "write", "ack"):
        assert grown("nexo_send_stage_seconds_count", stage=stage) == grown("nexo_send_seconds_count")
    assert grown("nexo_send_stage_seconds_count", stage="push") >= 7
    assert grown("nexo_acks_total", type="delivered", result="noted") == 5
    assert grown("nexo_acks_total", type="read", result="noted") == 1
    assert grown("nexo_acks_total", type="read", result="refused") == 1
    assert grown("nexo_delivery_seconds_count") == 5
    assert grown("nexo_read_seconds_count") == 1
    assert 0 < grown("nexo_delivery_seconds_sum") < 60
    assert grown("nexo_errors_total", way="websocket", reason="user_not_found") == 1
    assert grown("nexo_http_requests_total", route="POST /msg/send", status="200") == 1
    assert grown("nexo_http_requests_total", route="other", status="404") == 1
    assert grown("nexo_connections_opened_total", dialect="envelope") == 3
    assert grown("nexo_connections_closed_total", reason="left") == 3
    assert grown("nexo_requests_total", command="Pull") == 1
    assert grown("nexo_websocket_frames_total", direction="in") > 15
    assert grown("nexo_websocket_bytes_total", direction="out") > 1000
    assert grown("nexo_script_seconds_count", script="history.pull") == 1
    kinds = {key[1] for key in after if key[0] == "nexo_acks_by_kind_total"}
    assert sum(of(after, "nexo_acks_by_kind_total", **dict(labels)) for labels in kinds) == sum(
        of(after, "nexo_acks_total", type=name, result="noted") for name in ("delivered", "read")
    )
    assert of(after, "nexo_queue_limit", queue="sends") == 20_000
    assert of(after, "nexo_queue_length", queue="sends") == 0
    assert of(after, "nexo_ready") == 1
    assert of(after, "process_resident_memory_bytes") > 10_000_000


async def test_frames_and_bytes_count_while_a_connection_lives_and_once() -> None:
    def counted(values: Values, unit: str) -> list[float]:
        return [of(values, f"nexo_websocket_{unit}_total", direction=way) for way in ("in", "out")]

    with ServerProcess() as server:
        async with meet(server, "ann", check_pushes=False) as (ann,):
            before = await scrape(server)
            for _ in range(20):
                await ann.ask({"type": "PING"}, "PONG")
            during = await scrape(server)
        after = await scrape(server)
    for unit, at_least in (("frames", 20), ("bytes", 300)):
        for earlier, later in zip(counted(before, unit), counted(during, unit), strict=True):
            assert later - earlier >= at_least
    assert counted(after, "frames") == counted(during, "frames")


async def test_the_number_of_series_does_not_grow_with_users_groups_messages_or_nonsense(
    server: ServerProcess,
) -> None:
    await live(server)
    before = set(await scrape(server))
    for _ in range(3):
        await live(server)
    async with httpx.AsyncClient(base_url=server.address, trust_env=False, verify=False) as http:
        for i in range(20):
            await http.get(f"/path/{i}", headers={"X-Request-Id": f"id-{i}"})
            await http.request("PUT", f"/user/info?{i}")
    grown = {key for key in set(await scrape(server)) - before if dict(key[1]).get("status") != "405"}
    # a script or an error may be met for the first time; nothing that names a user, a path or a conversation
    assert len(grown) < 60
    text = " ".join(value for _, labels in grown for _, value in labels)
    assert not any(mark in text for mark in ("ann.", "ben.", "si_", "sg_", "g_", "/path", "127.0.0.1"))


async def test_a_client_that_does_not_read_is_seen(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
        stalled = await open_socket(server.ws_address, ben.me.tokens.access, receive_buffer_bytes=16_384)
        try:

            async def is_closed() -> Values | None:
                await asyncio.gather(*(ann.say(ben, "x" * 4000) for _ in range(50)))
                values = await scrape(server)
                return values if of(values, "nexo_connections_closed_total", reason="slow_consumer") else None

            values = await until(is_closed)
        finally:
            stalled.transport.abort()
        assert values is not None
        assert of(values, "nexo_connections_closed_total", reason="slow_consumer") == 1
        assert of(values, "nexo_pushes_dropped_total", reason="slow_consumer") > 0


async def test_a_limit_that_was_exceeded_is_counted() -> None:
    with ServerProcess(limits__sends_per_s=1, limits__sends_burst=2, limits__logins_per_min=1) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            for _ in range(5):
                await ann.send(ann.message(ben, "x"))
            await ann.expect_error("too_many_requests")
            for _ in range(2):
                with pytest.raises(Refused):
                    await ann.me.log_in(password="wrong password")
            values = await scrape(server)
        assert of(values, "nexo_limit_refusals_total", limit="sends") >= 1
        assert of(values, "nexo_limit_refusals_total", limit="logins") == 1
        assert of(values, "nexo_errors_total", way="websocket", reason="too_many_requests") >= 1
        assert of(values, "nexo_errors_total", way="http", reason="too_many_requests") == 1


@pytest.mark.servers
async def test_two_instances_say_what_goes_between_them() -> None:
    url = servers.postgres().create_database()
    await migrate.upgrade(parse_store_url(url))
    redis = servers.redis()
    redis.flush()
    settings = {"store__url": url, "redis__url": redis.url, "auth__secret": "kjh34kjh5kjh6kjh7kjh8kjh9kjh0kjh1kjh2"}
    with ServerProcess(**settings) as one, ServerProcess(**settings) as other:

        async def has_met_the_other() -> bool:
            return of(await scrape(one), "nexo_bus_peers") == 1

        await until(has_met_the_other)
        async with meet(one, "ann", check_pushes=False) as (ann,), meet(other, "ben", check_pushes=False) as (ben,):
            await ann.say(ben.user_id, "across")
            await ben.expect("SINGLE_CHAT")
            values = await scrape(one)
    assert of(values, "nexo_bus_up") == 1
    assert of(values, "nexo_bus_frames_total", direction="out") >= 1
    assert of(values, "nexo_redis_seconds_count") > 1
    assert of(values, "nexo_queue_limit", queue="bus") == 50_000
