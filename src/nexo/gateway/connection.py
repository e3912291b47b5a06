"""One client connection: dispatch of commands, answers and pushes, back-pressure, and the end of the connection.

It has callbacks only, no task of its own. Answers and pushes are collected and written once per turn of the event
loop. Requests that need the database run as jobs of the host, few at a time per connection (`requests.py`).
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import structlog

from nexo.core import commands, events
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.gateway.host import Host
from nexo.gateway.rate_limits import Rate
from nexo.gateway.requests import ConnectionRequests, name_request
from nexo.gateway.sends import ConnectionSends
from nexo.gateway.state import State
from nexo.transport.websocket import Socket
from nexo.wire.dialect import BadFrame, Deferred, Dialect
from nexo.wire.framing import text_frame

log = structlog.get_logger()

VIOLATIONS_MAX = 4
VIOLATIONS_WINDOW_S = 10.0
HELD_MAX = 1000  # pushes that wait for SYNC
RESYNC_PAUSE_S = 5.0
RESYNC_NAMES_MAX = 50  # with more, a client asks for everything
BEFORE_SIGN_IN = frozenset((commands.Register, commands.RefreshToken))


class Connection:
    __slots__ = (
        "_acks", "_dirty", "_dirty_in", "_frames", "_held", "_out", "_out_bytes", "_parked", "_refused",
        "_requests", "_resync_at", "_touched", "_unblocked", "_violations", "asks_outcome", "blocked_since",
        "blocked_taken", "bytes_out", "closing", "conn_id", "device_id", "dialect", "ended", "heads", "heads_at",
        "host", "last_ping", "last_seen", "later", "notices", "opened_at", "presigned", "remote", "sends", "session",
        "socket", "state", "synced_at", "user_id",
    )  # fmt: skip

    socket: Socket
    session: Session
    name_request = name_request

    def __init__(self, host: Host[Connection], dialect: Dialect, conn_id: str, remote: str) -> None:
        self.host = host
        self.dialect = dialect
        self.conn_id = conn_id
        self.remote = remote
        self.device_id = ""
        self.user_id: str | None = None  # of `session`, because every frame asks; None before signing in
        self.presigned: Session | NexoError | None = None  # the result of checking the token of the upgrade request
        self.asks_outcome = False  # the first frame is the outcome of the handshake
        self.state = State.NEW
        self.closing = False  # of `state`, because every frame asks
        self.ended = ""  # why; empty when the client closed
        self.opened_at = self.last_seen = self.last_ping = time.monotonic()
        self.synced_at = math.inf  # when its heads were read: conversations joined later are announced to it
        self.blocked_since = 0.0
        self.blocked_taken = 0
        self.heads: dict[str, int] | None = None  # changed heads that were not pushed
        self.heads_at = 0.0
        self.notices: dict[str, list[Any]] | None = None  # group notices of the last second
        self._out: list[bytes] = []
        self._out_bytes = 0
        self.bytes_out = 0
        self._touched = False
        self._requests: ConnectionRequests | None = None
        self.sends: ConnectionSends | None = None
        self.later: Callable[[bytes], bool] | None = None  # takes pushes that wait behind the client's own messages
        self._held: list[bytes] | None = None
        self._parked: list[bytes] | None = None
        self._dirty = ""  # why RESYNC is due
        self._dirty_in: set[str] | None = set()  # for these conversations; None: all
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
        return self._requests.count if self._requests is not None else 0

    @property
    def taken(self) -> int:
        """Bytes that the client has taken so far. The size of the buffer alone does not show progress: answers to
        earlier requests are added to it meanwhile."""
        return self.bytes_out - self.socket.buffered()

    @property
    def inflight(self) -> int:
        """Sends that wait for their answer."""
        return self.sends.inflight if self.sends is not None else 0

    @property
    def signed_in(self) -> bool:
        return self.user_id is not None

    def become(self, session: Session) -> None:
        """Assign the session, and with it the user, to this connection."""
        self.session, self.user_id = session, session.user_id

    # -- callbacks of the WebSocket (`websocket.Peer`) ------------------------------------------------------

    def opened(self, socket: Socket) -> None:
        self.socket = socket
        self.host.arrived(self)
        if isinstance(self.presigned, NexoError):
            self.fail_sign_in(self.presigned)
        elif self.presigned is not None:
            self._park()
            self.host.spawn("sign_in", self.host.admit(self, self.presigned))

    def binary(self, payload: bytes) -> None:
        self.text(payload, True)

    def too_big(self, limit: int) -> None:
        self.fail(NexoError("body_too_long", f"A frame has at most {limit} bytes"))
        self.flush()

    def read_done(self) -> None:
        self.last_seen = time.monotonic()
        socket, traffic = self.socket, self.host.traffic
        traffic.frames_in += socket.frames_in  # as `Traffic.read_from`, without the call
        traffic.bytes_in += socket.bytes_in
        socket.frames_in = socket.bytes_in = 0
        if socket.extra_frames:
            self._charge_extra_frames()
        if self._out:
            self.flush()

    def _charge_extra_frames(self) -> None:
        """Count pings, pongs and fragments against the limit of acknowledgements: each costs as much."""
        if wait_ms := self._acks.charge(self.socket.extra_frames):
            self.host.traffic.refusals.add("acks")
            self.drop("too_many_requests", "Too many pings, pongs or fragments", wait_ms)
        self.socket.extra_frames = 0

    def text(self, payload: bytes, is_binary: bool = False) -> None:
        """Take a text or binary message. One method for both kinds saves a call per message."""
        if self.closing:
            return
        if is_binary is not self.dialect.is_binary:
            if not is_binary and (answer := self.dialect.answer_text(payload)) is not None:
                return self.write(text_frame(answer)) if self._within_rate(self._acks, None, None) else None
            kinds = ("text", "binary") if is_binary else ("binary", "text")
            self._violation(NexoError("bad_json", "Frames are {}, not {}".format(*kinds)), None)
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
                if self.sends is None:
                    self.sends = ConnectionSends(self)
                self.sends.send(command, ref)  # type: ignore[arg-type]
            return
        if kind is commands.Ack and self.user_id is not None:
            if self._within_rate(self._acks, ref, command):
                self.host.acknowledge(self, command, ref)  # type: ignore[arg-type]
            return
        self._other(command, ref)

    def pause_writing(self) -> None:
        """Stop pushes and requests until the client has taken what is buffered."""
        self.blocked_since = time.monotonic()
        self.blocked_taken = self.taken
        self.socket.pause_reading()

    def resume_writing(self) -> None:
        self.blocked_since = 0.0
        self.last_seen = time.monotonic()  # nothing was read meanwhile, so no sign of life was seen
        if self.closing:
            return
        if self._parked is None:
            self.socket.resume_reading()
        if self._unblocked is not None:
            self._unblocked.set_result(None)
            self._unblocked = None
        self.resync_if_due()
        if self._requests is not None:
            self._requests.start_waiting()

    def closed(self, code: int | None) -> None:
        self._set_closing()
        self._out.clear()
        self._requests = self._held = self._parked = None
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
            self.host.spawn("renew", self._renew_first(command, ref))
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
            self.host.spawn("sign_in", self.host.sign_in(self, command, ref))  # type: ignore[arg-type]
        elif not self.signed_in and kind not in BEFORE_SIGN_IN:
            self.drop("unauthorized", ref=ref)
        elif kind is commands.Typing:
            self.host.typing(self, command, ref)  # type: ignore[arg-type]
        else:
            if self._requests is None:
                self._requests = ConnectionRequests(self)
            self._requests.add(command, ref)

    async def _renew_first(self, command: commands.WithToken, ref: Any) -> None:
        """Check the token that was sent with a request, then take the request, then the frames behind it."""
        self.name_request(ref)
        try:
            await self.host.renew(self, command.token)
        except NexoError as error:
            self.refuse_token(error, ref)
            return
        except Exception:
            log.exception("renewal_failed", conn=self.conn_id)
            self.fail_sign_in(NexoError("internal_error"), ref)
            return
        if not self.closing:
            self._take(command.command, ref)
        self.unpark()

    def refuse_token(self, error: NexoError, ref: Any) -> None:
        if error.name == "reauth_uid_mismatch":
            self.drop(error.name, ref=ref)
        else:
            self.fail_sign_in(error, ref)

    def _park(self) -> None:
        """Hold back the frames behind this command until it is decided. Reading pauses: at most one read is held."""
        self.state = State.SIGNING_IN if self.user_id is None else State.RENEWING
        self._parked = []
        self.socket.pause_reading()

    def unpark(self) -> None:
        """Continue with the frames that waited for the sign-in or renewal."""
        if not self.closing:
            self.state = State.NEW if self.user_id is None else State.OPEN
        parked, self._parked = self._parked, None
        if not self.closing and not self.blocked_since:
            self.socket.resume_reading()
        is_binary = self.dialect.is_binary
        for payload in parked or ():
            self.text(payload, is_binary)

    def prolong(self) -> None:
        self.opened_at = time.monotonic()
        if self._parked is None and not self.closing and not self.blocked_since:
            self.socket.resume_reading()

    # -- writing -----------------------------------------------------------------------------------------

    def reply(self, event: events.Event, ref: Any = None) -> None:
        if not self.closing:
            payload = self.dialect.encode(event, ref)
            if payload:
                self.write(self.dialect.frame(payload))

    def fail(self, error: NexoError, ref: Any = None) -> None:
        """Answer with an error."""
        self.host.traffic.errors.add(error.name)
        self.reply(events.Failed(error), ref)

    def tell_outcome(self, error: NexoError | None) -> None:
        """Write the outcome of the handshake, once, for a client that asked for it."""
        self.asks_outcome = False
        self.write(text_frame(self.dialect.encode_outcome(error)))

    def push(self, frame: bytes) -> bool:
        """Queue a frame that is shared with other receivers. Returns whether it was taken; otherwise RESYNC follows.
        Writes as `write` does, without the call: this runs for every receiver of every message."""
        if type(frame) is Deferred:
            return self.host.complete(self, frame.event)
        if self.later is not None:
            return self.later(frame)
        if self._held is not None:
            if len(self._held) < HELD_MAX:
                self._held.append(frame)
                return True
            self._dirty, self._dirty_in = "overflow", None
            self.host.traffic.dropped["overflow"] += 1
        elif (self.blocked_since or self._out_bytes > self.host.rules.high_water_bytes) and (
            self._out_bytes + self.socket.buffered() >= self.host.rules.queued_bytes
        ):
            self._dirty, self._dirty_in = "slow_consumer", None
            self.host.traffic.dropped["slow_consumer"] += 1
        elif not self.closing:
            self._out.append(frame)
            self._out_bytes += len(frame)
            if not self._touched:
                self._touch()
            return True
        return False

    def write(self, frame: bytes) -> None:
        self._out.append(frame)
        self._out_bytes += len(frame)
        if not self._touched:
            self._touch()

    def _touch(self) -> None:
        """Let `flush` be called at the end of this turn of the event loop."""
        self._touched = True
        touched = self.host.touched
        if not touched:
            self.host.schedule_flush()
        touched.append(self)

    def flush(self) -> None:
        self._touched = False
        out = self._out
        if out:
            traffic = self.host.traffic
            traffic.frames_out += len(out)
            traffic.bytes_out += self._out_bytes
            self.bytes_out += self._out_bytes
            self._out_bytes = 0
            self.socket.write(out[0] if len(out) == 1 else b"".join(out))
            out.clear()
        if self._dirty:
            self.resync_if_due()

    def hold_pushes(self) -> None:
        """Hold pushes back, from registration until SYNC is written."""
        self._held = []

    def release_pushes(self) -> None:
        held, self._held = self._held, None
        for frame in held or ():
            self.push(frame)
        if self._dirty and not self._touched:
            self._touch()

    async def drained(self) -> None:
        """Wait while the connection is above the high-water mark."""
        self.flush()
        while self.blocked_since and not self.closing:
            if self._unblocked is None:
                self._unblocked = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._unblocked)

    def resync(self, reason: str, spread_ms: int = 1000, conversation_ids: Collection[str] = ()) -> None:
        """Send RESYNC for these conversations or for all, at most once in five seconds: pushes may be missing."""
        if self.closing or not self.signed_in:
            return
        if not conversation_ids:
            self._dirty_in = None
        elif self._dirty_in is not None:
            self._dirty_in.update(conversation_ids)
            if len(self._dirty_in) > RESYNC_NAMES_MAX:
                self._dirty_in = None
        self._dirty = reason
        self.resync_if_due(spread_ms)

    def resync_if_due(self, spread_ms: int = 1000) -> None:
        """Send a due RESYNC, unless the last one is too recent or the client does not read."""
        now = time.monotonic()
        is_held_up = self.blocked_since or self._held is not None or now < self._resync_at
        if not self._dirty or is_held_up or self.closing or not self.signed_in:
            return
        reason, names = self._dirty, sorted(self._dirty_in or ())
        self._dirty, self._dirty_in = "", set()
        self._resync_at = now + RESYNC_PAUSE_S
        if not self.dialect.resyncs:  # it connects again, and asks for what it has missed
            self.host.traffic.resyncs.add(reason)
            self.drop("slow_consumer")
            return
        self.host.traffic.resyncs.add(reason)
        log.info("resync", conn=self.conn_id, user=self.user_id, reason=reason, conversations=len(names))
        self.reply(events.Resync(reason, random.randrange(0, spread_ms), names))

    # -- ending ------------------------------------------------------------------------------------------

    def drop(
        self, error_name: str, detail: str | None = None, retry_after_ms: int | None = None, ref: Any = None
    ) -> None:
        """Send the error and close. A connection whose client does not read is reset."""
        if self.closing:
            return
        error = NexoError(error_name, detail, retry_after_ms=retry_after_ms)
        if self.blocked_since:
            self.reset(error_name)
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
        self._set_closing()
        self.ended = error.name
        log.info("connection_dropped", conn=self.conn_id, user=self.user_id, reason=error.name)
        self.socket.close(error.row.close_code, error.name)

    def reset(self, reason: str) -> None:
        """Cut the connection without a close frame."""
        self._set_closing()
        self.ended = reason
        self.socket.abort()

    def _set_closing(self) -> None:
        self.state = State.CLOSING
        self.closing = True

    def _answer_unsigned(self, bad: BadFrame) -> None:
        """Answer a bad frame before sign-in: only commands that need no session get their error."""
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
        wait_ms = 0
        if rate.tokens >= 1:  # as `charge`, without the call
            rate.tokens -= 1
        else:
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
        if self.sends is None:
            self.sends = ConnectionSends(self)
        self.sends.refuse_over_rate(command, error, ref)
        return False
