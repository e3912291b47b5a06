"""What a legacy database holds, read as Nexo has it."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from nexo.store.legacy.tables import to_ms


def test_times_of_every_kind_are_milliseconds() -> None:
    moment = datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    expected = 1_714_564_800_250
    assert to_ms(moment, UTC) == expected
    assert to_ms("2024-05-01 12:00:00.250", UTC) == expected
    assert to_ms("2024-05-01 20:00:00.250", ZoneInfo("Asia/Shanghai")) == expected
    assert to_ms(expected, UTC) == expected
    assert to_ms(expected // 1000, UTC) == expected - 250
    assert to_ms(None, UTC) == to_ms("0000-00-00 00:00:00", UTC) == 0
