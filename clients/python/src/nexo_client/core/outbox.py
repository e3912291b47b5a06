"""Messages that were sent and are not saved yet: kept and repeated, in order per conversation. No I/O.

A lane holds the messages of one conversation. Several of them may be on the wire at once; after a transient refusal
or a missing answer the lane continues from the first unsaved message, so that a retry never ends up behind a later
message. A message with a file enters its lane when the file is uploaded, so that later texts do not wait for it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import convert, structs, to_builtins

from nexo_client.core.backoff import Backoff
from nexo_client.core.options import Options
from nexo_client.core.send_rate import SendRate
from nexo_client.errors import is_transient
from nexo_client.types import SendState, Upload


class OutboxItem:
    """A message on its way. `state` continues to `delivered` and `read` after it has left the outbox.

    `order` sorts by creation time; it is also the `client_msg_id`, unless the application chose one.
    """

    def __init__(
        self,
        order: str,
        conversation_id: str,
        fields: Mapping[str, Any],
        created_at: int,
        client_msg_id: str = "",
        upload: Upload | None = None,
    ) -> None:
        self.order = order
        self.client_msg_id = client_msg_id or order
        self.conversation_id = conversation_id
        self.fields = dict(fields)  # of the frame: to or groupId, body, …
        self.created_at = created_at
        self.upload = upload  # of its file, until that is complete
        self.uploaded_bytes = 0
        self.state: SendState = "sending" if upload is None else "uploading"
        self.reason: str | None = None
        self.detail = ""
        self.server_msg_id: str | None = None
        self.seq: int | None = None
        self.send_at: int | None = None
        self.expires_at: int | None = None
        self.is_stored = False  # in the storage: it may go on the wire
        self.was_on_wire = False
        self.on_wire_since: float | None = None  # unanswered on this connection
        self.attempts = 0

    def as_stored(self) -> dict[str, Any]:
        kept = {"conversation_id": self.conversation_id, "fields": self.fields, "created_at": self.created_at}
        kept |= {"order": self.order, "was_on_wire": self.upload is None, "reason": self.reason, "detail": self.detail}
        return kept if self.upload is None else kept | {"upload": to_builtins(self.upload)}

    @classmethod
    def from_stored(cls, client_msg_id: str, stored: Mapping[str, Any]) -> OutboxItem:
        order = stored.get("order", client_msg_id)
        upload = convert(stored["upload"], Upload) if stored.get("upload") else None
        item = cls(order, stored["conversation_id"], stored["fields"], stored["created_at"], client_msg_id, upload)
        item.is_stored = True
        item.was_on_wire = bool(stored.get("was_on_wire"))
        if stored.get("reason"):
            item.state, item.reason, item.detail = "failed", stored["reason"], stored.get("detail", "")
        return item


class _Lane:
    def __init__(self) -> None:
        self.waiting: list[OutboxItem] = []  # neither saved nor failed, in order
        self.paused_until = 0.0
        self.refusals = 0


class Outbox:
    def __init__(self, options: Options, rng: random.Random) -> None:
        self._max_in_flight = options.max_in_flight
        self._timeout_s = options.ack_timeout_ms / 1000
        self._backoff = Backoff(options, rng)
        self._rate = SendRate()
        self._lanes: dict[str, _Lane] = {}
        self._items: dict[str, OutboxItem] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[OutboxItem]:
        return iter(self._items.values())

    def get(self, client_msg_id: str | None) -> OutboxItem | None:
        return None if client_msg_id is None else self._items.get(client_msg_id)

    def items_of(self, conversation_id: str) -> list[OutboxItem]:
        """Returns the conversation's items in the order of sending, failed ones in their place."""
        return [item for item in self._items.values() if item.conversation_id == conversation_id]

    def add(self, item: OutboxItem) -> None:
        self._items[item.client_msg_id] = item
        if item.state == "sending":
            self._lane(item).waiting.append(item)

    def uploading(self) -> list[OutboxItem]:
        """Returns the items whose files are to be uploaded, in order."""
        return [item for item in self._items.values() if item.state == "uploading" and item.is_stored]

    def upload_began(self, item: OutboxItem, address: str) -> None:
        """Notes where the upload continues after a restart; empty: it begins again."""
        assert item.upload is not None
        item.upload = structs.replace(item.upload, address=address)

    def uploaded(self, item: OutboxItem, file_id: str) -> None:
        """Names the file in the message, which becomes the newest of its conversation. It is to be stored again."""
        item.fields["body"] = {"file_id": file_id} | item.fields["body"]
        item.upload, item.state, item.is_stored = None, "sending", False
        self._lane(item).waiting.append(item)

    def retry(self, item: OutboxItem) -> bool:
        """Sends a failed item once more, as the newest of its conversation; returns whether it had failed."""
        if item.state != "failed" or item.client_msg_id not in self._items:
            return False
        item.state, item.reason, item.detail = "sending" if item.upload is None else "uploading", None, ""
        item.attempts = 0
        item.is_stored = False  # the storage has it as failed
        del self._items[item.client_msg_id]
        self.add(item)
        return True

    def cancel(self, item: OutboxItem) -> bool:
        """Removes the item, unless the server may have stored it; returns whether it was removed."""
        if item.client_msg_id not in self._items or (item.state != "failed" and item.was_on_wire):
            return False
        self._remove(item)
        item.state, item.reason = "failed", "cancelled"
        return True

    def _remove(self, item: OutboxItem) -> None:
        self._items.pop(item.client_msg_id, None)
        lane = self._lanes.get(item.conversation_id)
        if lane is not None:
            if item in lane.waiting:
                lane.waiting.remove(item)
            if not lane.waiting:
                del self._lanes[item.conversation_id]

    def _lane(self, item: OutboxItem) -> _Lane:
        return self._lanes.setdefault(item.conversation_id, _Lane())

    # -- the wire ------------------------------------------------------------------------------------------

    def take(self, now: float) -> list[OutboxItem]:
        """Returns the items to send now, each lane in order; lanes share the places on the wire."""
        if not self._rate.may_send(now):
            return []
        room = self._max_in_flight - sum(1 for _ in self._on_wire())
        if self._rate.is_limited:
            room = min(room, 1)
        taken: list[OutboxItem] = []
        for lane in self._lanes.values():
            if now < lane.paused_until:
                continue
            for item in lane.waiting:
                if room <= len(taken) or not item.is_stored:
                    break
                if item.on_wire_since is None:
                    item.on_wire_since = now
                    item.was_on_wire = True
                    item.attempts += 1
                    taken.append(item)
        if taken:
            self._rate.sent(now)
        return taken

    def _on_wire(self) -> Iterator[tuple[_Lane, OutboxItem, float]]:
        """Yields the items on the wire, always the first few of a lane, and since when they are."""
        for lane in self._lanes.values():
            for item in lane.waiting:
                if item.on_wire_since is None:
                    break
                yield lane, item, item.on_wire_since

    def accepted(self, item: OutboxItem, now: float) -> bool:
        """Notes that the server has queued it; returns whether that is new. It stays here until it is saved."""
        item.on_wire_since = now
        was, item.state = item.state, "accepted"
        return was != "accepted"

    def refused(self, item: OutboxItem, reason: str, detail: str, retry_after_ms: int | None, now: float) -> bool:
        """Pauses the lane after a transient refusal, or fails the item; returns whether it failed."""
        lane = self._lanes.get(item.conversation_id)
        if lane is None or item not in lane.waiting:
            return False  # the answer to an earlier attempt
        if not is_transient(reason):
            self.failed(item, reason, detail)
            return True
        if reason == "too_many_requests":
            # The limit counts per user, not per conversation: all lanes slow down.
            self._rate.slow_down(now, self._backoff.pause_s(1, retry_after_ms))
        first = next(other for other in lane.waiting if other.was_on_wire)
        if item is first or lane.paused_until <= now:
            lane.refusals = lane.refusals + 1 if item is first else max(1, lane.refusals)
            lane.paused_until = now + self._backoff.pause_s(lane.refusals, retry_after_ms)
        self._rewind(lane, item)
        return False

    def failed(self, item: OutboxItem, reason: str, detail: str) -> None:
        """Fails the item until the application retries it. It stays in the outbox; its lane continues without it."""
        if item.upload is None:
            self._lane(item).waiting.remove(item)
        item.state, item.reason, item.detail = "failed", reason, detail
        item.on_wire_since = None

    @staticmethod
    def _rewind(lane: _Lane, start: OutboxItem) -> None:
        """Sends everything again from this item on."""
        for item in lane.waiting[lane.waiting.index(start) :]:
            item.on_wire_since = None

    def saved(self, item: OutboxItem) -> None:
        self._rate.saved()
        lane = self._lanes.get(item.conversation_id)
        if lane is not None:
            lane.refusals = 0
        self._remove(item)

    def disconnected(self) -> None:
        """Sends everything unanswered again on the next connection, in order."""
        for lane in self._lanes.values():
            lane.paused_until, lane.refusals = 0.0, 0
            for item in lane.waiting:
                item.on_wire_since = None

    def repeat_unanswered(self, now: float) -> None:
        """Rewinds the lanes whose answers are overdue."""
        late = [(lane, item) for lane, item, since in self._on_wire() if now - since >= self._timeout_s]
        for lane, item in late:
            self._rewind(lane, item)

    def deadline(self, now: float) -> float | None:
        """Returns when the outbox has something to do by itself."""
        due = [lane.paused_until for lane in self._lanes.values() if lane.paused_until > now]
        due += [since + self._timeout_s for _, _, since in self._on_wire()]
        if self._rate.is_limited and self._lanes and self._rate.next_at > now:
            due.append(self._rate.next_at)
        return min(due, default=None)

    def oldest_unanswered(self) -> float | None:
        return min((since for _, _, since in self._on_wire()), default=None)
