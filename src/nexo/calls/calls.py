"""What users do with calls. The shape of each request is checked here, everything else in the database under the lock
of the call, so any instance can take any step of a call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec
import structlog

from nexo.calls.ports import CallPushes, CallStore, Connected, Invitation
from nexo.calls.recent_answers import RecentAnswers
from nexo.calls.turn_credentials import IceServers, ice_servers
from nexo.calls.watch import CallWatch
from nexo.config.tree_calls import CallsConfig
from nexo.core import events
from nexo.core.calls import (
    CANDIDATE_MAX_BYTES,
    KIND_NAMES,
    KINDS,
    OUTCOME_NAMES,
    SDP_MAX_CHARS,
    Device,
    Ending,
    NewCall,
    OpenCall,
    UserCall,
    is_reason,
)
from nexo.core.content import check_text
from nexo.errors import NexoError
from nexo.ids import check_client_msg_id, check_user_id, is_reserved, now_ms, parse_server_msg_id
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally
from nexo.ports.ringing import Ring, Ringer

log = structlog.get_logger()

# what a signal may carry, by the kinds of value
SIGNAL_FIELDS: dict[str, tuple[type, ...]] = {
    "candidate": (str, dict),
    "sdp_mid": (str,),
    "sdp_m_line_index": (int,),
    "username_fragment": (str,),
    "description": (dict,),
}
DESCRIPTION_TYPES = ("offer", "answer")


class CallLimits(Protocol):
    async def invite_call(self, user_id: str) -> None:
        """Count an invitation, or raise `too_many_requests`."""


class Calls:
    def __init__(
        self,
        config: CallsConfig,
        store: CallStore,
        connected: Connected,
        ringer: Ringer,
        limits: CallLimits,
        pushes: CallPushes,
        *,
        is_alone: bool = True,
    ) -> None:
        self._config = config
        self._store = store
        self._connected = connected
        self._ringer = ringer
        self._limits = limits
        self._pushes = pushes
        self._answers = RecentAnswers(config.gone_s, pushes)
        pushes.on_answer_wanted = self._answers.wanted
        self._begun = 0
        self._refused = Tally()
        self._outcomes = Tally()
        self.watch = CallWatch(config, store, connected, ringer, self._ended, self._ring_here, is_alone=is_alone)

    def _check_on(self) -> None:
        if not self._config.enabled:
            raise NexoError("not_implemented", "Calls are switched off on this server")

    # -- steps of a call -----------------------------------------------------------------------------------

    async def invite(
        self,
        user_id: str,
        device: Device,
        callee_id: str | None,
        kind: str | None,
        sdp: str | None,
        client_msg_id: str | None,
    ) -> Invitation:
        """Begin a call. `is_crossed` of the answer: the other user's call, which was stored first, is the one."""
        self._check_on()
        callee_id = _need(callee_id, "receiver")
        client_msg_id = _need(client_msg_id, "client_msg_id")
        kind = _need(kind, "call_kind")
        check_user_id(callee_id, "receiver")
        check_client_msg_id(client_msg_id)
        if kind not in KINDS:
            raise NexoError("unsupported_call_kind")
        sdp = check_sdp(sdp)
        if callee_id == user_id:
            raise NexoError("cannot_send_to_self", "The callee must be another user")
        if is_reserved(callee_id):
            raise NexoError("user_not_found", f"There is no user {callee_id}")
        try:
            await self._limits.invite_call(user_id)
            new = NewCall(
                call_id=self._store.new_id(),
                caller_id=user_id,
                callee_id=callee_id,
                kind=KINDS[kind],
                sdp=sdp,
                client_msg_id=client_msg_id,
                digest=hashlib.sha256(f"{callee_id}\n{kind}\n{sdp}".encode()).hexdigest(),
                device=device,
                ring_ms=self._config.ring_s * 1000,
                is_reachable=await self._is_reachable(callee_id),
            )
            invitation = await self._store.invite(new)
        except NexoError as error:
            self._refused.add(error.name)
            raise
        if invitation.is_new:
            self._begun += 1
            self.watch.note(invitation.call.call_id, self._config.ring_s)
            self._ringer.ring([callee_id], self._ring_of(invitation.call))
        return invitation

    async def _is_reachable(self, user_id: str) -> bool:
        """Returns whether a device of this user can ring. While presence is unknown every user counts as connected."""
        connected = await self._connected.among([user_id])
        return connected is None or user_id in connected or await self._ringer.is_reachable(user_id)

    def _ring_of(self, call: UserCall) -> Ring:
        expires_at = call.created_at + self._config.ring_s * 1000
        return Ring(str(call.call_id), KIND_NAMES[call.kind], call.caller_id, call.conversation_id, expires_at)

    async def accept(self, user_id: str, device: Device, call_id: str | int | None, sdp: str | None) -> None:
        self._check_on()
        number = read_call_id(call_id)
        sdp = check_sdp(sdp)
        answered = await self._store.accept(number, user_id, device, sdp)
        event = events.CallAccepted(call_id=number, user_id=user_id, sdp=sdp, only=answered.caller)
        self._answers.keep(answered.call.caller_id, event)
        self._ringer.stop_ringing([user_id], self._ring_of(answered.call))

    async def reject(self, user_id: str, call_id: str | int | None) -> None:
        await self._finish(call_id, Ending.REJECT, user_id)

    async def cancel(self, user_id: str, call_id: str | int | None) -> None:
        await self._finish(call_id, Ending.CANCEL, user_id)

    async def end(self, user_id: str, call_id: str | int | None, reason: str | None = None) -> None:
        """Hang up; a call that still rings is canceled or rejected by it. `reason` `failed`: no media arrived."""
        self._check_on()
        if reason and not is_reason(reason):
            raise NexoError("bad_reason", "A reason is a word of at most 32 letters")
        await self._finish(call_id, Ending.HANG_UP, user_id, reason or "")

    async def _finish(self, call_id: str | int | None, ending: Ending, user_id: str, reason: str = "") -> None:
        self._check_on()
        call = await self._store.finish(read_call_id(call_id), ending, user_id, reason)
        if call is not None:
            self._ended(call)

    def _ended(self, call: UserCall) -> None:
        self._answers.forget(call.call_id)
        self._outcomes.add(OUTCOME_NAMES[call.outcome])
        self._ringer.stop_ringing([call.callee_id], self._ring_of(call))

    async def signal(self, user_id: str, call_id: str | int | None, fields: Mapping[str, Any]) -> None:
        """Relay a candidate or a new description to the other device."""
        self._check_on()
        number = read_call_id(call_id)
        checked = check_signal(fields)
        await self._store.signal(number, user_id, checked, is_candidate="description" not in checked)

    # -- reading -------------------------------------------------------------------------------------------

    async def missed_by(self, user_id: str, sid: str) -> list[events.CallFrame]:
        """Returns the frames of a call that a device which has just connected needs: it rings, or was answered."""
        if not self._config.enabled:
            return []
        waiting = await self._store.waiting_for(user_id, sid, self._config.gone_s * 1000)
        if waiting is None:
            return []
        call = waiting.call
        if waiting.is_answer:
            self._answers.repeat(call.call_id)
            return []
        kind = KIND_NAMES[call.kind]
        ringing = events.CallRinging(call_id=call.call_id, user_id=call.caller_id, kind=kind, sdp=waiting.sdp)
        signals = [
            events.CallSignaled(call_id=call.call_id, user_id=call.caller_id, fields=fields)
            for fields in waiting.candidates
        ]
        return [ringing, *signals]

    async def _ring_here(self, call: OpenCall) -> None:
        for event in await self.missed_by(call.callee_id, ""):
            if event.call_id == call.call_id:
                self._pushes.push_call_here(call.callee_id, event)

    async def of_user(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[UserCall], str, bool]:
        self._check_on()
        return await self._store.of_user(user_id, cursor, limit)

    def ice_servers(self, user_id: str) -> IceServers:
        self._check_on()
        return ice_servers(self._config, user_id, now_ms())

    def samples(self) -> Iterable[Sample]:
        yield f.CALLS_BEGUN(self._begun)
        yield from f.CALLS_REFUSED.each(self._refused)
        yield from f.CALLS_ENDED.each(self._outcomes)
        yield from self._answers.samples()
        yield from self.watch.samples()


