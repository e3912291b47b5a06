"""A number of unread messages: the server's count at a seq, kept exact by what arrived and was read since."""

from __future__ import annotations

from collections.abc import Callable

from nexo_client.types import Message


class UnreadCounter:
    """Counts the messages above the read cursor, of those up to `upto`, that `counts` is true for."""

    def __init__(self, counts: Callable[[Message], bool]) -> None:
        self.counts = counts
        self.value = 0
        self.upto = 0
        self.is_stale = False  # the window does not hold enough to know it: the server has to be asked

    def set(self, value: int, upto: int) -> None:
        self.value, self.upto, self.is_stale = value, upto, False
