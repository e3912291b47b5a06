"""Calls as scripts. The row of a call is the lock of its changes; the seats of its two users, which every engine keeps
unique, make sure that a user takes part in one call at a time and that two who call each other share one.

Offer, answer and candidates are erased by the transaction after which no device can need them. The end of a call and
its record in the conversation are one transaction: there is exactly one record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from nexo.core.calls import (
    CANDIDATES_MAX,
    COUNTED,
    KIND_NAMES,
    OUTCOME_NAMES,
    CallRules,
    CallState,
    Candidate,
    Device,
    Ending,
    MissedCall,
    NewCall,
    OpenCall,
    Outcome,
    UserCall,
    outcome_of,
)
from nexo.core.model import Conversation, Message, MsgType
from nexo.core.policy import check_may_send
from nexo.core.unread import step_over_own
from nexo.errors import NexoError
from nexo.ids import single_conversation_id
from nexo.store.conversations import append_event, lock_conversation, lock_member, read_member, save_conversation
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.journal import writing
from nexo.store.sql import Sql

_FIELDS = UserCall.__struct_fields__
_CALL = ",".join(_FIELDS)
_DEVICES = "caller_address,caller_sid,callee_address,callee_sid"
_ERASED = "offer=NULL,caller_candidates=NULL,callee_candidates=NULL"

_candidates = msgspec.json.Decoder(list[Candidate]).decode
_encode = msgspec.json.Encoder().encode


class LockedCall(NamedTuple):
    call: UserCall
    caller: Device
    callee: Device  # empty while it rings


class StoredInvitation(NamedTuple):
    """`is_new`: it was stored now. `is_crossed`: the other user's call, which was stored first, stands."""

    call: UserCall
    is_new: bool
    is_crossed: bool = False
    sdp: str = ""
    kind: str = ""


class Finish(NamedTuple):
    """How a call is to end: by whom (none: by the server), and the reason that a client gave."""

    ending: Ending
    user_id: str = ""
    reason: str = ""
    at: int = 0  # when it ended for its users, if earlier than now


class Finished(NamedTuple):
    before: LockedCall
    call: UserCall
    record: Message
    conversation: Conversation


def call_from(row: Any) -> UserCall:
    return UserCall(*tuple(row)[: len(_FIELDS)])


def read_calls(sql: Sql, call_ids: list[int]) -> Script[dict[int, UserCall]]:
    chosen = sql.one_of("call_id", call_ids, "bigint")
    found = yield query(f"SELECT {_CALL} FROM calls WHERE {chosen.sql}", *chosen.params)
    return {row[0]: call_from(row) for row in found}


# -- ringing --------------------------------------------------------------------------------------------


def invite(sql: Sql, new: NewCall, rules: CallRules) -> Script[StoredInvitation | None]:
    """Stores a call that rings. Repeated, it is the same call. None: the chat of the two has to be created first."""
    known = yield query(
        f"SELECT {_CALL},digest FROM calls WHERE caller_id=? AND client_msg_id=?", new.caller_id, new.client_msg_id
    )
    if known:
        call = call_from(known[0])
        if tuple(known[0])[-1] != new.digest:
            raise NexoError("client_msg_id_reused")
        return StoredInvitation(call, call.call_id == new.call_id)
    conversation_id = single_conversation_id(new.caller_id, new.callee_id)
    conversation, member = yield from read_member(conversation_id, new.caller_id)
    if conversation is None:
        return None
    now_ms = yield NOW
    check_may_send(conversation, member, now_ms, contacts_only=rules.contacts_only)
    crossing = yield from _check_seats(sql, new)
    if crossing is not None:
        return crossing
    if not new.is_reachable:
        raise NexoError("callee_offline")
    call = UserCall(
        new.call_id, conversation_id, new.caller_id, new.callee_id, new.kind, int(CallState.RINGING),
        int(Outcome.NONE), now_ms, 0, 0, None,
    )  # fmt: skip
    for user_id in sorted((new.caller_id, new.callee_id)):
        yield do("INSERT INTO call_seats (user_id,call_id) VALUES (?,?)", user_id, new.call_id)
    yield do(
        "INSERT INTO calls (call_id,conversation_id,caller_id,callee_id,client_msg_id,digest,kind,created_at,"
        "ring_until,caller_address,caller_sid,offer) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        new.call_id,
        conversation_id,
        new.caller_id,
        new.callee_id,
        new.client_msg_id,
        new.digest,
        new.kind,
        now_ms,
        now_ms + new.ring_ms,
        new.device.address,
        new.device.sid,
        new.sdp,
    )
    yield from writing.note(now_ms, writing.call(new.call_id, "started"))
    return StoredInvitation(call, True)


