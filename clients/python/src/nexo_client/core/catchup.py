"""What has to be fetched: SYNC pages and entries that were requested, and pulls for gaps, a few at a time. No I/O."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import NamedTuple

from nexo_client.core.options import PULLS_MAX, Options


class SyncRequests:
    """SYNC requests without an answer, when the next one is due, and which conversations are still behind."""

    def __init__(self, options: Options) -> None:
        self._timeout_s = options.ack_timeout_ms / 1000
        self._numbers = itertools.count(1)
        self._page: tuple[str, float] | None = None  # request id and time; the first page comes without a request
        self._entries: dict[str, float] = {}  # conversations that were requested alone
        self._again_at: float | None = None
        self._again: set[str] | None = None  # None: all conversations
        self._behind: dict[str, int] = {}  # known at signing in, and up to which seq

    def clear(self) -> None:
        """Forgets all requests after the connection has ended."""
        self._page = self._again_at = self._again = None
        self._entries.clear()
        self._behind.clear()

    # -- pages -----------------------------------------------------------------------------------------------

    @property
    def waits_for_page(self) -> bool:
        return self._page is not None

    def expect_page(self, now: float) -> None:
        """Waits for the first page, which the server sends by itself."""
        self._page = ("", now)

    def request_page(self, now: float) -> str:
        """Returns the id for the request."""
        self._page = (f"s-{next(self._numbers)}", now)
        return self._page[0]

    def last_page_arrived(self) -> None:
        self._page = None

    def is_page(self, request_id: str | None) -> bool:
        return self._page is not None and self._page[0] == request_id

    def page_refused(self, again_at: float) -> None:
        self._page, self._again_at, self._again = None, again_at, None

    # -- single entries --------------------------------------------------------------------------------------

    def request_entry(self, conversation_id: str, now: float) -> bool:
        """Returns whether a request has to be sent."""
        if conversation_id in self._entries:
            return False
        self._entries[conversation_id] = now
        return True

    def was_requested_alone(self, conversation_ids: list[str]) -> bool:
        return len(conversation_ids) == 1 and conversation_ids[0] in self._entries

    def entry_arrived(self, conversation_id: str) -> None:
        self._entries.pop(conversation_id, None)

    def take_oldest_entry(self) -> str | None:
        """Returns the conversation that an empty answer belongs to: such an answer does not name it."""
        oldest = next(iter(self._entries), None)
        if oldest is not None:
            del self._entries[oldest]
        return oldest

    # -- again -----------------------------------------------------------------------------------------------

    def again(self, at: float, conversation_ids: Iterable[str] | None) -> None:
        """Plans another SYNC, of these conversations or of all."""
        chosen = set(conversation_ids) if conversation_ids else None
        if self._again_at is None:
            self._again_at, self._again = at, chosen
        elif chosen is None or self._again is None:
            self._again = None
        else:
            self._again |= chosen

    def take_again(self, now: float) -> tuple[bool, set[str]]:
        """Returns whether all conversations are due, and which ones are due alone."""
        if self._again_at is not None and now >= self._again_at:
            chosen, self._again, self._again_at = self._again, None, None
            return chosen is None, chosen or set()
        if self._page is not None and now >= self._page[1] + self._timeout_s:
            return True, set()
        late = {one for one, requested_at in self._entries.items() if now >= requested_at + self._timeout_s}
        for conversation_id in late:
            del self._entries[conversation_id]
        return False, late

    # -- conversations that are behind -----------------------------------------------------------------------

    @property
    def is_caught_up(self) -> bool:
        """Whether everything that the server reported at signing in is here."""
        return self._page is None and not self._behind

    @property
    def behind(self) -> list[str]:
        return list(self._behind)

    def is_behind(self, conversation_id: str, head_seq: int) -> None:
        self._behind[conversation_id] = head_seq

    def progressed(self, conversation_id: str, synced_seq: int) -> None:
        if synced_seq >= self._behind.get(conversation_id, 1 << 62):
            del self._behind[conversation_id]

    def give_up(self, conversation_id: str) -> None:
        self._behind.pop(conversation_id, None)

    # -- time ------------------------------------------------------------------------------------------------

    def oldest_request(self) -> float | None:
        requested = list(self._entries.values()) + ([self._page[1]] if self._page is not None else [])
        return min(requested, default=None)

    def deadline(self) -> float | None:
        due = [requested_at + self._timeout_s for requested_at in self._entries.values()]
        if self._page is not None:
            due.append(self._page[1] + self._timeout_s)
        if self._again_at is not None:
            due.append(self._again_at)
        return min(due, default=None)


class _Pull(NamedTuple):
    request_id: str
    requested_at: float


class PullRequests:
    """When to pull the gaps of which conversation: after a wait, and again when there is no answer."""

    def __init__(self, options: Options, rng: random.Random) -> None:
        self._wait_s = options.gap_wait_ms / 1000
        self._timeout_s = options.ack_timeout_ms / 1000
        self._rng = rng
        self._numbers = itertools.count(1)
        self._due: dict[str, float] = {}  # conversation → when to pull
        self._pulls: dict[str, _Pull] = {}
        self._failures: dict[str, int] = {}

    def clear(self) -> None:
        """Forgets all requests after the connection has ended."""
        self._due.clear()
        self._pulls.clear()
        self._failures.clear()

    def gap_seen(self, conversation_id: str, now: float, progressed: bool = False) -> None:
        """Plans a pull after a wait: the missing messages are probably on their way. The wait starts again while
        messages keep arriving."""
        if conversation_id not in self._pulls and (progressed or conversation_id not in self._due):
            self._due[conversation_id] = now + self._wait_s * (1 + self._rng.random() / 2)

    def pull_at(self, conversation_id: str, when: float) -> None:
        """Plans a pull for that time, whatever was planned before."""
        if conversation_id not in self._pulls:
            self._due[conversation_id] = when

    def pull_now(self, conversation_id: str, now: float) -> None:
        """Ends the wait for a planned pull."""
        if conversation_id in self._due:
            self._due[conversation_id] = now

    def gap_filled(self, conversation_id: str) -> None:
        self._due.pop(conversation_id, None)

    def take(self, now: float) -> list[tuple[str, str]]:
        """Returns the conversations to pull now, each with the id for the request."""
        taken = []
        for conversation_id, at in sorted(self._due.items(), key=lambda item: item[1]):
            if at > now or len(self._pulls) >= PULLS_MAX:
                break
            del self._due[conversation_id]
            request_id = f"p-{next(self._numbers)}"
            self._pulls[conversation_id] = _Pull(request_id, now)
            taken.append((conversation_id, request_id))
        return taken

    def not_needed(self, conversation_id: str) -> None:
        """Forgets a pull whose gap was filled before it was sent."""
        self._pulls.pop(conversation_id, None)

    def answered(self, conversation_id: str) -> bool:
        """Returns whether an answer was awaited."""
        self._failures.pop(conversation_id, None)
        return self._pulls.pop(conversation_id, None) is not None

    def refused(self, conversation_id: str) -> int:
        """Returns the number of refusals in a row."""
        self._pulls.pop(conversation_id, None)
        self._failures[conversation_id] = self._failures.get(conversation_id, 0) + 1
        return self._failures[conversation_id]

    def conversation_of(self, request_id: str | None) -> str | None:
        return next((one for one, pull in self._pulls.items() if pull.request_id == request_id), None)

    def repeat_late(self, now: float) -> None:
        for conversation_id, pull in list(self._pulls.items()):
            if now >= pull.requested_at + self._timeout_s:
                del self._pulls[conversation_id]
                self._due[conversation_id] = now

    def oldest_request(self) -> float | None:
        return min((pull.requested_at for pull in self._pulls.values()), default=None)

    def deadline(self) -> float | None:
        due = [pull.requested_at + self._timeout_s for pull in self._pulls.values()]
        if len(self._pulls) < PULLS_MAX:
            due += self._due.values()
        return min(due, default=None)
