"""Accepted messages that no worker saves: an owner or worker without Redis gives its shards up, and a stall is seen by
every instance, in /readyz, the metrics and the log; senders get `saved` or an error all the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import httpx
import pytest

from harness.followers import following
from harness.network import Network
from harness.partition import Partition, partition
from harness.two_phase import ON, QUICK, WorkerProcess, metric, two_phase_cluster
from harness.waiting import nothing_for, until

pytestmark = pytest.mark.servers

SEEN_S = 10.0


@pytest.fixture(scope="module")
def two() -> Iterator[Partition]:
    with partition("postgresql", **{**ON, **QUICK}) as running:
        yield running


@pytest.mark.parametrize("fault", ["redis cut", "redis frozen"])
async def test_an_owner_without_redis_gives_its_shards_to_the_others(two: Partition, fault: str) -> None:
    await two.recover()
    faulty, healthy = two.nodes
    await until(lambda: metric(healthy.server, "nexo_shards_owned") == 4, "the shards are shared")
    async with following(two.sites, *[1] * 9) as (sender, *receivers):
        faulty.suffer(fault)
        try:
            names = [sender.put(receiver.user_id) for receiver in receivers for _ in range(2)]
            for name in names:
                await sender.saved(name, SEEN_S)
            assert len(set(sender.accepted)) == len(names)
            # the messages may have been saved without an owner, before the shards have another one
            await until(lambda: metric(faulty.server, "nexo_shards_owned") == 0, "it gives its shards up")
            await until(lambda: metric(healthy.server, "nexo_shards_owned") == 8, "the other one takes them")
        finally:
            await two.recover()


async def test_a_worker_whose_redis_does_not_answer_takes_no_shard() -> None:
    with (
        two_phase_cluster("postgresql", 1, two_phase__workers=False) as one,
        Network() as network,
        network.road_to(one.settings["redis__url"]) as road,
    ):
        road.freeze()
        with WorkerProcess({**one.settings, "redis__url": road.url}) as worker:
            await nothing_for(3)  # several rounds of looking for free shards
            assert "shards_taken" not in worker.output
            road.heal()
            await until(lambda: "shards_taken" in worker.output, "takes them once Redis answers")


async def test_a_stall_is_seen_by_every_instance_and_the_senders_are_not_left_waiting() -> None:
    """The only worker is gone."""
    with two_phase_cluster("postgresql", 2, two_phase__workers=False) as both:
        with WorkerProcess(both.settings) as worker:
            async with following(both.instances, 0, 1) as (sender, receiver):
                await sender.saved(sender.put(receiver.user_id))
                assert worker.stop() == 0
                began = time.monotonic()
                name = sender.put(receiver.user_id)
                over_http = await send(both.instances[0].address, sender.token, receiver.user_id)
                assert over_http == (202, "accepted")
                for server in both.instances:
                    reason = await not_ready(server.address, began + SEEN_S)
                    assert "not saved" in reason, reason
                    assert metric(server, "nexo_unsaved_oldest_seconds") >= 1
                    assert metric(server, "nexo_stream_length", stream="accepted") >= 2
                    await until(lambda: "unsaved_stalled" in server.output, "the stall is logged")  # noqa: B023
                assert name in sender.accepted
                saved = await sender.saved(name, SEEN_S)  # by the instance that has accepted it
                await receiver.knows(saved)
                own = f"SELECT count(*) FROM messages WHERE sender_id='{sender.user_id}'"
                await until(lambda: both.select(own)[0][0] == 3, "the one over HTTP too")
                later = await send(both.instances[1].address, sender.token, receiver.user_id)
                assert later in {(200, "saved"), (503, "server_busy")}, "nothing more is accepted meanwhile"
                await asyncio.to_thread(worker.start)
                for server in both.instances:
                    await until(lambda server=server: is_ready(server.address), "ready again")
                await sender.saved(sender.put(receiver.user_id))
        both.check()


async def send(address: str, token: str, recv_id: str) -> tuple[int, str]:
    """Status and what became of a message sent over HTTP."""
    async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as http:
        answer = await http.post(
            "/msg/send",
            json={"recv_id": recv_id, "content": "over http", "client_msg_id": f"h{time.monotonic_ns()}"},
            headers={"Authorization": f"Bearer {token}"},
        )
    body = answer.json()
    return answer.status_code, body["err_msg"] if body["err_code"] else body["data"]["status"]


async def not_ready(address: str, deadline: float) -> str:
    async with httpx.AsyncClient(base_url=address, timeout=10, trust_env=False) as http:

        async def trouble() -> str:
            answer = await http.get("/readyz")
            return "" if answer.status_code == 200 else str(answer.json()["detail"])

        return await until(trouble, "not ready", patience_s=deadline - time.monotonic())


def is_ready(address: str) -> bool:
    return httpx.get(f"{address}/readyz", timeout=10, trust_env=False).status_code == 200
