"""Sends that wait to be written, in a queue and in lanes, each in the order of submission."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterable

import structlog
from msgspec import Struct

from nexo.core.events import Accepted
from nexo.core.model import Draft, Sent
from nexo.errors import NexoError
from nexo.ports import Origin, Outcome
from nexo.store.engine import UNKNOWN_GIVE_UP_S

log = structlog.get_logger()

Answer = Sent | NexoError
SenderKey = tuple[str, str]  # sender, conversation


class CommitterSettings(Struct, frozen=True):
    batch_max: int = 1024
    queue_max: int = 20_000
    deadline_s: float = 3.0
    linger_s: float = 0.0
    lanes_max: int = 4  # blocked conversations that are tried at the same time
    contacts_only: bool = False  # `policy.single_chat`


class Pending(Struct, eq=False):
    draft: Draft
    origin: Origin
    since: float
    number: int  # in the order of submission
    skips: int = 0  # how often another transaction held its conversation
    unknown_since: float | None = None  # a transaction with it may have been committed without an answer

    @property
    def place(self) -> SenderKey:
        return self.draft.sender_id, self.draft.conversation_id

    def is_late(self, now: float, deadline_s: float) -> bool:
        if self.draft.fence is not None:  # accepted: no client waits for this answer or sends it again
            return False
        if self.unknown_since is not None:  # not to be refused: it may be stored
            return now - self.unknown_since >= UNKNOWN_GIVE_UP_S
        return now - self.since >= deadline_s


class Waiter:
    """A caller that awaits the outcome (`ports.Origin`)."""

    output = address = None

    def __init__(self, done: asyncio.Future[Answer]) -> None:
        self._done = done

    def decided(self, outcome: Outcome) -> None:
        if not self._done.done():
            assert not isinstance(outcome, Accepted)
            self._done.set_result(outcome)


class Bound:
    """The number of drafts taken at once: halved after a batch that could not be written, doubled after success."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.now = most
        self.is_reduced = False

    def shrink(self, failed: int) -> None:
        self.now = failed // 2
        self.is_reduced = True

    def grow(self) -> None:
        self.now = min(self.now * 2, self._most)
        self.is_reduced = self.now < self._most


class Lines:
    """The queue, and a lane for each conversation that waits apart. A draft moves from the queue into its lane, never
    back, and a returned draft is inserted by its number. So the drafts of one sender to one conversation are in order
    in both, and those in the lane are before those in the queue."""

    def __init__(self) -> None:
        self.queue: deque[Pending] = deque()  # the event loop adds to it without the lock
        self.lanes: dict[str, deque[Pending]] = {}
        self.lock = threading.Lock()  # SQLite's writer thread also takes drafts and puts them back

    def take(self, most: int) -> list[Pending]:
        """Returns the oldest drafts of the queue. Drafts of a conversation with a lane move to the end of that lane.
        The caller holds the lock."""
        queue, lanes = self.queue, self.lanes
        # one by one: the event loop may append meanwhile
        taken = [queue.popleft() for _ in range(min(most, len(queue)))]
        if not lanes:
            return taken
        kept = []
        for pending in taken:
            lane = lanes.get(pending.draft.conversation_id)
            if lane is None:
                kept.append(pending)
            else:
                lane.append(pending)
        return kept

    def put_back(self, items: list[Pending], new_lanes: Iterable[str] = ()) -> None:
        """Insert each draft into the lane of its conversation, if there is one, or else into the queue."""
        queued: list[Pending] = []
        by_lane: dict[str, list[Pending]] = {}
        with self.lock:
            for conversation_id in new_lanes:
                self.lanes.setdefault(conversation_id, deque())
            for pending in items:
                conversation_id = pending.draft.conversation_id
                if conversation_id in self.lanes:
                    by_lane.setdefault(conversation_id, []).append(pending)
                else:
                    queued.append(pending)
            for conversation_id, some in by_lane.items():
                _insert(self.lanes[conversation_id], some)
            if queued:
                _insert(self.queue, queued)

    def take_lanes(self, conversation_ids: list[str], most: int) -> list[Pending]:
        items: list[Pending] = []
        with self.lock:
            for conversation_id in conversation_ids:
                lane = self.lanes[conversation_id]
                items += [lane.popleft() for _ in range(min(most - len(items), len(lane)))]
        return items

    def any_in_lanes(self, conversation_ids: list[str]) -> bool:
        """Returns whether drafts wait in these lanes; if not, closes the lanes."""
        with self.lock:
            if any(self.lanes[conversation_id] for conversation_id in conversation_ids):
                return True
            for conversation_id in conversation_ids:
                del self.lanes[conversation_id]
            return False

    def first_in_lane(self, conversation_id: str) -> Pending | None:
        """Returns the first draft of a lane; if there is none, closes the lane and returns None."""
        with self.lock:
            if lane := self.lanes[conversation_id]:
                return lane[0]
            del self.lanes[conversation_id]
            return None

    def close_lane(self, conversation_id: str) -> list[Pending]:
        """Closes a lane. Returns the drafts that waited in it."""
        with self.lock:
            return list(self.lanes.pop(conversation_id, ()))

    def remove_late(self, now: float, deadline_s: float, places: set[SenderKey]) -> list[Pending]:
        """Removes and returns drafts that are late, or of one of these senders and conversations."""
        late: list[Pending] = []
        with self.lock:
            # lanes first: drafts in the queue of the same sender and conversation were sent later
            lines = (*self.lanes.values(), self.queue)
            if places or any(line and now - line[0].since >= deadline_s for line in lines):
                for line in lines:
                    kept, refused = split_late(line, now, deadline_s, places)
                    if refused:
                        line.clear()
                        line.extend(kept)
                        late += refused
        return late

    def oldest(self) -> float | None:
        """Returns since when the oldest draft waits."""
        with self.lock:
            return min((line[0].since for line in (self.queue, *self.lanes.values()) if line), default=None)


def _number(pending: Pending) -> int:
    return pending.number


def _insert(line: deque[Pending], items: list[Pending]) -> None:
    """Insert drafts by their numbers. They are older than most of the line, and only its old end is touched: the event
    loop may append at the other end meanwhile."""
    items = sorted(items, key=_number)
    newest = items[-1].number
    while line and line[0].number < newest:
        items.append(line.popleft())
    items.sort(key=_number)
    line.extendleft(reversed(items))


def split_late(
    items: deque[Pending] | list[Pending], now: float, deadline_s: float, places: set[SenderKey]
) -> tuple[list[Pending], list[Pending]]:
    """Returns the drafts that stay, and those that are late or follow a late one; adds the latter's senders and
    conversations to `places`."""
    kept: list[Pending] = []
    late: list[Pending] = []
    for pending in items:
        place = pending.place
        # An accepted send is tried again by the instance that saves it, unless it may be stored already.
        follows = place in places and (pending.draft.fence is None or pending.unknown_since is None)
        if pending.is_late(now, deadline_s) or follows:
            places.add(place)
            late.append(pending)
        else:
            kept.append(pending)
    return kept, late


def call(pending: Pending, outcome: Answer) -> None:
    try:
        pending.origin.decided(outcome)
    except Exception:
        log.exception("answer_failed", client_msg_id=pending.draft.client_msg_id)
