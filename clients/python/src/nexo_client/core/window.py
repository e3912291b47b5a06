"""The messages of one conversation that are in memory: a part of the contiguous messages, of bounded size and without
gaps. `has_later` says that it does not reach the contiguous point, because the application paged back. No I/O."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from nexo_client.types import Message


class Window:
    def __init__(self, size: int) -> None:
        self.messages: list[Message] = []
        self.has_earlier = False
        self.has_later = False
        self.keeps_place = False  # a full window leaves new messages out instead of dropping its oldest
        self._size = size

    @property
    def first_seq(self) -> int | None:
        return self.messages[0].place if self.messages else None

    @property
    def last_seq(self) -> int | None:
        return self.messages[-1].place if self.messages else None

    def find(self, server_msg_id: str) -> Message | None:
        return next((message for message in reversed(self.messages) if message.server_msg_id == server_msg_id), None)

    def index_of(self, seq: int) -> int | None:
        index = bisect_left(self.messages, seq, key=lambda message: message.place)
        return index if index < len(self.messages) and self.messages[index].seq == seq else None

    def at(self, seq: int) -> Message | None:
        index = self.index_of(seq)
        return None if index is None else self.messages[index]

    def change(self, change: Callable[[Message], Message]) -> None:
        self.messages[:] = [change(message) for message in self.messages]

    def covers(self, first: int, last: int, synced_seq: int) -> bool:
        """Returns whether the window holds everything visible from `first` to `last`."""
        if first > last:
            return True
        begins = not self.has_earlier or (bool(self.messages) and self.messages[0].place <= first)
        end = self.last_seq if self.has_later else None
        return begins and last <= (synced_seq if end is None else end)

    def count(self, above: int, upto: int, counts: Callable[[Message], bool]) -> int:
        return sum(1 for message in self.messages if above < message.place <= upto and counts(message))

    # -- changes -------------------------------------------------------------------------------------------

    def append(self, message: Message) -> None:
        """Adds the next message in order, unless the window does not reach that far."""
        if self.keeps_place and len(self.messages) >= self._size:
            self.has_later = True
        if not self.has_later:
            self.messages.append(message)
            self._trim_front()

    def prepend(self, page: list[Message], has_earlier: bool) -> None:
        """Adds older messages, ascending, and drops the newest ones beyond the size."""
        self.messages[:0] = page
        self.has_earlier = has_earlier
        extra = len(self.messages) - self._size
        if extra > 0:
            del self.messages[-extra:]
            self.has_later = True

    def extend(self, page: list[Message]) -> None:
        """Adds newer messages, ascending, after paging back."""
        self.messages += page
        self._trim_front()

    def reset(self, messages: list[Message], has_earlier: bool, has_later: bool) -> None:
        self.messages = messages
        self.has_earlier, self.has_later = has_earlier, has_later
        self._trim_front()

    def _trim_front(self) -> None:
        extra = len(self.messages) - self._size
        if extra > 0:
            del self.messages[:extra]
            self.has_earlier = True
