"""Everything of test_sync.py once more, with sends that are accepted first and saved later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.test_sync import *  # noqa: F403
from harness.server_process import ServerProcess
from harness.two_phase import two_phase

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with two_phase(deliver_before_saved=False) as running:
        yield running
