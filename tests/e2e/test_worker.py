"""`nexo worker` answers for itself: health, readiness and metrics on a port of its own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from harness.cluster import Cluster
from harness.two_phase import WorkerProcess, two_phase_cluster
from harness.waiting import until

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def apart() -> Iterator[Cluster]:
    """A server that accepts and does not save."""
    with two_phase_cluster("postgresql", 1, two_phase__workers=False) as running:
        yield running


def ask(worker: WorkerProcess, path: str) -> httpx.Response:
    return httpx.get(worker.address + path, timeout=10, trust_env=False)


async def test_a_worker_answers_for_its_health_its_readiness_and_its_metrics(apart: Cluster) -> None:
    with WorkerProcess(apart.settings) as worker:
        assert ask(worker, "/healthz").json()["data"] == {"status": "alive"}
        assert ask(worker, "/readyz").json()["data"] == {"status": "ready"}
        await until(lambda: "nexo_shards_owned 8.0" in ask(worker, "/metrics").text, "its own shards")
        text = ask(worker, "/metrics").text
        for name in (
            "nexo_unsaved_oldest_seconds{",
            "nexo_stream_length{",
            "nexo_ready 1.0",
            "nexo_info{",
            "nexo_bus_up",
        ):
            assert name in text, name
        assert ask(worker, "/msg/pull").status_code == 404
        assert worker.stop() == 0


def test_a_worker_whose_port_is_taken_reports_it_and_saves_all_the_same(apart: Cluster) -> None:
    with (
        WorkerProcess(apart.settings) as first,
        WorkerProcess({**apart.settings, "worker__port": first.port}) as second,
    ):
        assert '"event": "worker_port_unavailable"' in second.output
        assert "Health and metrics" not in second.output
        assert ask(first, "/healthz").status_code == 200


def test_a_worker_without_a_port_serves_none(apart: Cluster) -> None:
    with WorkerProcess({**apart.settings, "worker__port": 0}) as worker:
        assert "Health and metrics" not in worker.output
        assert "worker_port_unavailable" not in worker.output