def _need(value: str | None, field: str) -> str:
    if not value:
        raise NexoError(f"missing_{field}")
    return value


def check_sdp(sdp: str | None) -> str:
    sdp = _need(sdp, "sdp")
    if len(sdp) > SDP_MAX_CHARS:
        raise NexoError("sdp_too_long")
    check_text(sdp, "sdp", SDP_MAX_CHARS)
    return sdp


def read_call_id(call_id: str | int | None) -> int:
    if call_id is None or call_id == "":
        raise NexoError("missing_call_id")
    try:
        return parse_server_msg_id(call_id)
    except NexoError:
        raise NexoError("call_not_found") from None


def check_signal(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a signal that are there. One of candidate and description has to be."""
    checked = {name: value for name in SIGNAL_FIELDS if (value := fields.get(name)) is not None}
    description = checked.get("description")
    if "candidate" not in checked and description is None:
        raise NexoError("missing_candidate")
    for name, value in checked.items():
        if not isinstance(value, SIGNAL_FIELDS[name]) or isinstance(value, bool):
            raise NexoError("bad_candidate", f"The field {name} has the wrong type")
    if description is not None:
        sdp = description.get("sdp")
        is_known = set(description) <= {"type", "sdp"} and description.get("type") in DESCRIPTION_TYPES
        if not is_known or not isinstance(sdp, str):
            raise NexoError("bad_sdp", "A description has a type (offer or answer) and an sdp")
        check_sdp(sdp)
        checked.pop("candidate", None)
    elif len(msgspec.json.encode(checked)) > CANDIDATE_MAX_BYTES:
        raise NexoError("bad_candidate", f"A candidate has at most {CANDIDATE_MAX_BYTES} bytes")
    return checked
