"""Servers that several end-to-end tests share; a test that stops, breaks or limits one starts its own."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import pytest

from harness.cluster import Cluster, cluster
from harness.engines import SERVER_ENGINES
from harness.server_process import ServerProcess

ALL_ON_BOTH = ("test_cluster.py",)  # what exists between instances only


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The suites of one server run on three instances once more, half of each suite on either engine: always the
    same half. All of it runs on both with NEXO_LONG_TESTS=1, and so does a test that is asked for by its name."""
    if os.environ.get("NEXO_LONG_TESTS") or any("::" in argument for argument in config.args):
        return
    dropped = [item for item in items if item.path.name not in ALL_ON_BOTH and not _is_its_turn(item)]
    config.hook.pytest_deselected(items=dropped)
    others = set(dropped)
    items[:] = [item for item in items if item not in others]


def _is_its_turn(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    engine = callspec.params.get("three") if callspec else None
    if engine is None:
        return True
    chosen = zlib.crc32(item.nodeid.replace(engine, "").encode()) % len(SERVER_ENGINES)
    return engine == list(SERVER_ENGINES)[chosen]


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    """A server with the embedded database and no limits. Everybody in it is a stranger to other tests."""
    with ServerProcess() as running:
        yield running


@pytest.fixture(scope="session", params=list(SERVER_ENGINES))
def three(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three instances that behave as one server, without limits, on each of the database servers."""
    with cluster(request.param) as running:
        yield running
