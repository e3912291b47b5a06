"""The answers to a connection's sends leave in the order of the sends, per conversation."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

Slot = list[bytes | None]  # the place of an answer, empty until it is known


class Answers:
    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues: dict[str, deque[Slot]] = {}

    def reserve(self, name: str, slot: Slot) -> None:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = deque()
        queue.append(slot)

    def fill(self, name: str, slot: Slot, payload: bytes) -> Sequence[bytes]:
        """What may leave now: this answer, if none before it is missing, and those that waited for it."""
        queue = self._queues[name]
        if queue[0] is not slot:
            slot[0] = payload
            return ()
        queue.popleft()
        if not queue:
            del self._queues[name]
            return (payload,)
        ready = [payload]
        while queue and (first := queue[0][0]) is not None:
            ready.append(first)
            queue.popleft()
        if not queue:
            del self._queues[name]
        return ready

    def wait(self, name: str, payload: bytes) -> bool:
        """Put an answer behind those that are missing; False when none is, and it may leave at once."""
        queue = self._queues.get(name)
        if queue:
            queue.append([payload])
        return bool(queue)
