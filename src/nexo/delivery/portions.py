"""Large fan-outs in portions: one portion per turn of the event loop, so that a message to a group with thousands of
connected members delays nothing else by more than a few milliseconds.

Pushes of one conversation keep their order; conversations take turns.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized

import structlog

from nexo.metrics import families as f
from nexo.metrics.families import Sample

log = structlog.get_logger()

# Connections per turn: pushing and writing to one takes about 10 µs.
PORTION = 200
WAITING_MAX = 1_000_000  # users in all pushes that wait; 20,000 members and 50 messages behind each other

Push = Callable[[Sequence[str]], object]


class _Waiting:
    __slots__ = ("at", "done", "is_loss", "push", "users")

    def __init__(self, users: Sequence[str], push: Push, done: Callable[[], None] | None, is_loss: bool) -> None:
        self.users = users
        self.push = push
        self.done = done
        self.is_loss = is_loss
        self.at = 0  # users before this one are done


class Portions:
    def __init__(self, connections: Mapping[str, Sized], lost: Callable[[str, Sequence[str]], None]) -> None:
        """`connections` are those of each connected user. `lost` makes users of this instance resync a conversation;
        it is called for a portion at a time when there is no room for a push, or when one failed."""
        self._connections = connections
        self._lost = lost
        self._queues: OrderedDict[str, deque[_Waiting]] = OrderedDict()  # by conversation; next turn first
        self._waiting = 0
        self._is_scheduled = False

    def __contains__(self, conversation_id: str) -> bool:
        """Whether pushes of this conversation wait, and others have to wait behind them."""
        return conversation_id in self._queues

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(self._waiting, "fanout")
        yield f.QUEUE_LIMIT(WAITING_MAX, "fanout")

    def add(
        self, conversation_id: str, users: Sequence[str], push: Push, done: Callable[[], None] | None = None
    ) -> None:
        """Call `push` with some users at a time, behind earlier pushes of the conversation, then `done`."""
        if self._waiting + len(users) > WAITING_MAX:
            self.add_loss(conversation_id, users)
        else:
            self._append(conversation_id, _Waiting(users, push, done, False))

    def add_loss(self, conversation_id: str, users: Sequence[str]) -> None:
        """Make these users resync, behind earlier pushes of the conversation."""
        queue = self._queues.get(conversation_id)
        if queue and queue[-1].is_loss and not queue[-1].at:  # one RESYNC covers several lost pushes
            last = queue[-1]
            before = len(last.users)
            last.users = list(dict.fromkeys([*last.users, *users]))
            self._waiting += len(last.users) - before
        else:
            lost = self._lost
            entry = _Waiting(users, lambda part: lost(conversation_id, part), None, True)
            self._append(conversation_id, entry)

    def _append(self, conversation_id: str, entry: _Waiting) -> None:
        self._queues.setdefault(conversation_id, deque()).append(entry)
        self._waiting += len(entry.users)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Push one portion."""
        conversation_id, queue = next(iter(self._queues.items()))
        entry = queue[0]
        part = self._take(entry)
        try:
            entry.push(part)
            if entry.at == len(entry.users) and entry.done is not None:
                entry.done()
        except Exception:
            log.exception("push_failed", conversation_id=conversation_id)
            if not entry.is_loss:
                lost = self._lost
                rest = [*part, *entry.users[entry.at :]]
                self._waiting += len(part)
                queue[0] = _Waiting(rest, lambda part: lost(conversation_id, part), None, True)
                entry = queue[0]
        if entry.at == len(entry.users):
            queue.popleft()
        if queue:
            self._queues.move_to_end(conversation_id)
        else:
            del self._queues[conversation_id]
        self._is_scheduled = bool(self._queues)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._turn)

    def _take(self, entry: _Waiting) -> Sequence[str]:
        """Returns the next users with at most `PORTION` connections, or one user."""
        connections, users = self._connections, entry.users
        start = end = entry.at
        count = 0
        while end < len(users):
            count += len(connections.get(users[end], ()))
            if count > PORTION and end > start:
                break
            end += 1
            if end - start == PORTION:
                break
        entry.at = end
        self._waiting -= end - start
        return users[start:end]
