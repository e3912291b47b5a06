"""Everything of test_messages.py once more, with its people spread over three instances."""

from __future__ import annotations

import pytest

from e2e.test_messages import *  # noqa: F403
from harness.cluster import Cluster

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three-on-mariadb")]


@pytest.fixture(scope="module")
def server(three_on_mariadb: Cluster) -> Cluster:
    return three_on_mariadb
