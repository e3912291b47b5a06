"""Calls behind the port `calls.ports.CallStore`: each method runs one script; the seam reports what was committed."""

from __future__ import annotations

from nexo.config import Config
from nexo.core import events
from nexo.core.calls import (
    KIND_NAMES,
    CallRules,
    CallState,
    Candidate,
    Device,
    Ending,
    MissedCall,
    NewCall,
    OpenCall,
    UserCall,
    end_reason,
)
from nexo.core.calls import Outcome as CallOutcome
from nexo.core.model import Sent
from nexo.ids import single_conversation_id
from nexo.ports import Address
from nexo.ports.publishing import Outcome
from nexo.store import calls
from nexo.store.conversations import create_singles
from nexo.store.database import Database
from nexo.store.engine import Conflict
from nexo.store.history import clamp_limit
from nexo.store.paging import Number, decode_cursor, encode_cursor
from nexo.store.publish_seam import PublishSeam

NEWEST = (1 << 63) - 1


class RecordOrigin:
    """The origin of a record: the server itself, which needs no answer."""

    output: object | None = None
    address: Address | None = None

    def decided(self, outcome: Outcome) -> None: ...


class SqlCalls:
    def __init__(self, database: Database, seam: PublishSeam, config: Config) -> None:
        self._database = database
        self._sql = database.sql
        self._seam = seam
        self._rules = CallRules(config.policy.single_chat == "contacts")

    def new_id(self) -> int:
        (call_id,) = self._database.ids.take(1)
        return call_id

    async def invite(self, new: NewCall) -> calls.StoredInvitation:
        def publish(invitation: calls.StoredInvitation | None) -> None:
            if invitation is not None and invitation.is_new:
                kind = KIND_NAMES[new.kind]
                event = events.CallRinging(call_id=new.call_id, user_id=new.caller_id, kind=kind, sdp=new.sdp)
                self._seam.user_event([new.callee_id], event)

        chat = single_conversation_id(new.caller_id, new.callee_id)
        while True:
            try:
                done = await self._database.change_and_publish(
                    lambda: calls.invite(self._sql, new, self._rules), publish
                )
            except Conflict:  # a seat was taken, or the same invitation stored, meanwhile: found the next time
                continue
            if done is not None:
                return done
            await self._database.change(lambda: create_singles(self._sql, [chat]))

    async def accept(self, call_id: int, user_id: str, device: Device, sdp: str) -> calls.LockedCall:
        def publish(locked: calls.LockedCall) -> None:
            caller = locked.call.caller_id
            accepted = events.CallAccepted(call_id=call_id, user_id=user_id, sdp=sdp, only=locked.caller)
            self._seam.user_event([caller], accepted)
            ended = events.CallEnded(call_id=call_id, reason="answered_elsewhere", besides=device.address)
            self._seam.user_event([user_id], ended)

        memo: list[int] = []
        return await self._database.change_and_publish(
            lambda: calls.accept(self._sql, call_id, user_id, device, memo), publish
        )

    async def signal(self, call_id: int, user_id: str, fields: Candidate, *, is_candidate: bool) -> None:
        seen = await self._database.look(lambda: calls.look(call_id, user_id))
        candidate = fields if is_candidate else None
        if seen.call.state == CallState.RINGING:
            await self._database.change_and_publish(
                lambda: calls.signal(self._sql, call_id, user_id, candidate),
                lambda locked: self._relay(locked, user_id, fields),
            )
            return
        calls.check_open(seen.call)
        self._relay(seen, user_id, fields)

    def _relay(self, locked: calls.LockedCall, user_id: str, fields: Candidate) -> None:
        call = locked.call
        device = locked.caller if user_id == call.callee_id else locked.callee
        only = device if device.address else None  # while it rings, every device of the callee may answer
        event = events.CallSignaled(call_id=call.call_id, user_id=user_id, fields=fields, only=only)
        self._seam.user_event([call.peer_of(user_id)], event)

    async def finish(
        self, call_id: int, ending: Ending, user_id: str = "", reason: str = "", at: int = 0
    ) -> UserCall | None:
        record_id = self.new_id()
        how = calls.Finish(ending, user_id, reason, at)
        memo: list[calls.Finished] = []

        def publish(done: calls.Finished | None) -> None:
            if done is not None:
                self._publish_end(done, how)

        done = await self._database.change_and_publish(
            lambda: calls.finish(self._sql, call_id, how, record_id, memo), publish
        )
        return None if done is None else done.call

    def _publish_end(self, done: calls.Finished, how: calls.Finish) -> None:
        before, call = done.before.call, done.call
        outcome = CallOutcome(call.outcome)
        for user_id, device in ((call.caller_id, done.before.caller), (call.callee_id, done.before.callee)):
            only = device if device.address else None
            if how.ending is Ending.TIME_OUT:
                self._seam.user_event([user_id], events.CallTimedOut(call_id=call.call_id, only=only))
                continue
            reason = end_reason(before.state, how.ending, outcome, how.reason)
            duration = call.duration_ms if call.answered_at else None
            event = events.CallEnded(call_id=call.call_id, reason=reason, duration_ms=duration, only=only)
            self._seam.user_event([user_id], event)
        sent = Sent(done.record, True, None, False, done.conversation.member_epoch)
        self._seam.saved([RecordOrigin()], [sent])

    async def waiting_for(self, user_id: str, sid: str, answered_ms: int) -> MissedCall | None:
        return await self._database.look(lambda: calls.waiting_for(user_id, sid, answered_ms))

    async def open_calls(self, after: int, limit: int) -> tuple[int, list[OpenCall]]:
        return await self._database.look(lambda: calls.read_open(after, limit))

    async def note_gone(self, call_id: int, caller_gone_at: int, callee_gone_at: int) -> None:
        await self._database.change(lambda: calls.note_gone(call_id, caller_gone_at, callee_gone_at))

    async def of_user(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[UserCall], str, bool]:
        before, count = decode_cursor(cursor, Number) if cursor else NEWEST, clamp_limit(limit)
        found = await self._database.look(lambda: calls.read_list(user_id, before, count + 1))
        has_more = len(found) > count
        return found[:count], encode_cursor(found[count - 1].call_id) if has_more else "", has_more