def _check_seats(sql: Sql, new: NewCall) -> Script[StoredInvitation | None]:
    """Returns the ringing call of the callee to the caller, if that was stored first. Raises `busy`."""
    low, high = sorted((new.caller_id, new.callee_id))
    found = yield query(
        f"SELECT user_id,call_id FROM call_seats WHERE user_id IN (?,?) ORDER BY user_id{sql.for_update}", low, high
    )
    seats = {row[0]: row[1] for row in found}
    if not seats:
        return None
    own = seats.get(new.caller_id)
    if own is None:
        raise NexoError("busy", "The callee takes part in another call")
    if seats.get(new.callee_id) == own:
        rows = yield query(f"SELECT {_CALL},offer FROM calls WHERE call_id=? AND state=?", own, int(CallState.RINGING))
        if rows and rows[0][2] == new.callee_id:
            call = call_from(rows[0])
            return StoredInvitation(call, False, True, tuple(rows[0])[-1] or "", KIND_NAMES[call.kind])
    raise NexoError("busy", "You take part in another call", call_id=str(own))


def _lock(sql: Sql, call_id: int, user_id: str) -> Script[LockedCall]:
    """Returns a call in which the user takes part, locked."""
    found = yield query(f"SELECT {_CALL},{_DEVICES} FROM calls WHERE call_id=?{sql.for_update}", call_id)
    if not found:
        raise NexoError("call_not_found")
    locked = _locked(found[0])
    if user_id and user_id not in (locked.call.caller_id, locked.call.callee_id):
        raise NexoError("call_not_participant")
    return locked


def check_open(call: UserCall) -> None:
    if call.state == CallState.ENDED:
        raise NexoError("call_not_found")


def _locked(row: Any) -> LockedCall:
    values = tuple(row)[len(_FIELDS) :]
    return LockedCall(call_from(row), Device(values[0], values[1]), Device(values[2], values[3]))


def accept(sql: Sql, call_id: int, user_id: str, device: Device, memo: list[int]) -> Script[LockedCall]:
    """Returns the call, answered by this device. `memo` is not empty after an attempt that may be committed."""
    locked = yield from _lock(sql, call_id, user_id)
    call = locked.call
    if call.callee_id != user_id:
        raise NexoError("only_callee_can_accept")
    if call.state == CallState.ACTIVE and memo and locked.callee == device:
        return locked
    if call.state != CallState.RINGING:
        raise NexoError("call_not_ringing")
    memo[:] = [call_id]
    now_ms = yield NOW
    yield do(
        f"UPDATE calls SET state=?,answered_at=?,callee_address=?,callee_sid=?,callee_gone_at=0,{_ERASED} "
        "WHERE call_id=?",
        int(CallState.ACTIVE),
        now_ms,
        device.address,
        device.sid,
        call_id,
    )
    active = msgspec.structs.replace(call, state=int(CallState.ACTIVE), answered_at=now_ms)
    return LockedCall(active, locked.caller, device)


def signal(sql: Sql, call_id: int, user_id: str, candidate: Candidate | None) -> Script[LockedCall]:
    """Returns the call of a signal. A candidate is kept while the call rings, for devices that connect later."""
    locked = yield from _lock(sql, call_id, user_id)
    check_open(locked.call)
    if locked.call.state != CallState.RINGING or candidate is None:
        return locked
    column = "caller_candidates" if user_id == locked.call.caller_id else "callee_candidates"
    ((kept,),) = yield query(f"SELECT {column} FROM calls WHERE call_id=?", call_id)
    candidates = _candidates(kept) if kept else []
    if len(candidates) < CANDIDATES_MAX and candidate not in candidates:
        candidates.append(candidate)
        yield do(f"UPDATE calls SET {column}=? WHERE call_id=?", _encode(candidates).decode(), call_id)
    return locked


def look(call_id: int, user_id: str) -> Script[LockedCall]:
    """Returns a call in which the user takes part, without a lock."""
    found = yield query(f"SELECT {_CALL},{_DEVICES} FROM calls WHERE call_id=?", call_id)
    if not found:
        raise NexoError("call_not_found")
    locked = _locked(found[0])
    if user_id not in (locked.call.caller_id, locked.call.callee_id):
        raise NexoError("call_not_participant")
    return locked


# -- the end --------------------------------------------------------------------------------------------


def finish(sql: Sql, call_id: int, finish: Finish, record_id: int, memo: list[Finished]) -> Script[Finished | None]:
    """Ends a call and appends its record. None: it has ended before, which only a request of the server may find.
    `memo` has the result of an earlier attempt, which may be committed."""
    user_id, ending = finish.user_id, finish.ending
    found = yield query("SELECT conversation_id FROM calls WHERE call_id=?", call_id)
    if not found:
        raise NexoError("call_not_found")
    conversation = yield from lock_conversation(sql, found[0][0])
    assert conversation is not None
    locked = yield from _lock(sql, call_id, user_id)
    call = locked.call
    if memo and call.record_id == record_id:
        return memo[0]
    if user_id:
        _check_may_end(call, finish)
    elif call.state == CallState.ENDED or (ending is Ending.TIME_OUT and call.state != CallState.RINGING):
        return None
    now_ms = yield NOW
    by_caller = user_id == call.caller_id
    outcome = outcome_of(call.state, ending, by_caller=by_caller, reason=finish.reason)
    ended_at = max(call.answered_at, finish.at) if finish.at else now_ms
    done = msgspec.structs.replace(
        call, state=int(CallState.ENDED), outcome=int(outcome), ended_at=ended_at, record_id=record_id
    )
    yield do(
        f"UPDATE calls SET state=?,outcome=?,ended_at=?,record_id=?,{_ERASED} WHERE call_id=?",
        done.state,
        done.outcome,
        done.ended_at,
        record_id,
        call_id,
    )
    for seated in sorted((call.caller_id, call.callee_id)):
        yield do("DELETE FROM call_seats WHERE user_id=? AND call_id=?", seated, call_id)
    record = yield from _append_record(sql, conversation, done, record_id, now_ms)
    yield from writing.note(now_ms, writing.call(call_id, "ended"))
    memo[:] = [Finished(locked, done, record, conversation)]
    return memo[0]


