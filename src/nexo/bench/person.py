"""A simulated person: one connection, what it sent, which answers it got, and what it holds.

No task belongs to a person: everything is done by the callbacks of the connection, except connecting itself.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

import msgspec

from nexo.bench.counts import Counts, Recorder
from nexo.bench.frame import BenchDialect, Entry, Frame
from nexo.bench.http import ServerAddress
from nexo.bench.numbering import client_msg_id_of, number_of
from nexo.bench.plan import Plan
from nexo.bench.track import STAMP_DIGITS, Track
from nexo.bench.websocket import BenchConnection, open_connection, upgrade_request

CONNECT_TIMEOUT_S = 30.0
RESTART_S = 60.0  # how long a client tries to return to a server that is restarted
CACHE_MAX = 4096
SLOW_BUFFER_BYTES = 65_536


class ConnectFailed(Exception):
    """A person could not sign in; the text states why."""


class Stage:
    """What the persons of one process share."""

    def __init__(self, plan: Plan, dialect: BenchDialect, addresses: list[ServerAddress]) -> None:
        self.plan = plan
        self.dialect = dialect
        self.addresses = addresses
        self.counts = Counts()
        self.recorder = Recorder(plan.warmup_s + plan.seconds, plan.step_s)
        self.saved = self.recorder.metric("saved")
        self.received = self.recorder.metric("received")
        self.received_slowly = self.recorder.metric("received by slow readers")
        # two-phase servers only
        self.accepted = self.recorder.metric("accepted")
        self.save_lag = self.recorder.metric("save lag")
        self.first_copy = self.recorder.metric("first copy")
        self.delivers_early = False  # receivers get provisional copies
        self.padding = "x" * (plan.body_bytes - STAMP_DIGITS)
        self.running = False  # while true, a closed loop continues
        self.settled = True  # while it is, connections that end are a fault
        self.unacknowledged: set[tuple[Person, Track]] = set()  # of coalesced acknowledgements
        self.tracks: dict[str, list[Track]] = {}  # of all persons, by conversation
        self.decode: Callable[[bytes], Frame] = _remembering(dialect.decode) if plan.groups else dialect.decode
        self.loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def body(self, due: float) -> str:
        """Carries the time at which it was to be sent; the receiver, maybe in another process, reads it there."""
        return f"{int(due * 1e6):016d}{self.padding}"

    def flush_acknowledgements(self) -> None:
        for person, track in self.unacknowledged:
            person.acknowledge(track)
        self.unacknowledged.clear()


def _remembering(decode: Callable[[bytes], Frame]) -> Callable[[bytes], Frame]:
    """A group message is the same bytes for every member: decoding it once saves half of the work."""
    known: dict[bytes, Frame] = {}

    def lookup(payload: bytes) -> Frame:
        frame = known.get(payload)
        if frame is None:
            if len(known) >= CACHE_MAX:
                known.clear()
            frame = known[payload] = decode(payload)
        return frame

    return lookup


class SendTarget(msgspec.Struct):
    """The target of a send."""

    track: Track
    to: str
    is_group: bool
    place: int  # among the targets of that sender


class Person:
    def __init__(self, stage: Stage, number: int, user_id: str, token: str) -> None:
        self.stage = stage
        self.number = number
        self.user_id = user_id
        self.token = token
        self.address = stage.addresses[number % len(stage.addresses)]
        self.tracks: dict[str, Track] = {}
        self.targets: list[SendTarget] = []
        self.connection: BenchConnection | None = None
        self.slow = False  # reads little, or nothing
        self.flapping = False
        self.online = False  # signed in, and what was not answered has been sent again
        self.wanted = False  # stays connected: reconnects when it is cut
        self.sent = 0
        self.pending: dict[int, tuple[float, SendTarget]] = {}
        self.refused: list[tuple[int, SendTarget]] = []
        self.acks_number = array("q")
        self.acks_seq = array("q")
        self.acks_id = array("Q")
        self.acks_target = array("l")
        self.on_saved: Callable[[Person, SendTarget], None] | None = None
        self.on_caught_up: Callable[[Person], None] | None = None
        self.on_pong: Callable[[Person], None] | None = None
        self.on_page: Callable[[Person, Frame], None] | None = None
        self.latencies = stage.received
        self._accepted_at: dict[int, float] = {}
        self._early: set[str] = set()  # server_msg_ids of provisional copies
        self._name = f"{number:05x}"
        self._ready: asyncio.Future[None] | None = None
        self._behind: set[str] = set()  # conversations that are being pulled
        self._quick_acks = stage.plan.acks == "each"
        self._late_acks = stage.plan.acks == "coalesced"

    # -- connecting ------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self.connection is not None and self.connection.open

    async def connect(self) -> None:
        """Returns once signed in, with whatever the server sends by itself."""
        stage = self.stage
        self._ready = stage.loop.create_future()
        self._behind.clear()
        dialect = stage.dialect
        token = self.token
        upgrade = upgrade_request(self.address, dialect.path(self.user_id), dialect.subprotocol, dialect.bearer(token))

        def make() -> BenchConnection:
            connection = BenchConnection(
                upgrade, self._opened, self._heard, lambda reason: self._lost(connection, reason)
            )
            self.connection = connection
            return connection

        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await open_connection(self.address, make, SLOW_BUFFER_BYTES if self.slow else None)
                await self._ready
        except TimeoutError:
            self.connection = None
            raise ConnectFailed(f"{self.user_id} was not signed in within {CONNECT_TIMEOUT_S:g} s") from None
        except OSError as error:
            self.connection = None
            raise ConnectFailed(f"{self.user_id} could not connect: {error}") from error
        finally:
            self._ready = None
        self.wanted = self.online = True
        if self.token is not token:  # it was renewed on the way, and the connection lives as long as its token
            self._write(dialect.renewal(self.token))

    async def come_back(self) -> None:
        """Connect again as a client does: at once, with its cursors, and send again what was not answered."""
        self.stage.counts.reconnects += 1
        for track in self.tracks.values():
            track.restless = True
        pause_s, restarts = 0.05, self.stage.plan.allow_restarts
        deadline = perf_counter() + RESTART_S
        while True:
            try:
                await self.connect()
                break
            except ConnectFailed as error:
                # who reads too slowly may be closed again while it signs in
                counts = self.stage.counts
                self._count(counts.ended if self.slow or restarts else counts.errors, str(error).split(": ")[-1])
                if perf_counter() > deadline if restarts else pause_s > 2:
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, 2.0) if restarts else pause_s * 2
        for number, (due, target) in list(self.pending.items()):
            for track in self.stage.tracks.get(target.track.conversation_id, ()):
                track.restless = True  # a message that is sent again is also pushed again
            self._send(number, due, target)

    def renew(self, token: str) -> None:
        """Continues with this token."""
        self.token = token
        if self.online:
            self._write(self.stage.dialect.renewal(token))

    def leave(self) -> None:
        """Cut off, on purpose."""
        self.wanted = self.online = False
        if self.connection is not None:
            self.connection.cut()
            self.connection = None

    def _opened(self) -> None:
        baselines = {name: track.contiguous for name, track in self.tracks.items() if track.contiguous}
        hello = self.stage.dialect.hello(self.token, f"bench-{self.number}", baselines)
        if hello is not None:
            self._write(hello)

    def _write(self, payload: bytes) -> None:
        if self.connection is not None and self.connection.open:
            self.connection.send(payload)

    def _lost(self, connection: BenchConnection, reason: str) -> None:
        ready = self._ready
        if ready is not None and not ready.done():
            self.connection = None
            ready.set_exception(ConnectFailed(f"{self.user_id} was not let in: {reason}"))
            return
        if connection is not self.connection:
            return
        self.connection = None
        self.online = False
        counts = self.stage.counts
        expected = self.slow or self.flapping or not self.stage.settled or self.stage.plan.allow_restarts
        self._count(counts.ended if expected else counts.lost, reason)
        if self.wanted:
            self.stage.spawn(self.come_back())

    @staticmethod
    def _count(counted: dict[str, int], reason: str) -> None:
        counted[reason] = counted.get(reason, 0) + 1

    # -- sending ---------------------------------------------------------------------------------------

    def send(self, target: SendTarget, due: float) -> None:
        number = self.sent
        self.sent = number + 1
        self.pending[number] = (due, target)
        self.stage.counts.sent += 1
        self._send(number, due, target)

    def _send(self, number: int, due: float, target: SendTarget) -> None:
        connection = self.connection
        if connection is None or not self.online:
            return  # it leaves when this one is back, behind those before it
        stage = self.stage
        client_msg_id = client_msg_id_of(stage.plan.seed, self.number, number)
        if target.is_group:
            connection.send(stage.dialect.group(client_msg_id, target.to, stage.body(due)))
        else:
            connection.send(stage.dialect.single(client_msg_id, target.to, stage.body(due)))

    def acknowledge(self, track: Track) -> None:
        dialect = self.stage.dialect
        if self.connection is not None and self.connection.open and track.contiguous:
            if dialect.acks_by_seq:
                self.connection.send(dialect.delivered(track.conversation_id, track.contiguous, ""))
            elif track.reached_id:
                self.connection.send(dialect.delivered(track.conversation_id, 0, str(track.reached_id)))

    # -- hearing ---------------------------------------------------------------------------------------

    def _heard(self, payload: bytes) -> None:
        frame = self.stage.decode(payload)
        kind = frame.type
        if kind == "ACK":
            self._acknowledged(frame)
        elif kind == "SINGLE_CHAT" or kind == "GROUP_CHAT" or kind == "GROUP_EVENT":
            self._message(frame)
        else:
            self._other(kind, frame)

    def _acknowledged(self, frame: Frame) -> None:
        if frame.ack_type == "saved":
            self._saved(frame)
        elif frame.ack_type == "delivered":
            track = self.tracks.get(frame.conversation_id or "")
            if track is not None and frame.msg_seq > track.receipt:
                track.receipt = frame.msg_seq
        elif frame.ack_type == "accepted":
            self._accepted(frame)

    def _accepted(self, frame: Frame) -> None:
        stage = self.stage
        stage.counts.accepted += 1
        number = number_of(frame.client_msg_id or "0" * 28)
        found = self.pending.get(number)
        if found is not None and number not in self._accepted_at:
            self._accepted_at[number] = now = perf_counter()
            stage.recorder.record(stage.accepted, found[0], now)

    def _saved(self, frame: Frame) -> None:
        stage = self.stage
        number = number_of(frame.client_msg_id or "0" * 28)
        found = self.pending.pop(number, None)
        if found is None:
            stage.counts.repeated += 1  # the answer to a retry
            return
        due, target = found
        now = perf_counter()
        recorder = stage.recorder
        recorder.record(stage.saved, due, now)
        accepted_at = self._accepted_at.pop(number, None)
        if accepted_at is not None:
            recorder.record(stage.save_lag, accepted_at, now)
        recorder.saved[recorder.step_of(now)] += 1
        stage.counts.saved += 1
        self.acks_number.append(number)
        self.acks_seq.append(frame.msg_seq)
        self.acks_id.append(int(frame.server_msg_id or 0))
        self.acks_target.append(target.place)
        if not target.track.own(frame.msg_seq):
            stage.counts.foreign += 1  # the server acknowledged another message at this seq
        if self.on_saved is not None:
            self.on_saved(self, target)

    def _message(self, frame: Frame, pulled: bool = False) -> None:
        stage = self.stage
        counts = stage.counts
        if frame.provisional:
            self._provisional(frame)
            return
        client_msg_id = frame.client_msg_id
        if client_msg_id is not None and client_msg_id[16:21] == self._name:
            return  # one's own, sent again; its acknowledgement is what counts
        if not pulled and frame.msg_type < 100:
            counts.received += 1
        track = self.tracks.get(frame.conversation_id or "")
        if track is None:
            counts.foreign += 1
            return
        if not track.take(frame, counts, pulled):
            return
        if pulled:
            counts.pulled += 1
        if frame.msg_type < 100 and type(frame.body) is str:
            counts.unique += 1
            now = perf_counter()
            recorder = stage.recorder
            due = frame.facts.due
            recorder.record(self.latencies, due, now)
            recorder.received[recorder.step_of(now)] += 1
            if stage.delivers_early:
                if frame.server_msg_id in self._early:
                    self._early.discard(frame.server_msg_id)
                else:
                    recorder.record(stage.first_copy, due, now)
        if self._quick_acks:
            if track.contiguous == frame.msg_seq and self.connection is not None:
                delivered = stage.dialect.delivered
                self.connection.send(delivered(track.conversation_id, frame.msg_seq, frame.server_msg_id or ""))
        elif self._late_acks:
            stage.unacknowledged.add((self, track))

    def _provisional(self, frame: Frame) -> None:
        """A copy that comes before the saved one. It is read, and counts for nothing else."""
        stage = self.stage
        stage.delivers_early = True
        if frame.server_msg_id is not None and type(frame.body) is str and frame.body[:STAMP_DIGITS].isdigit():
            self._early.add(frame.server_msg_id)
            stage.recorder.record(stage.first_copy, int(frame.body[:STAMP_DIGITS]) * 1e-6, perf_counter())

    def _other(self, kind: str, frame: Frame) -> None:
        counts = self.stage.counts
        if kind == "PONG":
            if self.on_pong is not None:
                self.on_pong(self)
        elif kind == "AUTH_OK":
            question = self.stage.dialect.after_auth()
            if question is not None:
                self._write(question)
        elif kind == "SYNC":
            self._note_heads(frame)
        elif kind == "RESEND_DONE":
            self._signed_in()
        elif kind == "PULL_OK":
            self._pulled(frame)
        elif kind == "RESYNC":
            counts.resyncs += 1
            for track in self.tracks.values():
                track.restless = True
            self.stage.loop.call_later(frame.after_ms / 1000, self._write, self.stage.dialect.sync())
        elif kind == "GROUP_NOTIFY":
            self._note_head(frame.conversation_id or "", frame.head_seq)
        elif kind == "HEADS":
            self._note_heads(frame)
        elif kind == "ERROR":
            self._error(frame)
        elif kind == "AUTH_FAIL" and self._ready is not None and not self._ready.done():
            self._ready.set_exception(ConnectFailed(f"{self.user_id}: {frame.reason}"))

    def _error(self, frame: Frame) -> None:
        stage = self.stage
        found = None
        if frame.client_msg_id:
            found = self.pending.pop(number_of(frame.client_msg_id), None)
        self._count(stage.counts.errors, frame.reason)
        if found is None:
            return
        stage.counts.refused += 1
        self.refused.append((number_of(frame.client_msg_id or ""), found[1]))
        if self.on_saved is not None:  # the window has a place again, but not at once
            again = self.on_saved
            stage.loop.call_later(max(frame.retry_after_ms, 50) / 1000, lambda: again(self, found[1]))

    # -- catching up -----------------------------------------------------------------------------------

    def _note_heads(self, frame: Frame) -> None:
        for entry in frame.conversations:
            if isinstance(entry, Entry):
                self._note_head(entry.conversation_id, entry.head_seq, wait=self.stage.dialect.resends)
        if not self.stage.dialect.resends:
            self._signed_in()

    def _note_head(self, conversation_id: str, head_seq: int, wait: bool = False) -> None:
        track = self.tracks.get(conversation_id)
        if track is None:
            return
        track.head = max(track.head, head_seq)
        if track.contiguous >= head_seq:
            return
        # while signing in, the resend comes first; what is missing after it is pulled
        if not (wait and self._ready is not None):
            self._pull(track)

    def _signed_in(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)
        for track in self.tracks.values():
            if track.contiguous < track.head:
                self._pull(track)
        self._tell_caught_up()

    def _pull(self, track: Track) -> None:
        if track.conversation_id in self._behind:
            return
        self._behind.add(track.conversation_id)
        track.restless = True
        self._write(self.stage.dialect.pull(track.conversation_id, track.contiguous + 1))

    def _pulled(self, frame: Frame) -> None:
        if self.on_page is not None:
            self.on_page(self, frame)
            return
        name = frame.conversation_id or ""
        track = self.tracks.get(name)
        if track is None:
            return
        before = track.contiguous
        quick, self._quick_acks = self._quick_acks, False  # one acknowledgement for the page
        for message in frame.messages:
            message.conversation_id = name
            if not track.holds(message.msg_seq):
                self._message(message, pulled=True)
        self._quick_acks = quick
        if quick:
            last = frame.messages[-1] if frame.messages else None
            if last is not None and last.msg_seq <= track.contiguous:
                self._write(self.stage.dialect.delivered(name, last.msg_seq, last.server_msg_id or ""))
        self._behind.discard(name)
        track.head = max(track.head, frame.head_seq)
        if before < track.contiguous < track.head:  # else an own message is between, and its answer on its way
            self._pull(track)
        self._tell_caught_up()

    def ask_again(self) -> None:
        """Pulls what the server has reported and this person does not have."""
        self._behind.clear()
        for track in self.tracks.values():
            if track.contiguous < track.head:
                self._pull(track)

    @property
    def is_caught_up(self) -> bool:
        return all(track.contiguous >= track.head for track in self.tracks.values())

    def _tell_caught_up(self) -> None:
        if self.on_caught_up is not None and not self._behind and self.is_caught_up:
            self.on_caught_up(self)
