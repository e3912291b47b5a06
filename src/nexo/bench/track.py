"""What one connection holds of one conversation, in constant memory while everything is in order."""

from __future__ import annotations

from typing import NamedTuple

from nexo.bench.counts import Counts
from nexo.bench.frame import Frame
from nexo.bench.numbering import LENGTH, number_of

STAMP_DIGITS = 16  # at the beginning of a body: when it was to be sent, in microseconds


class Facts(NamedTuple):
    """What is known of a message. Many members of a group receive the same one: it is decoded once."""

    digest: int
    server_msg_id: int
    sender: str  # and the number of the message among theirs, from its client_msg_id; empty when that has none
    number: int
    due: float  # when it was to be sent, from its body


def _find_facts(frame: Frame) -> Facts:
    server_msg_id, client_msg_id = frame.server_msg_id or "0", frame.client_msg_id
    digest = 0
    if client_msg_id is not None:
        digest = digest_of(frame.msg_seq, server_msg_id, client_msg_id, frame.body)
    sender, number = "", 0
    if client_msg_id is not None and len(client_msg_id) == LENGTH:
        sender, number = client_msg_id[16:21], number_of(client_msg_id)
    stamp = frame.body[:STAMP_DIGITS] if type(frame.body) is str else ""
    due = int(stamp) * 1e-6 if stamp.isdigit() else 0.0
    facts = frame.facts = Facts(digest, int(server_msg_id), sender, number, due)
    return facts


class Track:
    """Everything up to `contiguous`, and `ahead`. The digest covers each message held, in any order, so that what
    was pushed can be compared with what is stored without keeping either."""

    __slots__ = ("ahead", "base", "contiguous", "conversation_id", "digest", "head", "last_id", "last_numbers",
                 "last_push", "mine", "others", "reached_id", "receipt", "restless")  # fmt: skip

    def __init__(self, conversation_id: str, base: int = 0) -> None:
        self.conversation_id = conversation_id
        self.base = base
        self.contiguous = base
        self.ahead: set[int] = set()
        self.head = base  # as reported by the server
        self.last_push = base
        self.last_id = 0
        self.reached_id = 0  # of the last message of others that everything before is held of
        self.last_numbers: dict[str, int] = {}
        self.digest = 0
        self.mine = 0  # own messages, known by their acknowledgement
        self.others = 0  # messages of others, each counted once
        self.receipt = 0  # up to here the author has received `delivered`
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
        facts: Facts = frame.facts or _find_facts(frame)
        self.digest ^= facts.digest
        if seq == self.contiguous:
            self.reached_id = facts.server_msg_id
        # After a reconnect what was pushed meanwhile comes before what is sent again: only seqs show the order then.
        if not (pulled or frame.resend or self.restless):
            self._check_order(facts, seq, counts)
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

    def _check_order(self, facts: Facts, seq: int, counts: Counts) -> None:
        if seq < self.last_push:
            counts.reordered_by_seq += 1
        else:
            self.last_push = seq
        if facts.server_msg_id < self.last_id:
            counts.reordered_by_id += 1
        else:
            self.last_id = facts.server_msg_id
        if not facts.sender:
            return
        if facts.number < self.last_numbers.get(facts.sender, -1):
            counts.reordered_by_sender += 1
        else:
            self.last_numbers[facts.sender] = facts.number

    def missing_below(self, head: int) -> int:
        return max(0, head - self.contiguous - sum(seq <= head for seq in self.ahead))


def digest_of(seq: int, server_msg_id: str, client_msg_id: str, body: object) -> int:
    """One message's part of the digest; comparable within a process only."""
    return hash((seq, server_msg_id, client_msg_id, body if type(body) is str else repr(body)))