def _check_may_end(call: UserCall, finish: Finish) -> None:
    if finish.ending is Ending.CANCEL and finish.user_id != call.caller_id:
        raise NexoError("only_caller_can_cancel")
    if finish.ending is Ending.REJECT and finish.user_id != call.callee_id:
        raise NexoError("only_callee_can_accept")
    if finish.ending is Ending.HANG_UP:
        if call.state == CallState.ENDED:
            raise NexoError("call_not_found")
    elif call.state != CallState.RINGING:
        raise NexoError("call_not_ringing")


def _append_record(
    sql: Sql, conversation: Conversation, call: UserCall, record_id: int, now_ms: int
) -> Script[Message]:
    """Appends the message about a call, in the caller's name, and moves the caller's cursors over it."""
    content = {
        "call_id": str(call.call_id),
        "kind": KIND_NAMES[call.kind],
        "outcome": OUTCOME_NAMES[call.outcome],
        "duration_ms": call.duration_ms,
    }
    is_counted = call.outcome in COUNTED
    record = yield from append_event(
        conversation, record_id, int(MsgType.CALL), content, call.caller_id, now_ms, counted=is_counted
    )
    yield from save_conversation(conversation)
    member = yield from lock_member(sql, conversation.id, call.caller_id)
    if member is None:
        return record
    step_over_own(member, record.seq, conversation.countable, False, counts=is_counted)
    yield do(
        "UPDATE members SET delivered_seq=?,read_seq=?,read_countable=?,own_above=?,last_own_seq=? "
        "WHERE conv=? AND user_id=?",
        member.delivered_seq,
        member.read_seq,
        member.read_countable,
        member.own_above,
        member.last_own_seq,
        member.conv,
        member.user_id,
    )
    return record


# -- reading --------------------------------------------------------------------------------------------


def waiting_for(user_id: str, sid: str, answered_ms: int) -> Script[MissedCall | None]:
    """Returns what a device of this session, which has just connected, may have missed of a call of its user: that it
    rings, or that it was answered so many milliseconds ago at most."""
    found = yield query(
        f"SELECT {','.join(f'c.{name}' for name in _FIELDS)},c.offer,c.caller_candidates,c.caller_sid "
        "FROM call_seats s JOIN calls c ON c.call_id=s.call_id WHERE s.user_id=?",
        user_id,
    )
    if not found:
        return None
    call = call_from(found[0])
    offer, candidates, caller_sid = tuple(found[0])[len(_FIELDS) :]
    if call.state == CallState.RINGING and user_id == call.callee_id:
        return MissedCall(call, offer or "", _candidates(candidates) if candidates else [], False)
    if call.state == CallState.ACTIVE and user_id == call.caller_id and sid == caller_sid:
        now_ms = yield NOW
        return MissedCall(call, "", [], True) if now_ms - call.answered_at <= answered_ms else None
    return None


def read_open(after: int, limit: int) -> Script[tuple[int, list[OpenCall]]]:
    """Returns the time, and calls that have not ended, from above this one on."""
    now_ms = yield NOW
    found = yield query(
        f"SELECT {','.join(OpenCall._fields)} FROM calls WHERE state IN (0,1) AND call_id>? "
        f"ORDER BY call_id LIMIT {int(limit)}",
        after,
    )
    return now_ms, [OpenCall(*row) for row in found]


def note_gone(call_id: int, caller_gone_at: int, callee_gone_at: int) -> Script[None]:
    yield do(
        "UPDATE calls SET caller_gone_at=?,callee_gone_at=? WHERE call_id=? AND state<>?",
        caller_gone_at,
        callee_gone_at,
        call_id,
        int(CallState.ENDED),
    )


def read_list(user_id: str, before: int, limit: int) -> Script[list[UserCall]]:
    """Returns calls of a user, newest first, below this one."""
    found: dict[int, UserCall] = {}
    for column in ("caller_id", "callee_id"):
        for row in (
            yield query(
                f"SELECT {_CALL} FROM calls WHERE {column}=? AND call_id<? ORDER BY call_id DESC LIMIT {int(limit)}",
                user_id,
                before,
            )
        ):
            found[row[0]] = call_from(row)
    return [found[call_id] for call_id in sorted(found, reverse=True)[:limit]]
