"""Where a replay begins."""

from __future__ import annotations

import pytest

from harness.core import refused
from nexo.service.hooks import parse_start

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("begin", "begin"),
        ("WzEsMl0", "WzEsMl0"),
        ("2h", NOW - 7_200_000),
        ("30m", NOW - 1_800_000),
        ("2026-05-01T12:00", 1_777_636_800_000),
        ("2026-05-01T14:00+02:00", 1_777_636_800_000),
        ("2026-05-01", 1_777_593_600_000),
    ],
)
def test_a_start_is_a_cursor_a_time_or_an_age(text: str, expected: str | int) -> None:
    assert parse_start(text, NOW) == expected


@pytest.mark.parametrize(("text", "error"), [("", "missing_cursor"), ("2026-13-01", "bad_cursor")])
def test_what_is_none_of_them_is_refused(text: str, error: str) -> None:
    with refused(error):
        parse_start(text, NOW)
