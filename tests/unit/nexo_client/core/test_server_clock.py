"""The server's time is known from its frames, whatever this device's clock shows."""

from __future__ import annotations

from nexo_client.core.server_clock import ServerClock


def test_a_clock_that_is_behind_is_corrected_by_any_time_and_one_that_is_ahead_by_the_present_one() -> None:
    clock = ServerClock()
    clock.set(10.0, 1_000_000)
    assert clock.at(10.5) == 1_000_500
    clock.heard(11.0, 900_000, False)  # the time of an old message says nothing
    assert clock.at(11.0) == 1_001_000
    clock.heard(11.0, 1_060_000, False)
    assert clock.at(12.0) == 1_061_000
    clock.heard(12.0, 1_050_000, True)
    assert clock.at(12.0) == 1_050_000
    assert clock.when(1_051_000) == 13.0
    clock.heard(12.0, None, True)
    assert clock.at(12.0) == 1_050_000
