"""The server's time, from the times in its frames: the clock of this device may be wrong. No I/O."""

from __future__ import annotations

from typing import Any


class ServerClock:
    """Relates seconds of the engine's clock to the server's milliseconds."""

    def __init__(self) -> None:
        self._ahead_ms = 0.0

    def set(self, now: float, date_ms: float) -> None:
        """Starts with the date of this device."""
        self._ahead_ms = date_ms - now * 1000

    def heard(self, now: float, server_ms: Any, is_present: bool) -> None:
        """Notes that a frame has named the server's present time, or one that has passed there."""
        if isinstance(server_ms, int) and (is_present or server_ms > self.at(now)):
            self._ahead_ms = server_ms - now * 1000

    def at(self, now: float) -> float:
        """Returns the server's time in ms."""
        return now * 1000 + self._ahead_ms

    def when(self, server_ms: float) -> float:
        """Returns when the server's clock shows that time, in seconds of the engine's clock."""
        return (server_ms - self._ahead_ms) / 1000
