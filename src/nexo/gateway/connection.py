"""One client's connection: what it may ask, in which order it is answered, and what it can still take.

Callbacks only: no task and no queue of its own. Answers and pushes are collected and written once per turn
of the event loop (`Host.touch`). Requests that need the database run as tasks of the host, few at a time
per connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections import deque
from functools import partial
from typing import Any

import structlog

from nexo.core import commands, events
from nexo.core.model import Sent, Session
from nexo.errors import NexoError
from nexo.gateway.answers import Answers, Slot
from nexo.gateway.handshake import encode_outcome
from nexo.gateway.holds import Holds
from nexo.gateway.host import Host
from nexo.gateway.rates import Rate
from nexo.gateway.websocket import Link, text_frame
from nexo.ports import Outcome
from nexo.wire.dialect import BadFrame, Dialect

log = structlog.get_logger()

VIOLATIONS_MAX = 4
VIOLATIONS_WINDOW_S = 10.0
REQUESTS_MAX = 4  # database requests of one connection under way; up to 256 KiB each come back, room or not
QUEUED_MAX = 256  # requests of one connection that wait for those
HELD_MAX = 1000  # pushes that wait for SYNC
RESYNC_PAUSE_S = 5.0
FOR_ALL = frozenset((commands.Register, commands.RefreshToken))  # need nobody signed in


class Connection:
    __slots__ = (
        "_acks", "_answers", "_dirty", "_frames", "_held", "_holds", "_inflight", "_out", "_out_bytes", "_parked",
        "_queued", "_refused", "_requests", "_resync_at", "_sends", "_touched", "_unblocked", "_violations",
        "asks_outcome", "blocked_since", "blocked_taken", "bytes_out", "closing", "conn_id", "device_id",
        "dialect", "ended", "heads", "heads_at", "host", "last_ping", "last_seen", "link", "notices",
        "opened_at", "presigned", "remote", "session", "signing_in", "synced_at", "user_id",
    )  # fmt: skip

    link: Link
    session: Session

    def __init__(self, host: Host[Connection], dialect: Dialect, conn_id: str, remote: str) -> None:
        self.host = host
        self.dialect = dialect
        self.conn_id = conn_id
        self.remote = remote
        self.device_id = ""
        self.user_id: str | None = None  # of `session`, for every frame asks; None before somebody signed in
        self.presigned: Session | NexoError | None = None  # what became of a token that came with the upgrade
        self.asks_outcome = False  # the first frame tells it
        self.signing_in = False
        self.closing = False
        self.ended = ""  # why; empty when the client went by itself
        self.opened_at = self.last_seen = self.last_ping = time.monotonic()
        self.synced_at = math.inf  # when its heads were asked for: it has to be told of conversations that came later
        self.blocked_since = 0.0
        self.blocked_taken = 0
        self.heads: dict[str, int] | None = None  # changed heads that were not pushed
        self.heads_at = 0.0
        self.notices: dict[str, list[Any]] | None = None  # group notices of the last second
        self._out: list[bytes] = []
        self._out_bytes = 0
        self.bytes_out = 0
        self._touched = False
        self._answers: Answers | None = None
        self._inflight = 0
        self._requests = 0
        self._queued: deque[tuple[commands.Command, Any]] | None = None  # an empty one is half a kilobyte
        self._holds: Holds | None = None
        self._sends = 0  # so far
        self._held: list[bytes] | None = None
        self._parked: list[bytes] | None = None
        self._dirty = ""
        self._resync_at = 0.0
        self._violations: deque[float] | None = None
        self._refused = 0
        self._unblocked: asyncio.Future[None] | None = None
        rules = host.rules
        self._frames = Rate(rules.frames_per_s, rules.frames_burst)
        self._acks = Rate(rules.acks_per_s, rules.acks_per_s)

    @property
    def queued(self) -> int:
        """Requests under way or waiting."""
        return self._requests + len(self._queued or ())

    @property
    def taken(self) -> int:
        """How many bytes the client's side has taken so far. What is still buffered says nothing about that:
        answers to earlier requests are added to it meanwhile."""
        return self.bytes_out - self.link.buffered()

    @property
    def inflight(self) -> int:
        """Sends that wait for their answer."""
        return self._inflight

    @property
    def signed_in(self) -> bool:
        return self.user_id is not None

    def become(self, session: Session) -> None:
        """From now on this user's, by this session."""
        self.session = session
        self.user_id = session.user_id

    # -- what the WebSocket says (`websocket.Peer`) ------------------------------------------------------

    def opened(self, link: Link) -> None:
        self.link = link
        self.host.arrived(self)
        if isinstance(self.presigned, NexoError):
            self.fail_sign_in(self.presigned)
        elif self.presigned is not None:
            self._park()
            self.host.spawn(self.host.admit(self, self.presigned))

    def seen(self) -> None:
        self.last_seen = time.monotonic()

    def binary(self) -> None:
        self._violation(NexoError("bad_json", "Frames are text, not binary"), None)

    def too_big(self, limit: int) -> None:
        self.fail(NexoError("body_too_long", f"A frame has at most {limit} bytes"))
        self.flush()

    def read_done(self) -> None:
        self.host.traffic.read_from(self.link)
        if self.link.extra_frames:
            self._charge_extra_frames()
        if self._out:
            self.flush()

    def _charge_extra_frames(self) -> None:
        """Nobody needs as many pings and fragments as acknowledgements, and each takes as long."""
        if wait_ms := self._acks.charge(self.link.extra_frames):
            self.host.traffic.refusals.add("acks")
            self.drop("too_many_requests", "Too many pings, pongs or fragments", wait_ms)
        self.link.extra_frames = 0

    def text(self, payload: bytes) -> None:
        if self.closing:
            return
        if self._parked is not None:
            self._parked.append(payload)
            return
        try:
            command, ref = self.dialect.decode(payload, self.user_id)
        except BadFrame as bad:
            if not self.signed_in and not bad.violation:
                self._answer_unsigned(bad)
            elif self._within_rate(self._frames, bad.ref, None):
                if bad.violation:
                    self._violation(bad.error, bad.ref)
                else:
                    self.fail(bad.error, bad.ref)
            return
        self._take(command, ref)

    def _take(self, command: commands.Command, ref: Any) -> None:
        kind = type(command)
        if kind is commands.Send and self.user_id is not None:
            if self._within_rate(self._frames, ref, command):
                self._send(command, ref)  # type: ignore[arg-type]
            return
        if kind is commands.Ack and self.user_id is not None:
            if self._within_rate(self._acks, ref, command):
                self.host.acknowledge(self, command, ref)  # type: ignore[arg-type]
            return
        self._other(command, ref)

    def pause_writing(self) -> None:
        """Too much is on its way: no more pushes and no more requests until it is taken."""
        self.blocked_since = time.monotonic()
        self.blocked_taken = self.taken
        self.link.pause_reading()

    def resume_writing(self) -> None:
        self.blocked_since = 0.0
        self.last_seen = time.monotonic()  # nothing was read meanwhile, no sign of life either
        if self.closing:
            return
        if self._parked is None:
            self.link.resume_reading()
        if self._unblocked is not None:
            self._unblocked.set_result(None)
            self._unblocked = None
        if self._dirty:
            self.resync(self._dirty)
        self._start_queued()

    def closed(self, code: int | None) -> None:
        self.closing = True
        self._out.clear()
        self._queued = self._held = self._parked = None
        if self._unblocked is not None:
            self._unblocked.set_result(None)
            self._unblocked = None
        self.host.gone(self)

    # -- commands ----------------------------------------------------------------------------------------

    def _other(self, command: commands.Command, ref: Any) -> None:
        kind = type(command)
        if kind is commands.Pong:
            self._within_rate(self._acks, ref, command)
            return
        if isinstance(command, commands.WithToken):
            self._park()
            self.host.spawn(self._renew_first(command, ref))
            return
        if not self._within_rate(self._frames, ref, command):
            return
        if kind is commands.Ping:
            self.reply(events.Pinged(), ref)
        elif kind is commands.Auth or kind is commands.Login:
            if self.signed_in:
                self.fail(NexoError("bad_request", "Signed in already; use REAUTH"), ref)
                return
            self._park()
            self.host.spawn(self.host.sign_in(self, command, ref))  # type: ignore[arg-type]
        elif not self.signed_in and kind not in FOR_ALL:
            self.drop("unauthorized", ref=ref)
        elif kind is commands.Typing:
            self.host.typing(self, command)  # type: ignore[arg-type]
            self.reply(events.Done(), ref)
        elif self._queued is not None and len(self._queued) >= QUEUED_MAX:
            self.host.traffic.refusals.add("queued_requests")
            busy = NexoError("server_busy", "Too many requests of this connection are under way", retry_after_ms=200)
            self.fail(busy, ref)
        else:
            if self._queued is None:
                self._queued = deque()
            self._queued.append((command, ref))
            self._start_queued()

    def _start_queued(self) -> None:
        """Few at a time, and none while the answers to earlier ones have not been taken: they would pile up."""
        while self._queued and self._requests < REQUESTS_MAX and not self.blocked_since and not self.closing:
            self._requests += 1
            self.host.spawn(self._perform(*self._queued.popleft()))
        if not self._queued:
            self._queued = None

    async def _perform(self, command: commands.Command, ref: Any) -> None:
        self.host.traffic.requests.add(type(command).__name__)
        if not self.signed_in:
            self.opened_at = time.monotonic()  # the time to sign in begins anew
        try:
            if isinstance(command, commands.Reauth):
                self.reply(await self.host.renew(self, command.token), ref)
            else:
                await self.host.perform(self, command, ref)
        except NexoError as error:
            if isinstance(command, commands.Reauth) and not error.row.retry:
                self._refuse_token(error, ref)
            else:
                self.fail(error, ref)
        except Exception:
            log.exception("request_failed", conn=self.conn_id, command=type(command).__name__)
            self.fail(NexoError("internal_error"), ref)
        finally:
            self._requests -= 1
            self._start_queued()

    async def _renew_first(self, command: commands.WithToken, ref: Any) -> None:
        """The request waits for its token, and what was sent behind it for the request."""
        try:
            await self.host.renew(self, command.token)
        except NexoError as error:
            self._refuse_token(error, ref)
            return
        except Exception:
            log.exception("renewal_failed", conn=self.conn_id)
            self.fail_sign_in(NexoError("internal_error"), ref)
            return
        if not self.closing:
            self._take(command.command, ref)
        self.unpark()

    def _refuse_token(self, error: NexoError, ref: Any) -> None:
        if error.name == "reauth_uid_mismatch":
            self.drop(error.name, ref=ref)
        else:
            self.fail_sign_in(error, ref)

    def _park(self) -> None:
        """What is sent behind this waits for its outcome: one read's worth, nothing more is read meanwhile."""
        self.signing_in = True
        self._parked = []
        self.link.pause_reading()

    def unpark(self) -> None:
        """Signing in is over: go on with what was sent behind it."""
        self.signing_in = False
        parked, self._parked = self._parked, None
        if not self.closing and not self.blocked_since:
            self.link.resume_reading()
        for payload in parked or ():
            self.text(payload)

    def _send(self, command: commands.Send, ref: Any) -> None:
        try:
            draft = self.host.draft(self.session.user_id, command)
        except NexoError as error:
            self._fail_in_turn(command.place(self.session.user_id), error, ref)
            return
        name = draft.conversation_id
        number = self._number(name, draft.client_msg_id)
        refusal = self._refusal(name, draft.client_msg_id)
        if refusal is None:
            slot: Slot = [None]
            try:
                self.host.submit(self, draft, partial(self.answered, slot, name, draft.client_msg_id, number, ref))
            except NexoError as error:
                refusal = error
            else:
                self._inflight += 1
                if self._answers is None:
                    self._answers = Answers()
                self._answers.reserve(name, slot)
                return
        self._hold(name, draft.client_msg_id, refusal, number)
        self._fail_in_turn(name, refusal, ref)

    def _number(self, name: str, client_msg_id: str) -> int:
        """Which send of this connection it is."""
        number = self._holds.number_of(name, client_msg_id) if self._holds else None
        if number is None:
            number = self._sends = self._sends + 1
        return number

    def _refusal(self, name: str, client_msg_id: str) -> NexoError | None:
        """Why this send cannot be taken now."""
        refusal = self._holds.refusal(name, client_msg_id) if self._holds else None
        if refusal is not None:
            return refusal
        if self._inflight >= self.host.rules.inflight_sends > 0:
            self.host.traffic.refusals.add("inflight_sends")
            return NexoError("too_many_requests", "Too many sends are waiting for their answer", retry_after_ms=100)
        wait_ms = self.host.charge_send(self.session.user_id)
        if wait_ms:
            return NexoError("too_many_requests", "You send too fast", retry_after_ms=wait_ms)
        return None

    def _hold(self, name: str, client_msg_id: str, error: NexoError, number: int) -> None:
        if self._holds is None:
            self._holds = Holds()
        self._holds.add(name, client_msg_id, error, number)

    def answered(self, slot: Slot, name: str, client_msg_id: str, number: int, ref: Any, outcome: Outcome) -> None:
        """A send of this connection has its outcome. Answers leave in the order of the sends."""
        self._inflight -= 1
        if not self.closing:
            self._answer_send(slot, name, client_msg_id, number, ref, outcome)
        if isinstance(outcome, Sent):
            self.host.message_saved(outcome, self)

    def _answer_send(self, slot: Slot, name: str, client_msg_id: str, number: int, ref: Any, outcome: Outcome) -> None:
        event: events.Event
        if isinstance(outcome, Sent):
            event = events.Saved(outcome.message, outcome.content_changed)
        elif isinstance(outcome, NexoError):
            if outcome.row.retry:
                self._hold(name, client_msg_id, outcome, number)
            self.host.traffic.errors.add(outcome.name)
            event = events.Failed(outcome)
        else:
            event = outcome
        assert self._answers is not None
        for payload in self._answers.fill(name, slot, self.dialect.encode(event, ref)):
            self._write(text_frame(payload))

    def _fail_in_turn(self, name: str, error: NexoError, ref: Any) -> None:
        self.host.traffic.errors.add(error.name)
        payload = self.dialect.encode(events.Failed(error), ref)
        if self._answers is None or not self._answers.wait(name, payload):
            self._write(text_frame(payload))

    # -- writing -----------------------------------------------------------------------------------------

    def reply(self, event: events.Event, ref: Any = None) -> None:
        if not self.closing:
            payload = self.dialect.encode(event, ref)
            if payload:
                self._write(text_frame(payload))

    def fail(self, error: NexoError, ref: Any = None) -> None:
        """Tell that something was refused or went wrong."""
        self.host.traffic.errors.add(error.name)
        self.reply(events.Failed(error), ref)

    def tell_outcome(self, error: NexoError | None) -> None:
        """Of the handshake, once, if the client asked for it."""
        self.asks_outcome = False
        self._write(text_frame(encode_outcome(error)))

    def push(self, frame: bytes) -> bool:
        """Hand over a frame that others get too. Whether it is taken; what is not is made good by RESYNC.
        It writes as `_write` does, without the call: this is done for every receiver of every message."""
        if self._held is not None:
            if len(self._held) < HELD_MAX:
                self._held.append(frame)
                return True
            self._dirty = "overflow"
            self.host.traffic.dropped["overflow"] += 1
        elif self.blocked_since or self._out_bytes > self.host.rules.high_water_bytes:
            self._dirty = "slow_consumer"
            self.host.traffic.dropped["slow_consumer"] += 1
        elif not self.closing:
            self._out.append(frame)
            self._out_bytes += len(frame)
            if not self._touched:
                self._touched = True
                self.host.touch(self)
            return True
        return False

    def _write(self, frame: bytes) -> None:
        self._out.append(frame)
        self._out_bytes += len(frame)
        if not self._touched:
            self._touched = True
            self.host.touch(self)

    def flush(self) -> None:
        self._touched = False
        out = self._out
        if out:
            traffic = self.host.traffic
            traffic.frames_out += len(out)
            traffic.bytes_out += self._out_bytes
            self.bytes_out += self._out_bytes
            self._out_bytes = 0
            self.link.write(out[0] if len(out) == 1 else b"".join(out))
            out.clear()
        if self._dirty and not self.blocked_since and self._held is None and not self.closing:
            self.resync(self._dirty)

    def hold_pushes(self) -> None:
        """From being registered until SYNC is out, pushes wait."""
        self._held = []

    def release_pushes(self) -> None:
        held, self._held = self._held, None
        for frame in held or ():
            self.push(frame)
        if self._dirty and not self._touched:
            self._touched = True
            self.host.touch(self)

    async def drained(self) -> None:
        """Wait while the connection is above the high-water mark."""
        self.flush()
        while self.blocked_since and not self.closing:
            if self._unblocked is None:
                self._unblocked = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._unblocked)

    def resync(self, reason: str, spread_ms: int = 1000) -> None:
        """Tell the client that it may have missed something; at most once in five seconds."""
        now = time.monotonic()
        if self.closing or not self.signed_in:
            return
        if self.blocked_since or self._held is not None or now < self._resync_at:
            self._dirty = reason
            return
        self._dirty = ""
        self._resync_at = now + RESYNC_PAUSE_S
        self.host.traffic.resyncs.add(reason)
        log.info("resync", conn=self.conn_id, user=self.user_id, reason=reason)
        self.reply(events.Resync(reason, random.randrange(0, spread_ms)))

    def resync_if_due(self) -> None:
        """Tell now what could not be told before, because it was too soon or there was no room."""
        if self._dirty and not self.blocked_since and self._held is None and time.monotonic() >= self._resync_at:
            self.resync(self._dirty)

    # -- ending ------------------------------------------------------------------------------------------

    def drop(
        self, error_name: str, detail: str | None = None, retry_after_ms: int | None = None, ref: Any = None
    ) -> None:
        """Tell why and close. A connection that cannot even take that is reset."""
        if self.closing:
            return
        error = NexoError(error_name, detail, retry_after_ms=retry_after_ms)
        if self.blocked_since:
            self.closing = True
            self.ended = error_name
            self.link.abort()
            return
        self.fail(error, ref)
        self._end(error)

    def fail_sign_in(self, error: NexoError, ref: Any = None) -> None:
        if self.closing:
            return
        self.host.traffic.errors.add(error.name)
        if self.asks_outcome:
            self.tell_outcome(error)
        else:
            self.reply(events.SignInFailed(error), ref)
        self._end(error)

    def _end(self, error: NexoError) -> None:
        self.flush()
        self.closing = True
        self.ended = error.name
        log.info("connection_dropped", conn=self.conn_id, user=self.user_id, reason=error.name)
        self.link.close(error.row.close_code, error.name)

    def _answer_unsigned(self, bad: BadFrame) -> None:
        """Before signing in, only what is for everybody is answered."""
        if bad.signs_in:
            self.fail_sign_in(bad.error, bad.ref)
        elif not bad.for_all:
            self.drop("unauthorized", ref=bad.ref)
        elif self._within_rate(self._frames, bad.ref, None):
            self.fail(bad.error, bad.ref)

    def _violation(self, error: NexoError, ref: Any) -> None:
        now = time.monotonic()
        if self._violations is None:
            self._violations = deque(maxlen=VIOLATIONS_MAX)
        self._violations.append(now)
        self.fail(error, ref)
        if len(self._violations) == VIOLATIONS_MAX and now - self._violations[0] <= VIOLATIONS_WINDOW_S:
            self._end(error)

    def _within_rate(self, rate: Rate, ref: Any, command: commands.Command | None) -> bool:
        wait_ms = rate.charge()
        if not wait_ms:
            if self._refused:
                self._refused -= 1
            return True
        self._refused += 2
        self.host.traffic.refusals.add("acks" if rate is self._acks else "frames")
        error = NexoError("too_many_requests", retry_after_ms=wait_ms)
        if self._refused > 2 * max(self.host.rules.frames_burst, self.host.rules.frames_per_s):
            self.drop("too_many_requests", retry_after_ms=wait_ms)
            return False
        if not isinstance(command, commands.Send) or not self.signed_in:
            self.fail(error, ref)
            return False
        name = command.place(self.session.user_id)
        with contextlib.suppress(NexoError):  # what can never be sent is not waited for
            draft = self.host.draft(self.session.user_id, command)
            self._hold(name, draft.client_msg_id, error, self._number(name, draft.client_msg_id))
        self._fail_in_turn(name, error, ref)
        return False
