"""The numbers of all instances meet: what is shown, and nothing that cannot be read."""

from __future__ import annotations

import asyncio

import pytest

from harness.defects import raise_at, restarts
from harness.waiting import loop_turns, until
from nexo.background import Background
from nexo.metrics import families as f
from nexo.metrics.cluster import Cluster
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets


def samples(saved: int) -> list[Sample]:
    return [f.SENDS(saved, "saved"), f.USERS(saved), f.SEND_SECONDS(Buckets()), f.HTTP_REQUESTS(9, "GET /x", "200")]


async def test_an_instance_knows_the_others_by_name_and_only_what_the_page_shows() -> None:
    board: dict[str, bytes] = {}
    asked = asyncio.Event()

    async def exchange(status: bytes) -> dict[str, bytes]:
        board["own"] = status
        asked.set()
        return {name: text for name, text in board.items() if name != "own"}

    other = Cluster("b:2", lambda: samples(5), exchange)
    background = Background()
    exchanging = background.serve("cluster_status", other.run)
    await asked.wait()
    await exchanging.stop()
    board["other"] = board.pop("own")
    board["strange"] = b'{"of": "another version"}'
    asked.clear()
    one = Cluster("a:1", lambda: samples(3), exchange)
    exchanging = background.serve("cluster_status", one.run)
    await asked.wait()
    await loop_turns()
    await exchanging.stop()
    found = one.samples()
    assert list(found) == ["a:1", "b:2"]
    assert len(found["a:1"]) == 4
    assert {(sample.name, sample.labels) for sample in found["b:2"]} == {
        ("nexo_sends_total", ("saved",)),
        ("nexo_users_online", ()),
        ("nexo_send_seconds", ()),
    }


async def test_an_exchange_that_meets_a_defect_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    async def exchange(status: bytes) -> dict[str, bytes]:
        nonlocal calls
        calls += 1
        return {}

    cluster = Cluster("a:1", lambda: samples(3), exchange)
    raise_at(monkeypatch, cluster, "_read")
    background = Background(pauses_s=(0.0,))
    background.serve("cluster_status", cluster.run)
    await until(lambda: calls == 2)
    assert restarts(background, "cluster_status") == 1
    assert list(background.failing()) == ["cluster_status"]
    await background.stop()
