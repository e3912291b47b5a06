"""Everything of test_dialects.py once more, with sends that are accepted first and saved later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e import test_dialects
from harness.cluster import suite
from harness.dialects import SPEAKERS
from harness.server_process import ServerProcess
from harness.two_phase import LONG, modes, two_phase

pytestmark = pytest.mark.servers
globals().update(suite(test_dialects, "server"))

# without much time each dialect sends once and receives once
PAIRS = test_dialects.PAIRS if LONG else list(zip(SPEAKERS, [*list(SPEAKERS)[1:], next(iter(SPEAKERS))], strict=True))


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(name.split(".")[1] for name in pair))
def pair(request: pytest.FixtureRequest) -> test_dialects.Pair:
    first, second = request.param
    return SPEAKERS[first], SPEAKERS[second]


@pytest.fixture(scope="module", params=modes(True))
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with two_phase(deliver_before_saved=request.param) as running:
        yield running
