"""The numbers of all instances meet: what is shown, and nothing that cannot be read."""

from __future__ import annotations

import asyncio

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
    other.start()
    await asked.wait()
    await other.stop()
    board["other"] = board.pop("own")
    board["strange"] = b'{"of": "another version"}'
    asked.clear()
    one = Cluster("a:1", lambda: samples(3), exchange)
    one.start()
    await asked.wait()
    await asyncio.sleep(0)
    await one.stop()
    found = one.samples()
    assert list(found) == ["a:1", "b:2"]
    assert len(found["a:1"]) == 4
    assert {(sample.name, sample.labels) for sample in found["b:2"]} == {
        ("nexo_sends_total", ("saved",)),
        ("nexo_users_online", ()),
        ("nexo_send_seconds", ()),
    }
