"""Everything of test_own.py once more, with its people spread over three instances."""

from __future__ import annotations

import pytest

from e2e import test_own
from harness.cluster import suite

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three")]
globals().update(suite(test_own))
