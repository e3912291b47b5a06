"""Calls between two users: states, outcomes, and what is stored and shown of a call. Pure."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from msgspec import Struct

SDP_MAX_CHARS = 65_000
CANDIDATES_MAX = 64  # kept per side while a call rings
CANDIDATE_MAX_BYTES = 2048
REASON_MAX_CHARS = 32

KINDS = {"audio": 1, "video": 2}
KIND_NAMES = {number: name for name, number in KINDS.items()}


class CallState(IntEnum):
    RINGING = 0
    ACTIVE = 1
    ENDED = 2


class Outcome(IntEnum):
    NONE = 0
    COMPLETED = 1
    MISSED = 2
    REJECTED = 3
    CANCELED = 4
    FAILED = 5


STATE_NAMES: dict[int, str] = {state: state.name.lower() for state in CallState}
OUTCOME_NAMES: dict[int, str] = {outcome: outcome.name.lower() for outcome in Outcome if outcome is not Outcome.NONE}
COUNTED = frozenset((Outcome.MISSED, Outcome.CANCELED))  # their records count as unread


class Ending(IntEnum):
    """Why a call ends."""

    REJECT = 1
    CANCEL = 2
    HANG_UP = 3
    TIME_OUT = 4
    CALLER_GONE = 5
    CALLEE_GONE = 6
    TOO_LONG = 7


class Device(NamedTuple):
    """A connection that takes part in a call: where it is, and its session, by which it is known again after it has
    reconnected."""

    address: str  # instance and connection
    sid: str


class UserCall(Struct, frozen=True):
    """A call without what its devices exchange."""

    call_id: int
    conversation_id: str
    caller_id: str
    callee_id: str
    kind: int
    state: int
    outcome: int
    created_at: int
    answered_at: int
    ended_at: int
    record_id: int | None  # the message about it, once it has ended

    @property
    def duration_ms(self) -> int:
        return self.ended_at - self.answered_at if self.ended_at and self.answered_at else 0

    def peer_of(self, user_id: str) -> str:
        return self.callee_id if user_id == self.caller_id else self.caller_id


class CallShape(Struct, frozen=True):
    """A call in the HTTP API and in the journal. `server_msg_id` is that of its record."""

    call_id: str
    conversation_id: str
    caller_id: str
    callee_id: str
    kind: str
    state: str
    outcome: str | None
    created_at: int
    answered_at: int | None
    ended_at: int | None
    duration_ms: int
    server_msg_id: str | None


def call_shape(call: UserCall) -> CallShape:
    return CallShape(
        str(call.call_id),
        call.conversation_id,
        call.caller_id,
        call.callee_id,
        KIND_NAMES[call.kind],
        STATE_NAMES[call.state],
        OUTCOME_NAMES.get(call.outcome),
        call.created_at,
        call.answered_at or None,
        call.ended_at or None,
        call.duration_ms,
        None if call.record_id is None else str(call.record_id),
    )


def outcome_of(state: int, ending: Ending, *, by_caller: bool, reason: str) -> Outcome:
    """Returns how a call that is in this state ends."""
    if state == CallState.ACTIVE:
        is_lost = ending in (Ending.CALLER_GONE, Ending.CALLEE_GONE)
        return Outcome.FAILED if is_lost or reason == "failed" else Outcome.COMPLETED
    if ending is Ending.REJECT or (ending is Ending.HANG_UP and not by_caller):
        return Outcome.REJECTED
    if ending in (Ending.CANCEL, Ending.HANG_UP, Ending.CALLER_GONE):
        return Outcome.CANCELED
    return Outcome.MISSED


def end_reason(state: int, ending: Ending, outcome: Outcome, reason: str) -> str:
    """Returns the reason that the participants' devices get."""
    if ending in (Ending.CALLER_GONE, Ending.CALLEE_GONE):
        return "connection_lost"
    if ending is Ending.TOO_LONG:
        return "too_long"
    if state == CallState.RINGING:
        return OUTCOME_NAMES[outcome]
    return reason or "ended"


def is_reason(text: str) -> bool:
    """Returns whether a client may give this as the reason of an end: a word."""
    return 0 < len(text) <= REASON_MAX_CHARS and text.isascii() and text.replace("_", "").isalnum()


class OpenCall(NamedTuple):
    """A call that has not ended, as the watch over calls sees it."""

    call_id: int
    caller_id: str
    callee_id: str
    state: int
    created_at: int
    ring_until: int
    answered_at: int
    caller_gone_at: int
    callee_gone_at: int


class NewCall(NamedTuple):
    """An invitation that was checked."""

    call_id: int
    caller_id: str
    callee_id: str
    kind: int
    sdp: str
    client_msg_id: str
    digest: str  # of the request, by which a retry is known
    device: Device
    ring_ms: int
    is_reachable: bool


class CallRules(NamedTuple):
    contacts_only: bool


Candidate = dict[str, Any]  # `candidate` and what belongs to it, as the client sent it


class MissedCall(NamedTuple):
    """What a device that has connected during a call may have missed: the invitation with the caller's candidates, or
    that it was answered."""

    call: UserCall
    sdp: str
    candidates: list[Candidate]
    is_answer: bool
