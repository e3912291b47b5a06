"""What was sent and is not saved yet: in order per conversation, kept until the server has it. No I/O.

A lane is one conversation's part. Several of its messages may be on the wire at once; after a transient refusal
or without an answer it goes on from the first that is not saved, so that a retry never ends up behind its
successors.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from nexo.client.failures import is_transient
from nexo.client.model import SendState
from nexo.client.options import Options

_INTERVAL_MIN_S, _INTERVAL_MAX_S = 0.04, 1.0
_SLOWED_S = 0.5  # refusals within this time are of one burst
_RECOVERY = 0.97  # of the interval is left after each message that is saved


class ClientMsgIds:
    """Time-ordered ids: sorted as text they are in the order in which they were made, also over a restart with
    a clock that went back."""

    def __init__(self) -> None:
        self._last = (0, 0)

    def seen(self, client_msg_id: str) -> None:
        """One that was found in the storage: new ones come after it."""
        time_part, _, rest = client_msg_id.partition("-")
        try:
            self._last = max(self._last, (int(time_part, 16), int(rest.partition("-")[0], 16)))
        except ValueError:
            return  # not one of ours

    def new(self, wall_ms: int) -> str:
        at, number = self._last
        self._last = (wall_ms, 0) if wall_ms > at else (at, number + 1)
        return f"{self._last[0]:012x}-{self._last[1]:06x}-{secrets.token_hex(6)}"


class Outgoing:
    """A message on its way, for whoever sent it. `state` goes on to delivered and read. `order` sorts by when it was
    made; it is also the id, unless the sender chose one."""

    def __init__(
        self, order: str, conversation_id: str, fields: Mapping[str, Any], created_at: int, client_msg_id: str = ""
    ) -> None:
        self.order = order
        self.client_msg_id = client_msg_id or order
        self.conversation_id = conversation_id
        self.fields = dict(fields)  # of the frame: to or groupId, body, …
        self.created_at = created_at
        self.state: SendState = "sending"
        self.reason: str | None = None
        self.detail = ""
        self.server_msg_id: str | None = None
        self.seq: int | None = None
        self.send_at: int | None = None
        self.is_stored = False  # in the storage: it may go on the wire
        self.was_on_wire = False
        self.on_wire_since: float | None = None  # unanswered on this connection
        self.attempts = 0

    def as_stored(self) -> dict[str, Any]:
        kept = {"conversation_id": self.conversation_id, "fields": self.fields, "created_at": self.created_at}
        return kept | {"order": self.order, "was_on_wire": True, "reason": self.reason, "detail": self.detail}

    @classmethod
    def from_stored(cls, client_msg_id: str, stored: Mapping[str, Any]) -> Outgoing:
        order = stored.get("order", client_msg_id)
        found = cls(order, stored["conversation_id"], stored["fields"], stored["created_at"], client_msg_id)
        found.is_stored = True
        found.was_on_wire = bool(stored.get("was_on_wire"))
        if stored.get("reason"):
            found.state, found.reason, found.detail = "failed", stored["reason"], stored.get("detail", "")
        return found

    @property
    def frame(self) -> dict[str, Any]:
        kind = "GROUP_CHAT" if "groupId" in self.fields else "SINGLE_CHAT"
        return {"type": kind, "clientMsgId": self.client_msg_id} | self.fields


class _Lane:
    def __init__(self) -> None:
        self.waiting: list[Outgoing] = []  # not saved and not failed, in order
        self.paused_until = 0.0
        self.refusals = 0


class Outbox:
    def __init__(self, options: Options, rng: random.Random) -> None:
        self._options = options
        self._rng = rng
        self._lanes: dict[str, _Lane] = {}
        self._all: dict[str, Outgoing] = {}
        self._interval_s = 0.0  # between sends, after the server said that they come too fast
        self._next_at = 0.0
        self._slowed_at = -1.0

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Outgoing]:
        return iter(self._all.values())

    def get(self, client_msg_id: str | None) -> Outgoing | None:
        return None if client_msg_id is None else self._all.get(client_msg_id)

    def of(self, conversation_id: str) -> list[Outgoing]:
        """In the order of sending, failed ones in their place."""
        return [outgoing for outgoing in self._all.values() if outgoing.conversation_id == conversation_id]

    def add(self, outgoing: Outgoing) -> None:
        self._all[outgoing.client_msg_id] = outgoing
        if outgoing.state != "failed":
            self._lane(outgoing).waiting.append(outgoing)

    def retry(self, outgoing: Outgoing) -> bool:
        """A failed one once more, as the newest of its conversation."""
        if outgoing.state != "failed" or outgoing.client_msg_id not in self._all:
            return False
        outgoing.state, outgoing.reason, outgoing.detail, outgoing.attempts = "sending", None, "", 0
        outgoing.is_stored = False  # that it failed is stored
        del self._all[outgoing.client_msg_id]
        self.add(outgoing)
        return True

    def cancel(self, outgoing: Outgoing) -> bool:
        """Out of the box, if it is surely not stored by the server."""
        if outgoing.client_msg_id not in self._all or (outgoing.state != "failed" and outgoing.was_on_wire):
            return False
        self.remove(outgoing)
        outgoing.state, outgoing.reason = "failed", "cancelled"
        return True

    def remove(self, outgoing: Outgoing) -> None:
        self._all.pop(outgoing.client_msg_id, None)
        lane = self._lanes.get(outgoing.conversation_id)
        if lane is not None:
            if outgoing in lane.waiting:
                lane.waiting.remove(outgoing)
            if not lane.waiting:
                del self._lanes[outgoing.conversation_id]

    def _lane(self, outgoing: Outgoing) -> _Lane:
        return self._lanes.setdefault(outgoing.conversation_id, _Lane())

    # -- the wire ------------------------------------------------------------------------------------------

    def take(self, now: float) -> list[Outgoing]:
        """What is to be sent now. Each lane in order; lanes share the places on the wire."""
        if self._interval_s and now < self._next_at:
            return []
        room = self._options.max_in_flight - sum(1 for _ in self._flying())
        if self._interval_s:
            room = min(room, 1)
        taken: list[Outgoing] = []
        for lane in self._lanes.values():
            if now < lane.paused_until:
                continue
            for outgoing in lane.waiting:
                if room <= len(taken) or not outgoing.is_stored:
                    break
                if outgoing.on_wire_since is None:
                    outgoing.on_wire_since = now
                    outgoing.was_on_wire = True
                    outgoing.attempts += 1
                    taken.append(outgoing)
        if taken:
            self._next_at = now + self._interval_s
        return taken

    def _flying(self) -> Iterator[tuple[_Lane, Outgoing, float]]:
        """What is on the wire, and since when: always the first few of a lane."""
        for lane in self._lanes.values():
            for outgoing in lane.waiting:
                if outgoing.on_wire_since is None:
                    break
                yield lane, outgoing, outgoing.on_wire_since

    def accepted(self, outgoing: Outgoing, now: float) -> bool:
        """In the server's queue; whether that was news. It stays here until it is saved."""
        outgoing.on_wire_since = now
        was, outgoing.state = outgoing.state, "accepted"
        return was != "accepted"

    def refused(self, outgoing: Outgoing, reason: str, detail: str, retry_after_ms: int | None, now: float) -> bool:
        """Whether that is the end of it."""
        lane = self._lanes.get(outgoing.conversation_id)
        if lane is None or outgoing not in lane.waiting:
            return False  # an answer to an attempt that nobody waits for any more
        if not is_transient(reason):
            self.failed(outgoing, reason, detail)
            return True
        if reason == "too_many_requests":
            self._slow_down(now, retry_after_ms)
        first = next(other for other in lane.waiting if other.was_on_wire)
        if outgoing is first or lane.paused_until <= now:
            lane.refusals = lane.refusals + 1 if outgoing is first else max(1, lane.refusals)
            lane.paused_until = now + self._pause_s(lane.refusals, retry_after_ms)
        self._rewind(lane, outgoing)
        return False

    def _slow_down(self, now: float, retry_after_ms: int | None) -> None:
        """The limit is the user's, not a conversation's: everything waits, and goes on one at a time. Who runs
        into it again and again is disconnected."""
        if now - self._slowed_at >= _SLOWED_S:
            self._slowed_at = now
            self._interval_s = min(_INTERVAL_MAX_S, max(_INTERVAL_MIN_S, 2 * self._interval_s))
        self._next_at = max(self._next_at, now + self._pause_s(1, retry_after_ms))

    def failed(self, outgoing: Outgoing, reason: str, detail: str) -> None:
        """For good, unless it is tried again on purpose. It stays in the box; its lane goes on without it."""
        self._lane(outgoing).waiting.remove(outgoing)
        outgoing.state, outgoing.reason, outgoing.detail = "failed", reason, detail
        outgoing.on_wire_since = None

    def _pause_s(self, refusals: int, retry_after_ms: int | None) -> float:
        options = self._options
        if retry_after_ms is not None:
            return retry_after_ms / 1000 * (1 + self._rng.random() / 4)
        longest_ms = min(options.backoff_max_ms, options.backoff_min_ms << min(refusals, 20))
        return longest_ms * (0.5 + self._rng.random() / 2) / 1000

    @staticmethod
    def _rewind(lane: _Lane, start: Outgoing) -> None:
        """From this one on everything is sent again."""
        for outgoing in lane.waiting[lane.waiting.index(start) :]:
            outgoing.on_wire_since = None

    def saved(self, outgoing: Outgoing) -> None:
        self._interval_s = self._interval_s * _RECOVERY if self._interval_s > _INTERVAL_MIN_S / 8 else 0.0
        lane = self._lanes.get(outgoing.conversation_id)
        if lane is not None:
            lane.refusals = 0
        self.remove(outgoing)

    def disconnected(self) -> None:
        """Whatever was not answered is sent again on the next connection, in order."""
        for lane in self._lanes.values():
            lane.paused_until, lane.refusals = 0.0, 0
            for outgoing in lane.waiting:
                outgoing.on_wire_since = None

    def repeat_unanswered(self, now: float) -> None:
        """Rewind the lanes that have waited too long for an answer."""
        timeout_s = self._options.ack_timeout_ms / 1000
        late = [(lane, outgoing) for lane, outgoing, since in self._flying() if now - since >= timeout_s]
        for lane, outgoing in late:
            self._rewind(lane, outgoing)

    def deadline(self, now: float) -> float | None:
        """When there is something to do by itself."""
        timeout_s = self._options.ack_timeout_ms / 1000
        due = [lane.paused_until for lane in self._lanes.values() if lane.paused_until > now]
        due += [since + timeout_s for _, _, since in self._flying()]
        if self._interval_s and self._lanes and self._next_at > now:
            due.append(self._next_at)
        return min(due, default=None)

    def oldest_unanswered(self) -> float | None:
        return min((since for _, _, since in self._flying()), default=None)
