"""Everything of test_receipts.py once more, with its people spread over three instances."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.test_receipts import *  # noqa: F403
from harness.cluster import Cluster, cluster

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    with cluster("postgresql") as running:
        yield running
