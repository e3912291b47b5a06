"""Everything of test_messages.py once more, with sends that are accepted first and saved later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.test_messages import *  # noqa: F403
from harness.server_process import ServerProcess
from harness.two_phase import modes, two_phase

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module", params=modes(False))
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with two_phase(deliver_before_saved=request.param) as running:
        yield running
