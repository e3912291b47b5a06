"""The interval between sends after the server refused some as too fast: doubled at once, shortened bit by bit."""

from __future__ import annotations

_INTERVAL_MIN_S, _INTERVAL_MAX_S = 0.04, 1.0
_NEGLIGIBLE_S = _INTERVAL_MIN_S / 8
_BURST_S = 0.5  # refusals within this time belong to one burst
_RECOVERY = 0.97  # part of the interval that remains after each saved message


class SendRate:
    def __init__(self) -> None:
        self.next_at = 0.0
        self._interval_s = 0.0
        self._slowed_at = -1.0

    @property
    def is_limited(self) -> bool:
        """Whether messages go out one at a time."""
        return self._interval_s > 0

    def may_send(self, now: float) -> bool:
        return not self.is_limited or now >= self.next_at

    def sent(self, now: float) -> None:
        self.next_at = now + self._interval_s

    def slow_down(self, now: float, pause_s: float) -> None:
        if now - self._slowed_at >= _BURST_S:
            self._slowed_at = now
            self._interval_s = min(_INTERVAL_MAX_S, max(_INTERVAL_MIN_S, 2 * self._interval_s))
        self.next_at = max(self.next_at, now + pause_s)

    def saved(self) -> None:
        self._interval_s = self._interval_s * _RECOVERY if self._interval_s > _NEGLIGIBLE_S else 0.0
