"""Restores the order of seqs among messages of one conversation that several instances commit at once.

Two instances may commit seq 7 and 8 within a millisecond, and 8 may arrive first. Nothing is lost by that (clients
order by seq), but each client would wait and pull. A message is held back for a moment only in a conversation that was
active a moment ago: after a silence, the missing message may never have been published to this instance.
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


class _Expected(Struct):
    next_seq: int
    at: float
    held: dict[int, Callable[[], None]]
    timer: asyncio.TimerHandle | None = None


class SeqReorder:
    def __init__(self) -> None:
        self._places: OrderedDict[str, _Expected] = OrderedDict()

    def take(self, conversation_id: str, seq: int, push: Callable[[], None]) -> None:
        """Push now, or after the messages with lower seqs."""
        now = time.monotonic()
        place = self._places.get(conversation_id)
        if place is None:
            place = self._places[conversation_id] = _Expected(seq, now, {})
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
            self._push_next(place)

    def _push_next(self, place: _Expected) -> None:
        while (push := place.held.pop(place.next_seq, None)) is not None:
            place.next_seq += 1
            push()
        if not place.held and place.timer is not None:
            place.timer.cancel()
            place.timer = None

    def _release(self, place: _Expected) -> None:
        """Push what is held: the missing messages did not arrive in time, and clients pull them."""
        if place.timer is not None:
            place.timer.cancel()
            place.timer = None
        for seq in sorted(place.held):
            place.held.pop(seq)()
            place.next_seq = max(place.next_seq, seq + 1)
