"""Everything of test_moderators.py once more, with the devices of each user on three instances."""

from __future__ import annotations

import pytest

from e2e import test_moderators
from harness.cluster import suite

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three")]
globals().update(suite(test_moderators))
