"""Everything of test_receipts.py once more, with its people spread over three instances."""

from __future__ import annotations

import pytest

from e2e import test_receipts
from harness.cluster import Cluster, suite

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three-on-postgresql")]
globals().update(suite(test_receipts, "server"))


@pytest.fixture(scope="module")
def server(three_on_postgresql: Cluster) -> Cluster:
    return three_on_postgresql
