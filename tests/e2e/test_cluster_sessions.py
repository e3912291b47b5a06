"""Everything of test_session_policies.py once more: who has to go is on another instance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.test_session_policies import *  # noqa: F403
from harness.cluster import Cluster, cluster

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three-on-mariadb")]


@pytest.fixture(scope="module")
def server(three_on_mariadb: Cluster) -> Cluster:
    return three_on_mariadb


@pytest.fixture(scope="module")
def single_server() -> Iterator[Cluster]:
    with cluster("mariadb", session__policy="single") as running:
        yield running


@pytest.fixture(scope="module")
def platform_server() -> Iterator[Cluster]:
    with cluster("postgresql", session__policy="per_platform") as running:
        yield running
