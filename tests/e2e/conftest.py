"""Servers that several end-to-end tests share; a test that stops, breaks or limits one starts its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.cluster import Cluster, cluster
from harness.server_process import ServerProcess


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    """A server with the embedded database and no limits. Everybody in it is a stranger to other tests."""
    with ServerProcess() as running:
        yield running


@pytest.fixture(scope="session")
def three_on_mariadb() -> Iterator[Cluster]:
    """Three instances that behave as one server, without limits."""
    with cluster("mariadb") as running:
        yield running


@pytest.fixture(scope="session")
def three_on_postgresql() -> Iterator[Cluster]:
    with cluster("postgresql") as running:
        yield running
