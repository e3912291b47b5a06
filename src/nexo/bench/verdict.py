"""Checks whether the measured server was correct: histories against acknowledgements, and the counts of a run against
each other.

Pure: compares what was acknowledged with what was found, and notes each difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nexo.bench.counts import Counts, Proof
from nexo.bench.numbering import owner_of

FIRST_EVENT_TYPE = 100


class StoredRow(msgspec.Struct):
    """A message as a participant finds it in the history."""

    seq: int
    server_msg_id: str
    client_msg_id: str | None
    sender_id: str
    msg_type: int = 1
    content: Any = None


class Acknowledged(msgspec.Struct):
    """An acknowledgement to a sender: which message is stored at which seq."""

    client_msg_id: str
    server_msg_id: str
    sender_id: str


class Expectation(msgspec.Struct):
    """One conversation, as its senders know it."""

    conversation_id: str
    seed: int
    base_seq: int  # the head before the run
    acknowledged: dict[int, Acknowledged]  # by seq
    refused: set[str]  # client_msg_ids that surely are not stored
    in_doubt: set[str]  # sent, and never answered: may be there, once
    conflicts: list[str] = []  # two acknowledgements of one place
    is_group: bool = False


_Seen = tuple[int, str, str | None, str, Any]


class Comparison:
    """The histories of one conversation, one participant after the other: the first is checked against what was
    acknowledged, all further ones against the first. Differences are noted in `proof`."""

    def __init__(self, expected: Expectation, proof: Proof) -> None:
        self._expected = expected
        self._proof = proof
        self._first: tuple[str, list[_Seen]] | None = None
        proof.conversations += 1
        for conflict in expected.conflicts:
            proof.note("acknowledged twice", f"{expected.conversation_id}: {conflict}")

    def see(self, user_id: str, rows: Sequence[StoredRow]) -> None:
        proof = self._proof
        proof.histories += 1
        proof.messages += len(rows)
        seen = [(row.seq, row.server_msg_id, row.client_msg_id, row.sender_id, row.content) for row in rows]
        if self._first is None:
            self._first = (user_id, seen)
        elif seen == self._first[1]:
            return
        else:
            name, first = self._first
            place = next((i for i, (a, b) in enumerate(zip(seen, first, strict=False)) if a != b), None)
            where = f"from seq {min(seen[place][0], first[place][0])} on" if place is not None else "in their length"
            proof.note("histories differ", f"{self._expected.conversation_id}: those of {user_id} and {name} {where}")
        _check_rows(self._expected, user_id, rows, proof)


def _check_rows(expected: Expectation, user_id: str, rows: Sequence[StoredRow], proof: Proof) -> None:
    name = f"{expected.conversation_id} as {user_id}"
    _check_numbers(name, expected.base_seq, rows, proof)
    _check_once(name, rows, proof)
    _check_known(name, expected, rows, proof)
    _check_order(name, expected, rows, proof)


def _check_numbers(name: str, base_seq: int, rows: Sequence[StoredRow], proof: Proof) -> None:
    """Contiguous from the base on."""
    due = base_seq + 1
    for row in rows:
        if row.seq > due:
            proof.note("hole", f"{name}: {due}" + (f" to {row.seq - 1}" if row.seq > due + 1 else ""), row.seq - due)
        elif row.seq < due:
            proof.note("seq out of order", f"{name}: {row.seq} where {due} was due")
        due = max(due, row.seq + 1)


def _check_once(name: str, rows: Sequence[StoredRow], proof: Proof) -> None:
    places: dict[tuple[str, str | None], int] = {}
    for row in rows:
        for key in (("server_msg_id", row.server_msg_id), (row.sender_id, row.client_msg_id)):
            if key[1] is None:
                continue
            if key in places and places[key] != row.seq:
                proof.note("stored twice", f"{name}: {key[0]} {key[1]} at {places[key]} and {row.seq}")
            places[key] = row.seq


def _check_known(name: str, expected: Expectation, rows: Sequence[StoredRow], proof: Proof) -> None:
    """Checks that every acknowledged message is stored at its seq, and that there are no others."""
    found = {row.seq: row for row in rows}
    for seq, ack in expected.acknowledged.items():
        row = found.get(seq)
        if row is None:
            proof.note("acknowledged and not stored", f"{name}: seq {seq}, {ack.client_msg_id}")
        elif (row.client_msg_id, row.server_msg_id, row.sender_id) != (
            ack.client_msg_id,
            ack.server_msg_id,
            ack.sender_id,
        ):
            proof.note("not what was acknowledged", f"{name}: seq {seq} holds {row.client_msg_id} of {row.sender_id}")
    for row in rows:
        if row.seq in expected.acknowledged:
            continue
        if row.client_msg_id in expected.refused:
            proof.note("refused and stored", f"{name}: seq {row.seq}, {row.client_msg_id}")
        elif row.client_msg_id is None and row.msg_type >= FIRST_EVENT_TYPE and expected.is_group:
            continue  # an event: a group was created or joined
        elif row.client_msg_id not in expected.in_doubt:
            proof.note("foreign", f"{name}: seq {row.seq}, {row.client_msg_id} of {row.sender_id}")


def _check_order(name: str, expected: Expectation, rows: Sequence[StoredRow], proof: Proof) -> None:
    """Check that the messages of one connection are stored in the order in which they were sent."""
    last: dict[int, int] = {}
    for row in rows:
        owner = owner_of(expected.seed, row.client_msg_id)
        if owner is None:
            continue
        person, number = owner
        if number < last.get(person, -1):
            proof.note("sender's order", f"{name}: {row.sender_id}'s number {number} behind {last[person]}")
        last[person] = max(number, last.get(person, -1))


class Judgement(msgspec.Struct):
    ok: bool
    reasons: list[str]  # why not
    notes: list[str]  # what is worth knowing and no fault


def judge(
    counts: Counts,
    proof: Proof,
    *,
    histories_wanted: bool,
    allow_refusals: bool = False,
    allow_restarts: bool = False,
    one_server: bool = True,
    failures: Sequence[str] = (),
) -> Judgement:
    """Green only when everything is accounted for."""
    reasons = list(failures)
    notes: list[str] = []
    _unless(reasons, counts.unanswered, "sends were never answered")
    if counts.refused:
        (notes if allow_refusals else reasons).append(f"{counts.refused:,} sends were refused")
    if counts.saved + counts.refused + counts.unanswered != counts.sent:
        reasons.append(f"{counts.sent:,} sent, but {counts.saved:,} saved, {counts.refused:,} refused")
    if counts.answered != counts.asked:
        reasons.append(f"{counts.asked:,} questions, {counts.answered:,} answers")
    _unless(reasons, counts.missing, "deliveries are missing")
    if not counts.missing and counts.unique != counts.expected:
        reasons.append(f"{counts.expected:,} deliveries expected, {counts.unique:,} messages received")
    _unless(reasons, counts.duplicates, "messages arrived twice")
    _unless(reasons, counts.reordered_by_seq, "messages arrived out of the order of their seq")
    _unless(reasons, counts.reordered_by_sender, "messages arrived out of their sender's order")
    _unless(reasons if one_server else notes, counts.reordered_by_id, "server_msg_ids do not follow the seq")
    _unless(reasons, counts.foreign, "messages reached a wrong receiver, or match nothing that was sent")
    if counts.delivered < counts.receipts_due:
        reasons.append(f"{counts.receipts_due - counts.delivered:,} delivery receipts never reached the author")
    for reason, count in counts.lost.items():
        reasons.append(f"{count:,} connections were lost: {reason}")
    if counts.errors:
        text = "errors: " + ", ".join(f"{reason} {count:,}" for reason, count in counts.errors.items())
        (notes if allow_restarts or (counts.refused and allow_refusals) else reasons).append(text)
    for kind, count in proof.findings.items():
        reasons.append(f"histories: {kind}, {count:,} times")
    if histories_wanted and not proof.histories:
        reasons.append("no history was compared")
    elif proof.histories < proof.histories_of:
        notes.append(f"histories of {proof.histories:,} of {proof.histories_of:,} participants were pulled")
    if allow_restarts and counts.reconnects:
        notes.append(f"{counts.reconnects:,} times a client reconnected")
    if counts.repeated:
        notes.append(f"{counts.repeated:,} messages arrived again after a reconnect or resync, as they may")
    return Judgement(not reasons, reasons, notes)


def _unless(reasons: list[str], count: int, text: str) -> None:
    if count:
        reasons.append(f"{count:,} {text}")
