"""What several instances say in one conversation is pushed in the order of its seqs, as far as waiting a moment
can do that.

Two instances may commit seq 7 and 8 within a millisecond, and 8 may arrive first. Nothing is lost by that
(clients order by seq), but each of them would wait and ask. Only a conversation in which something happened a
moment ago is known well enough to wait: after a silence, what is missing may never have been for this instance.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

CONVERSATIONS_MAX = 20_000
KNOWN_S = 2.0
WAIT_S = 0.1
HELD_MAX = 200


class _Place(Struct):
    next_seq: int
    at: float
    held: dict[int, Callable[[], None]]
    timer: asyncio.TimerHandle | None = None


class Turns:
    def __init__(self) -> None:
        self._places: OrderedDict[str, _Place] = OrderedDict()

    def take(self, conversation_id: str, seq: int, push: Callable[[], None]) -> None:
        """Push now, or after what comes before it."""
        now = time.monotonic()
        place = self._places.get(conversation_id)
        if place is None:
            place = self._places[conversation_id] = _Place(seq, now, {})
            if len(self._places) > CONVERSATIONS_MAX:
                _, dropped = self._places.popitem(last=False)
                self._release(dropped)
        else:
            self._places.move_to_end(conversation_id)
        if seq > place.next_seq and (place.held or now - place.at < KNOWN_S) and len(place.held) < HELD_MAX:
            place.held[seq] = push
            if place.timer is None:
                place.timer = asyncio.get_running_loop().call_later(WAIT_S, self._release, place)
            return
        push()
        place.at = now
        if seq >= place.next_seq:
            place.next_seq = seq + 1
        if place.held:
            self._go_on(place)

    def _go_on(self, place: _Place) -> None:
        while (push := place.held.pop(place.next_seq, None)) is not None:
            place.next_seq += 1
            push()
        if not place.held and place.timer is not None:
            place.timer.cancel()
            place.timer = None

    def _release(self, place: _Place) -> None:
        """What was waited for does not come: whoever gets these asks for it."""
        if place.timer is not None:
            place.timer.cancel()
            place.timer = None
        for seq in sorted(place.held):
            place.held.pop(seq)()
            place.next_seq = max(place.next_seq, seq + 1)
