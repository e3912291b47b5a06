"""Everything of test_message_changes.py once more, with the devices of each user on three instances."""

from __future__ import annotations

import pytest

from e2e import test_message_changes
from harness.cluster import suite

pytestmark = [pytest.mark.servers, pytest.mark.xdist_group("three")]
globals().update(suite(test_message_changes))
