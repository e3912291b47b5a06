"""The contiguous part of one conversation: which messages are in order, which wait above a gap, what is missing.

No I/O. `synced_seq` is the contiguous point: everything visible up to it was given to the application.
"""

from __future__ import annotations

from collections.abc import Callable

from nexo_client.core.options import AHEAD_MAX
from nexo_client.types import Message


class Timeline:
    def __init__(self) -> None:
        self.is_known = False  # it is known where the conversation begins for this user
        self.synced_seq = 0
        self.head_seq = 0
        self._ahead: dict[int, Message] = {}  # above a gap
        self._provisional: dict[str, tuple[Message, float]] = {}
        self._lower_heads = 0

    @property
    def has_gap(self) -> bool:
        return self.is_known and (self.head_seq > self.synced_seq or bool(self._ahead))

    @property
    def needs_entry(self) -> bool:
        """Whether messages arrived before it is known where the conversation begins."""
        return not self.is_known and bool(self._ahead)

    @property
    def ahead(self) -> list[Message]:
        return list(self._ahead.values())

    def begin(self, seq: int) -> None:
        """Sets the contiguous point, at first or after a new membership began."""
        self.is_known = True
        self.synced_seq = seq
        for below in [below for below in self._ahead if below <= seq]:
            del self._ahead[below]

    def learn_head(self, head_seq: int) -> bool:
        """Notes the newest seq; returns whether there is a gap below it."""
        self.head_seq = max(self.head_seq, head_seq)
        return self.has_gap

    def accept(self, message: Message) -> list[Message]:
        """Takes a message above the contiguous point; returns the messages that are in order now."""
        seq = message.place
        if not self.is_known and seq == 1:
            self.is_known = True  # a new conversation
        if len(self._ahead) < AHEAD_MAX or seq == self.synced_seq + 1:
            self._ahead[seq] = message
        if self.is_known:
            self.head_seq = max(self.head_seq, seq)
        return self.drain()

    def drain(self) -> list[Message]:
        """Returns the messages that continue the contiguous part without a gap."""
        given: list[Message] = []
        if self.is_known:
            while (following := self._ahead.pop(self.synced_seq + 1, None)) is not None:
                self._advance(following)
                given.append(following)
        return given

    def take_below(self, seq: int) -> list[Message]:
        """Returns the waiting messages below `seq`: what is missing between them does not exist for this user."""
        given = [self._ahead.pop(below) for below in sorted(below for below in self._ahead if below < seq)]
        for message in given:
            self._advance(message)
        return given

    def skip_to(self, seq: int) -> bool:
        """Moves the contiguous point forward over places without messages; returns whether it moved."""
        if seq <= self.synced_seq:
            return False
        self.synced_seq = seq
        return True

    def _advance(self, message: Message) -> None:
        self.synced_seq = message.place
        self.head_seq = max(self.head_seq, self.synced_seq)

    def settle_head(self, head_seq: int) -> None:
        """Compares the known head with the one that the last page of a pull named. A lower one is believed only the
        second time: the pull may have been answered just before the newest message was stored."""
        if max(head_seq, self.synced_seq) >= self.head_seq:
            self._lower_heads = 0
            return
        self._lower_heads += 1
        if self._lower_heads > 1:
            self.abandon_gap()

    def abandon_gap(self) -> None:
        """Gives up what is missing: the server does not have it, or not for this user."""
        self._lower_heads = 0
        self.head_seq = self.synced_seq
        self._ahead.clear()

    def find_ahead(self, server_msg_id: str) -> Message | None:
        return next((message for message in self._ahead.values() if message.server_msg_id == server_msg_id), None)

    def change_ahead(self, change: Callable[[Message], Message]) -> None:
        self._ahead = {seq: change(message) for seq, message in self._ahead.items()}

    # -- provisional copies --------------------------------------------------------------------------------

    @property
    def provisional(self) -> list[Message]:
        return [message for message, _ in self._provisional.values()]

    @property
    def next_expiry(self) -> float | None:
        return min((until for _, until in self._provisional.values()), default=None)

    def hold_provisional(self, message: Message, until: float) -> bool:
        """Returns whether it is new."""
        if message.server_msg_id in self._provisional:
            return False
        self._provisional[message.server_msg_id] = (message, until)
        return True

    def drop_provisional(self, server_msg_id: str) -> bool:
        """Returns whether there was one."""
        return self._provisional.pop(server_msg_id, None) is not None

    def expire_provisional(self, now: float) -> bool:
        """Drops the copies that were held long enough; returns whether there were any."""
        expired = [server_msg_id for server_msg_id, (_, until) in self._provisional.items() if until <= now]
        for server_msg_id in expired:
            del self._provisional[server_msg_id]
        return bool(expired)
