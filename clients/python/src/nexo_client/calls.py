"""Calls with other users: `client.calls`. Signalling only; the application makes the media, with aiortc for example."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from nexo_client.core.frames import Frame
from nexo_client.errors import ClientError
from nexo_client.http import decode
from nexo_client.types import Message

CallKind = Literal["audio", "video"]
CallState = Literal["ringing", "active", "ended"]
Direction = Literal["outgoing", "incoming"]
Description = Mapping[str, str]  # {"type": "offer" or "answer", "sdp": …}
Handler = Callable[[Any], object]

INVITE_TIMEOUT_S = 20.0
WAITING_MAX = 256  # frames that wait for the connection
CANDIDATES_MAX = 256  # of the other device that are kept for the application
CALLS_MAX = 50  # that are kept after their end, to recognize late frames
RECORD = 120
CANDIDATE_FIELDS = ("candidate", "sdpMid", "sdpMLineIndex", "usernameFragment")


class CallRecord(Struct, frozen=True):
    """A call in `calls.list`. `server_msg_id` is that of the message about it."""

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


class IceServer(Struct, frozen=True):
    urls: list[str]
    username: str | None = None
    credential: str | None = None

    def __repr__(self) -> str:
        return f"IceServer(urls={self.urls!r}, …)"


class CallEnd(NamedTuple):
    reason: str
    duration_ms: int | None


class CallPage(Struct, frozen=True):
    calls: list[CallRecord]
    next_cursor: str
    has_more: bool


class _Handlers:
    """Handlers by event; coroutines are run by `spawn`."""

    def __init__(self, names: tuple[str, ...], spawn: Callable[[Any], object]) -> None:
        self._handlers: dict[str, list[Handler]] = {name: [] for name in names}
        self._spawn = spawn

    def on(self, name: str, handler: Handler) -> Callable[[], None]:
        if name not in self._handlers:
            raise ClientError("unknown_event", f"There is no event {name!r}: {', '.join(sorted(self._handlers))}")
        handlers = self._handlers[name]
        handlers.append(handler)
        return lambda: handlers.remove(handler) if handler in handlers else None

    def emit(self, name: str, payload: object) -> None:
        for handler in list(self._handlers[name]):
            result = handler(payload)
            if isinstance(result, Awaitable):
                self._spawn(result)


class Call:
    """One call. `user_id` is the other user; `sdp` the description of the other device, once it is known: its offer, or
    its answer. Events (`on`): `state`, `accepted` (the answer), `ice` (a candidate of the other device), `description`
    (a new offer or answer), `ended` (a `CallEnd`)."""

    def __init__(
        self,
        send: Callable[[Frame], None],
        spawn: Callable[[Any], object],
        call_id: str,
        user_id: str,
        kind: CallKind,
        direction: Direction,
        sdp: str | None = None,
    ) -> None:
        self._send = send
        self._events = _Handlers(("state", "accepted", "ice", "description", "ended"), spawn)
        self.call_id = call_id
        self.user_id = user_id
        self.kind = kind
        self.direction = direction
        self.sdp = sdp
        self.state: CallState = "ringing"
        self.reason: str | None = None  # rejected, canceled, timeout, answered_elsewhere, connection_lost, ended …
        self.duration_ms: int | None = None
        self.candidates: list[dict[str, Any]] = []  # all of the other device so far

    def on(self, name: str, handler: Handler) -> Callable[[], None]:
        """Calls `handler` with each event of that name; returns the function that unsubscribes it."""
        return self._events.on(name, handler)

    def accept(self, sdp: str) -> None:
        """Answers an incoming call. When another device was faster, it ends with `answered_elsewhere`."""
        self._check("incoming")
        self._send({"type": "CALL_ACCEPT", "callId": self.call_id, "sdp": sdp})
        self._become("active")

    def reject(self) -> None:
        """Declines an incoming call."""
        self._check("incoming")
        self._send({"type": "CALL_REJECT", "callId": self.call_id})
        self._end("rejected")

    def cancel(self) -> None:
        """Withdraws an own call that was not answered."""
        self._check("outgoing")
        self._send({"type": "CALL_CANCEL", "callId": self.call_id})
        self._end("canceled")

    def end(self, reason: str | None = None) -> None:
        """Hangs up. `failed`: no media arrived."""
        if self.state == "ended":
            return
        self._send({"type": "CALL_END", "callId": self.call_id} | ({"reason": reason} if reason else {}))
        self._end(reason or "ended")

    def ice(self, candidate: str | Mapping[str, Any] | None) -> None:
        """Sends a candidate of this device, with the names of browsers (`sdpMid` …); None (no more) is not sent."""
        fields = {"candidate": candidate} if isinstance(candidate, str) else candidate or {}
        if self.state == "ended" or not fields.get("candidate"):
            return
        known = {name: fields[name] for name in CANDIDATE_FIELDS if fields.get(name) is not None}
        self._send({"type": "CALL_ICE", "callId": self.call_id} | known)

    def describe(self, description: Description) -> None:
        """Sends a new offer or answer during the call: after a change of the network, or for other media."""
        if self.state == "active":
            shown = {"type": description["type"], "sdp": description["sdp"]}
            self._send({"type": "CALL_ICE", "callId": self.call_id, "description": shown})

    def _check(self, direction: Direction) -> None:
        if self.direction != direction:
            raise ClientError("only_callee_can_accept" if direction == "incoming" else "only_caller_can_cancel")
        if self.state != "ringing":
            raise ClientError("call_not_ringing")

    def _become(self, state: CallState) -> None:
        if self.state not in (state, "ended"):
            self.state = state
            self._events.emit("state", state)

    def _end(self, reason: str, duration_ms: int | None = None) -> None:
        if self.state == "ended":
            self.duration_ms = duration_ms if self.duration_ms is None else self.duration_ms
            return
        self.reason, self.duration_ms = reason, duration_ms
        self._become("ended")
        self._events.emit("ended", CallEnd(reason, duration_ms))

    def _receive(self, frame: Frame) -> None:
        match frame["type"]:
            case "CALL_ACCEPT" if self.state == "ringing":
                self.sdp = frame["sdp"]
                self._become("active")
                self._events.emit("accepted", frame["sdp"])
            case "CALL_ICE" if self.state != "ended":
                self._receive_ice(frame)
            case "CALL_END":
                self._end(frame["reason"], frame.get("durationMs"))
            case "CALL_TIMEOUT":
                self._end("timeout")
            case "CALL_ERROR" if frame["reason"] in ("call_not_found", "call_not_ringing"):
                self._end(frame["reason"])

    def _receive_ice(self, frame: Frame) -> None:
        if "description" in frame:
            self._events.emit("description", frame["description"])
            return
        candidate: dict[str, Any] = (
            frame["candidate"]
            if isinstance(frame["candidate"], dict)
            else {name: frame[name] for name in CANDIDATE_FIELDS if name in frame}
        )
        if "sdpMid" not in candidate and "sdpMLineIndex" not in candidate:
            candidate = {**candidate, "sdpMLineIndex": 0}
        if len(self.candidates) < CANDIDATES_MAX:
            self.candidates.append(candidate)
        self._events.emit("ice", candidate)


class _Invitation(NamedTuple):
    frame: Frame
    answer: asyncio.Future[Call]


class Calls:
    """The event `incoming` (`on`) has each call of another user."""

    def __init__(
        self,
        send: Callable[[Frame], bool],
        api: Callable[[str, str, Mapping[str, Any]], Awaitable[Any]],
        make_id: Callable[[], str],
        spawn: Callable[[Any], object],
    ) -> None:
        """`send` returns False while there is no connection."""
        self._send_now = send
        self._api = api
        self._make_id = make_id
        self._spawn = spawn
        self._events = _Handlers(("incoming",), spawn)
        self._calls: dict[str, Call] = {}  # also some that ended
        self._invitations: dict[str, _Invitation] = {}
        self._waiting: list[Frame] = []

    def on(self, name: str, handler: Handler) -> Callable[[], None]:
        """Calls `handler` with each event of that name; returns the function that unsubscribes it."""
        return self._events.on(name, handler)

    @property
    def current(self) -> Call | None:
        """The call that rings or is answered."""
        return next((call for call in self._calls.values() if call.state != "ended"), None)

    async def invite(self, user_id: str, *, kind: CallKind, sdp: str) -> Call:
        """Calls a user. Raises the reason: callee_offline, busy, blocked … When the other user calls at the
        same moment, the two share one call: its direction may be "incoming", and it is to be accepted then."""
        client_msg_id = self._make_id()
        frame = {"type": "CALL_INVITE", "to": user_id, "callKind": kind, "sdp": sdp, "clientMsgId": client_msg_id}
        answer: asyncio.Future[Call] = asyncio.get_running_loop().create_future()
        self._invitations[client_msg_id] = _Invitation(frame, answer)
        self._send_now(frame)  # without a connection it is sent with the next one
        try:
            async with asyncio.timeout(INVITE_TIMEOUT_S):
                return await answer
        except TimeoutError:
            raise ClientError("timeout") from None
        finally:
            self._invitations.pop(client_msg_id, None)

    async def list(self, *, cursor: str | None = None, limit: int | None = None) -> CallPage:
        """Returns earlier calls, newest first."""
        return decode(await self._api("GET", "/call/list", {"cursor": cursor, "limit": limit}), CallPage)

    async def ice_servers(self) -> tuple[IceServer, ...]:
        """Returns STUN and TURN servers."""
        found = await self._api("GET", "/call/ice", {})
        return decode(found["ice_servers"], tuple[IceServer, ...])

    def _send(self, frame: Frame) -> None:
        if not self._send_now(frame) and len(self._waiting) < WAITING_MAX:
            self._waiting.append(frame)

    def _online(self) -> None:
        """The connection is back."""
        for invitation in self._invitations.values():
            self._send_now(invitation.frame)
        waiting, self._waiting = self._waiting, []
        for frame in waiting:
            self._send_now(frame)

    def _receive(self, frame: Frame) -> None:
        invitation = self._invitations.get(frame.get("clientMsgId", ""))
        match frame["type"]:
            case "CALL_INVITE_OK":
                if invitation is not None and not invitation.answer.done():
                    invitation.answer.set_result(self._invited(frame["callId"], invitation.frame))
            case "CALL_INVITE":
                self._ringing(frame)
            case "CALL_ERROR" if invitation is not None:
                if not invitation.answer.done():
                    invitation.answer.set_exception(ClientError(frame["reason"], frame.get("detail", "")))
            case _ if frame.get("callId") in self._calls:
                self._calls[frame["callId"]]._receive(frame)

    def _invited(self, call_id: str, frame: Frame) -> Call:
        crossed = self._calls.get(call_id)  # the other user's invitation was stored first
        return crossed or self._add(call_id, frame["to"], frame["callKind"], "outgoing", None)

    def _ringing(self, frame: Frame) -> None:
        if frame["callId"] in self._calls:
            return
        call = self._add(frame["callId"], frame["from"], frame["callKind"], "incoming", frame["sdp"])
        if all(one.frame["to"] != call.user_id for one in self._invitations.values()):
            self._events.emit("incoming", call)  # else `invite` returns it

    def _add(self, call_id: str, user_id: str, kind: CallKind, direction: Direction, sdp: str | None) -> Call:
        call = self._calls[call_id] = Call(self._send, self._spawn, call_id, user_id, kind, direction, sdp)
        for old in [one for one in self._calls.values() if one.state == "ended"][: len(self._calls) - CALLS_MAX]:
            del self._calls[old.call_id]
        return call

    def _learn(self, message: Message) -> None:
        """Takes a message: the record of a call states that it has ended, also when that frame was lost."""
        if message.msg_type != RECORD or not isinstance(message.content, dict):
            return
        call = self._calls.get(message.content.get("call_id", ""))
        if call is not None:
            call._end(message.content["outcome"], message.content["duration_ms"] or None)

    def _clear(self, reason: str) -> None:
        """The user signs out, or another one signs in."""
        for invitation in self._invitations.values():
            if not invitation.answer.done():
                invitation.answer.set_exception(ClientError(reason))
        for call in self._calls.values():
            call._end(reason)
        self._calls.clear()
        self._waiting = []
