"""Which SYNC was asked for and not answered, when the next one is due, and what it told of and is not here yet.
No I/O."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from nexo.client.options import Options


class Syncing:
    def __init__(self, options: Options) -> None:
        self._timeout_s = options.ack_timeout_ms / 1000
        self._numbers = itertools.count(1)
        self._page: tuple[str, float] | None = None  # request and time; the first page comes by itself
        self._entries: dict[str, float] = {}  # conversations that were asked for alone
        self._again_at: float | None = None
        self._again: set[str] | None = None  # None: all
        self._behind: dict[str, int] = {}  # told of at signing in, and up to where

    def forget(self) -> None:
        """The connection has ended."""
        self._page = self._again_at = self._again = None
        self._entries.clear()
        self._behind.clear()

    # -- pages -----------------------------------------------------------------------------------------------

    @property
    def waits_for_page(self) -> bool:
        return self._page is not None

    def expect_page(self, now: float) -> None:
        """The server sends it without being asked."""
        self._page = ("", now)

    def ask_page(self, now: float) -> str:
        """The id for the request."""
        self._page = (f"s-{next(self._numbers)}", now)
        return self._page[0]

    def all_pages_came(self) -> None:
        self._page = None

    def is_page(self, request_id: str | None) -> bool:
        return self._page is not None and self._page[0] == request_id

    def page_refused(self, again_at: float) -> None:
        self._page, self._again_at, self._again = None, again_at, None

    # -- single entries --------------------------------------------------------------------------------------

    def ask_entry(self, name: str, now: float) -> bool:
        """Whether it has to be asked for."""
        if name in self._entries:
            return False
        self._entries[name] = now
        return True

    def was_asked_alone(self, names: list[str]) -> bool:
        return len(names) == 1 and names[0] in self._entries

    def entry_came(self, name: str) -> None:
        self._entries.pop(name, None)

    def take_oldest_entry(self) -> str | None:
        """Answers come without a name when there is nothing to tell."""
        name = next(iter(self._entries), None)
        if name is not None:
            del self._entries[name]
        return name

    # -- once more -------------------------------------------------------------------------------------------

    def again(self, at: float, names: Iterable[str] | None) -> None:
        """RESYNC: for these conversations, or all."""
        chosen = set(names) if names else None
        if self._again_at is None:
            self._again_at, self._again = at, chosen
        elif chosen is None or self._again is None:
            self._again = None
        else:
            self._again |= chosen

    def take_again(self, now: float) -> tuple[bool, set[str]]:
        """Whether all conversations are due, and which ones alone."""
        if self._again_at is not None and now >= self._again_at:
            names, self._again, self._again_at = self._again, None, None
            return names is None, names or set()
        if self._page is not None and now >= self._page[1] + self._timeout_s:
            return True, set()
        late = {name for name, asked_at in self._entries.items() if now >= asked_at + self._timeout_s}
        for name in late:
            del self._entries[name]
        return False, late

    # -- what is behind --------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Everything that was told of at signing in is here."""
        return self._page is None and not self._behind

    @property
    def behind(self) -> list[str]:
        return list(self._behind)

    def is_behind(self, name: str, head_seq: int) -> None:
        self._behind[name] = head_seq

    def has(self, name: str, synced_seq: int) -> None:
        if synced_seq >= self._behind.get(name, 1 << 62):
            del self._behind[name]

    def give_up(self, name: str) -> None:
        self._behind.pop(name, None)

    # -- time ------------------------------------------------------------------------------------------------

    def oldest_asked(self) -> float | None:
        asked = list(self._entries.values()) + ([self._page[1]] if self._page is not None else [])
        return min(asked, default=None)

    def deadline(self) -> float | None:
        due = [asked_at + self._timeout_s for asked_at in self._entries.values()]
        if self._page is not None:
            due.append(self._page[1] + self._timeout_s)
        if self._again_at is not None:
            due.append(self._again_at)
        return min(due, default=None)
