"""What one connection holds of one conversation, in constant memory while everything is in order."""

from __future__ import annotations

from nexo.bench.counts import Counts
from nexo.bench.frame import Frame
from nexo.bench.numbering import LENGTH, number_of


class Track:
    """Everything up to `contiguous`, and `ahead`. The digest covers each message held, in any order, so that what
    was pushed can be compared with what is stored without keeping either."""

    __slots__ = ("ahead", "base", "contiguous", "conversation_id", "digest", "head", "last_id", "last_numbers",
                 "last_push", "mine", "others", "receipt", "restless")  # fmt: skip

    def __init__(self, conversation_id: str, base: int = 0) -> None:
        self.conversation_id = conversation_id
        self.base = base
        self.contiguous = base
        self.ahead: set[int] = set()
        self.head = base  # as the server told it
        self.last_push = base
        self.last_id = 0
        self.last_numbers: dict[str, int] = {}
        self.digest = 0
        self.mine = 0  # own messages, known by their acknowledgement
        self.others = 0  # messages of others, each counted once
        self.receipt = 0  # up to here the author was told `delivered`
        self.restless = False  # reconnected or resynced: messages may come again

    def holds(self, seq: int) -> bool:
        return seq <= self.contiguous or seq in self.ahead

    def own(self, seq: int) -> bool:
        """An acknowledged message of one's own takes its place; False when that was taken."""
        if not self._place(seq):
            return False
        self.mine += 1
        return True

    def take(self, frame: Frame, counts: Counts, pulled: bool) -> bool:
        """True for a message that is new here."""
        seq = frame.msg_seq
        if not self._place(seq):
            if pulled or frame.resend or self.restless:
                counts.repeated += 1
            else:
                counts.duplicates += 1
            return False
        self.others += 1
        server_msg_id = frame.server_msg_id or "0"
        if frame.client_msg_id is not None:
            self.digest ^= digest_of(seq, server_msg_id, frame.client_msg_id, frame.body)
        # After a reconnect what was pushed meanwhile comes before what is sent again: only seqs tell the order then.
        if not (pulled or frame.resend or self.restless):
            self._check_order(frame, seq, server_msg_id, counts)
        return True

    def _place(self, seq: int) -> bool:
        if seq == self.contiguous + 1:
            self.contiguous = seq
            if self.ahead:
                while self.contiguous + 1 in self.ahead:
                    self.contiguous += 1
                    self.ahead.remove(self.contiguous)
            return True
        if seq <= self.contiguous or seq in self.ahead:
            return False
        self.ahead.add(seq)
        return True

    def _check_order(self, frame: Frame, seq: int, server_msg_id: str, counts: Counts) -> None:
        if seq < self.last_push:
            counts.reordered_by_seq += 1
        else:
            self.last_push = seq
        number_id = int(server_msg_id)
        if number_id < self.last_id:
            counts.reordered_by_id += 1
        else:
            self.last_id = number_id
        client_msg_id = frame.client_msg_id
        if client_msg_id is None or len(client_msg_id) != LENGTH:
            return
        person, number = client_msg_id[16:21], number_of(client_msg_id)
        if number < self.last_numbers.get(person, -1):
            counts.reordered_by_sender += 1
        else:
            self.last_numbers[person] = number

    def missing_below(self, head: int) -> int:
        return max(0, head - self.contiguous - sum(seq <= head for seq in self.ahead))


def digest_of(seq: int, server_msg_id: str, client_msg_id: str, body: object) -> int:
    """One message's part of the digest; comparable within a process only."""
    return hash((seq, server_msg_id, client_msg_id, body if type(body) is str else repr(body)))
