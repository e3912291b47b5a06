"""The bus over Redis: one channel per instance, numbered frames, a beat that detects losses.

Three tasks: the beat (sign of life, heartbeats, silent instances, lost data of Redis), the publisher (one round trip
to look up instances, one to publish, for everything that waits) and the subscriber.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec
import structlog
from msgspec import Struct
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from nexo.background import Background, Running
from nexo.bus.frames import BusFrame, FrameKind, decode_frame, encode_frame, split_payloads
from nexo.bus.loss_detection import Incoming, Outgoing
from nexo.bus.redis_client import BusDown, RedisClient, RedisCommand, Script, end_tasks
from nexo.bus.redis_presence import RedisPresence
from nexo.config import Config, RedisUrl
from nexo.ids import new_instance_id
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally
from nexo.ports import BusListener

log = structlog.get_logger()

_BEAT = Script("beat")
_LEAVE = Script("leave")
_UNLOCK = Script("unlock")
_TAKE = Script("take")
_GIVE_BACK = Script("give_back")

BEATS_PER_DETECTION = 5
RENEWALS_PER_TTL = 3
STATUS_S = 20
FAILOVER_PROBE_S = 0.25
PUBLISH_REST_S = 1.0  # how long stopping waits for what was submitted before
TRIES_AT_START = 2  # the first may take longer than later ones: connecting, reading the slots of a cluster


class PeerInstance(Struct, frozen=True):
    """Another instance that is alive."""

    users: int
    committed_at: float | None  # of the last commit that is known; None: it serves no clients


Waiting = tuple[bytes, Collection[str] | None, Collection[str] | None]  # payload, users, instances


class RedisBus:
    """`ports.Bus`; its `presence` is `ports.PresenceStore`."""

    is_shared = True

    def __init__(self, config: Config, url: RedisUrl, background: Background) -> None:
        self.instance_id = new_instance_id()
        self._settings = config.bus
        self._beat_s = config.bus.detect_s / BEATS_PER_DETECTION
        self._prefix = config.redis.prefix
        self._link = RedisClient(url, config.redis.timeout_ms / 1000)
        self._link.on_break = self._lost_redis
        self._probe_s = config.bus.breaker_ms / 1000
        if url.mode != "single":  # another server may take over at any moment
            self._probe_s = min(self._probe_s, FAILOVER_PROBE_S)
        self._incoming = Incoming(config.bus.detect_s - self._beat_s)
        self._outgoing = Outgoing()
        self.presence = RedisPresence(
            self._link, self.instance_id, config.bus.presence_ttl_s, self._prefix, self._is_gone, background
        )
        self._background = background
        self._listener: BusListener
        self._peers: dict[str, PeerInstance] = {}
        self.committed_at: Callable[[], float] | None = None
        self._queue: list[Waiting] = []
        self._overflowed = False
        self._numbers = asyncio.Lock()  # frames leave in the order of their numbers, heartbeats among them
        self._wake = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._stopping = False
        self._beating: Running | None = None
        self._publisher: Running | None = None
        self._subscriber: asyncio.Task[None] | None = None
        self._listens_again = False  # Redis has failed since the subscriber was started
        self._echo_at = 0.0  # when this instance last received its own heartbeat
        self._is_up = False
        self._listening_since = 0.0
        self._settled = asyncio.Event()  # it is known whether other instances can be heard
        self._heard = asyncio.Event()
        self._watches_at = self._beat_at = 0.0
        self.frames_out = self.frames_in = 0
        self._losses = Tally()

    # -- start and stop --------------------------------------------------------------------------------

    async def start(self, listener: BusListener) -> None:
        self._listener = listener
        self.presence.start(listener)
        self._beating = self._background.serve("bus_beat", self._beat_loop)
        self._publisher = self._background.serve("bus_publisher", self._publish_loop)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * self._settings.detect_s):
                await self._settled.wait()
        if not self._is_up:
            log.warning("bus_down_at_start")
            listener.reachable(False)
            return
        # an instance that was heard knows this one and publishes to it
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * self._beat_s):
                while not self._incoming.has_heard(self._peers):
                    self._heard.clear()
                    await self._heard.wait()

    async def stop(self) -> None:
        if self._stopping:
            return
        await self.presence.stop()
        self._stopping = True
        self._wake.set()
        if self._publisher is not None:
            await self._publisher.finish(PUBLISH_REST_S)
        if self._beating is not None:
            await self._beating.stop()
        await end_tasks(self._subscriber)
        with contextlib.suppress(BusDown):
            await self._link.run([self._frame(peer, FrameKind.GOODBYE) for peer in self._peers] + [self._leave()])
        await self._link.close()

    @property
    def is_up(self) -> bool:
        return self._is_up

    def misses(self, instance_id: str) -> bool:
        return self._is_up and self._incoming.misses(instance_id)

    def peers(self) -> Collection[str]:
        return list(self._peers)

    def last_commits(self) -> list[float]:
        return [peer.committed_at for peer in self._peers.values() if peer.committed_at is not None]

    def samples(self) -> Iterable[Sample]:
        yield f.BUS_UP(float(self._is_up))
        yield f.BUS_PEERS(len(self._peers))
        yield f.BUS_FRAMES(self.frames_in, "in")
        yield f.BUS_FRAMES(self.frames_out, "out")
        yield from f.BUS_LOSSES.each(self._losses)
        yield f.QUEUE(len(self._queue), "bus")
        yield f.QUEUE_LIMIT(self._settings.queue_max, "bus")
        yield from self._link.samples()

    # -- publishing (`ports.Bus`) ------------------------------------------------------------------------

    def publish(self, payload: bytes, user_ids: Collection[str]) -> None:
        self._enqueue((payload, user_ids, None))

    def publish_to(self, payload: bytes, instance_ids: Collection[str]) -> None:
        self._enqueue((payload, None, instance_ids))

    def publish_to_all(self, payload: bytes) -> None:
        self._enqueue((payload, None, None))

    def _enqueue(self, item: Waiting) -> None:
        if len(self._queue) >= self._settings.queue_max:
            self._overflowed = True
            return
        self._queue.append(item)
        self._wake.set()

    async def _publish_loop(self) -> None:
        """Publish what was submitted, until the bus stops."""
        while self._queue or not self._stopping:
            await self._wake.wait()
            self._wake.clear()
            items, self._queue = self._queue, []
            if self._overflowed:
                self._overflowed = False
                self._outgoing.lose(self._peers)
            if not items:
                continue
            try:
                await self._publish(items)
            except BusDown:
                pass
            except Exception:
                self._outgoing.lose(self._peers)
                raise

    async def _publish(self, items: list[Waiting]) -> None:
        # all messages of one conversation share one list of users: each list is searched once
        audiences = {id(user_ids): user_ids for _, user_ids, _ in items if user_ids is not None}
        wanted = {user_id for user_ids in audiences.values() for user_id in user_ids}
        try:
            places = await self.presence.look_up(wanted) if wanted else {}
        except BusDown:
            self._outgoing.lose(self._peers)  # its receivers are unknown
            raise
        instances = {
            key: {name for user_id in user_ids if user_id in places for name in places[user_id]}
            for key, user_ids in audiences.items()
        }
        batches: dict[str, list[bytes]] = {}
        for payload, user_ids, instance_ids in items:
            if user_ids is not None:
                receivers = instances[id(user_ids)]
            else:
                receivers = set(self._peers if instance_ids is None else instance_ids) - {self.instance_id}
            for name in receivers:
                batches.setdefault(name, []).append(payload)
        if not batches:
            return
        async with self._numbers:
            frames = [
                self._frame(name, FrameKind.DATA, part)
                for name, payloads in batches.items()
                for part in split_payloads(payloads)
            ]
            self.frames_out += len(frames)
            await self._link.run(frames)  # each has taken its number, whether it is published or not

    def _frame(self, receiver: str, kind: FrameKind, payloads: list[bytes] | None = None) -> RedisCommand:
        data = kind is FrameKind.DATA
        number = self._outgoing.take(receiver) if data else self._outgoing.last(receiver)
        frame = encode_frame(BusFrame(kind, self.instance_id, number, payloads or []))
        return self._link.publish(self._channel(receiver), frame)

    # -- the beat ----------------------------------------------------------------------------------------

    async def _beat_loop(self) -> None:
        failures = 0
        while True:
            started = time.monotonic()
            try:
                await self._beat()
            except BusDown:
                failures += 1
                if failures == TRIES_AT_START:
                    self._settled.set()
                self._listening_since = time.monotonic()  # without its own heartbeat there was nothing to receive
                self._lost_redis()
            pause_s = self._probe_s if self._link.is_broken else self._beat_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.01, started + pause_s - time.monotonic())):
                    await self._beat_now.wait()
            self._beat_now.clear()

    async def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at > 3 * self._beat_s:  # this process was stopped; received data is not read yet
            self._incoming.pardon(now)
            if self._is_up:
                self._echo_at = max(self._echo_at, now - self._beat_s)
        self._beat_at = now
        forget_ms = 4 * self._settings.detect_s * 1000
        age_ms = -1 if self.committed_at is None else max(0, int((now - self.committed_at()) * 1000))
        sign = _BEAT.call(self._instances(), self.instance_id, self.presence.count, forget_ms, age_ms)
        (answer,) = await self._link.run([sign], probe=True)
        self._meet(answer, now)
        if self._listens_again:  # the subscriber may wait for a server that has fallen silent, without an error
            self._listens_again = False
            self._stop_listening()
        self._listen()
        is_forgotten = self._is_up and not answer[0]
        if is_forgotten:
            log.warning("redis_forgot", instance=self.instance_id)
            await self.presence.register_all()
            self._report_loss("presence_lost")
        async with self._numbers:  # one to itself too, which shows that it can hear
            receivers = (*self._peers, self.instance_id)
            await self._link.run([self._frame(name, FrameKind.HEARTBEAT) for name in receivers])
        if not self._is_up:
            await self._come_up(now)
        else:
            self._notice_silence(now)
            await self._renew(now)

    def _meet(self, answer: list[Any], now: float) -> None:
        """Update the peers from the list in which every instance enters itself."""
        peers: dict[str, PeerInstance] = {}
        for i in range(1, len(answer), 4):
            name, age_ms, users, commit_age_ms = answer[i].decode(), *answer[i + 1 : i + 4]
            if name != self.instance_id and age_ms <= self._settings.detect_s * 1000:
                peers[name] = PeerInstance(users, None if commit_age_ms < 0 else now - (age_ms + commit_age_ms) / 1000)
                self._incoming.expect(name, now)
                if name not in self._peers:
                    self._outgoing.meet(name)
        self._peers = peers

    async def _come_up(self, now: float) -> None:
        """Register everything again once this instance hears itself; then it counts as reachable."""
        if now - self._echo_at > 2 * self._beat_s:
            if now - max(self._echo_at, self._listening_since) > self._settings.detect_s:
                self._stop_listening()  # a connection that hangs is never reported broken: open another one
            return
        await self.presence.register_all()
        self._incoming.pardon(time.monotonic())
        self._is_up = True
        self._settled.set()
        log.info("bus_up", instance=self.instance_id, peers=len(self._peers))
        if self._listener.here():
            self._report_loss("bus_back")
        self._listener.reachable(True)

    def _lost_redis(self) -> None:
        self._listens_again = True
        self._went_down()

    def _went_down(self) -> None:
        if self._is_up:
            self._is_up = False
            self._echo_at = 0.0  # an old echo does not show that this instance hears now
            self._listener.reachable(False)

    def _notice_silence(self, now: float) -> None:
        if now - self._echo_at > self._settings.detect_s:
            log.warning("bus_deaf", instance=self.instance_id)
            self._stop_listening()
            self._went_down()
            return
        if now - self._echo_at > 2 * self._beat_s:  # perhaps this instance hears nothing: decide later
            return
        for name in self._incoming.fallen_silent(now):
            log.warning("instance_silent", instance=name)
            self._peers.pop(name, None)
            self._report_loss("instance_lost")
            self._listener.instance_gone(name)

    def _is_gone(self, name: str) -> bool:
        """Returns whether an instance has ended. One that is in the list may be listening, even if nothing of it
        arrives here."""
        return name not in self._peers and self._incoming.is_gone(name)

    async def _renew(self, now: float) -> None:
        round_s = self._settings.presence_ttl_s / RENEWALS_PER_TTL
        self.presence.renew_some(self._beat_s / round_s)
        if now - self._watches_at > round_s:
            self._watches_at = now
            await self.presence.renew_watches()

    def _report_loss(self, reason: str) -> None:
        self._losses.add(reason)
        self._listener.lost(reason)

    # -- listening ---------------------------------------------------------------------------------------

    def _listen(self) -> None:
        if self._subscriber is None or self._subscriber.done():
            self._listening_since = time.monotonic()
            self._subscriber = self._background.start("bus_subscriber", self._hear())

    def _stop_listening(self) -> None:
        """Let another subscriber be started at once. Closing the connection of this one may take a second."""
        if self._subscriber is not None:
            self._subscriber.cancel()
            self._subscriber = None

    async def _hear(self) -> None:
        """Receive frames until the connection breaks; the beat starts it again. Numbers show what was missed."""
        pubsub: PubSub | None = None
        try:
            async with asyncio.timeout(self._settings.detect_s):
                pubsub = await self._link.subscribe(self._channel(self.instance_id))
            while self._subscriber is asyncio.current_task():  # the library may take its cancellation for a time-out
                message = await pubsub.get_message(timeout=None)
                if message is None:
                    continue
                if message["type"] in ("message", "smessage"):
                    self._take_in(message["data"])
                elif message["type"] in ("subscribe", "ssubscribe"):
                    self._beat_now.set()
                elif message["type"] in ("unsubscribe", "sunsubscribe"):
                    break  # the slot has moved to another node
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("bus_not_heard", error=f"{type(error).__name__}: {error}")
        finally:
            if pubsub is not None:
                await self._link.unsubscribe(pubsub)
        await self._link.reload_slots()

    def _take_in(self, data: bytes) -> None:
        now = time.monotonic()
        try:
            frame = decode_frame(data)
        except msgspec.MsgspecError as error:
            log.error("bad_bus_frame", error=str(error))
            self._report_loss("bad_frame")
            return
        if frame.publisher == self.instance_id:
            self._echo_at = now
            if not self._is_up:
                self._beat_now.set()
            return
        self.frames_in += 1
        self._heard.set()
        seen = self._incoming.see(frame, now)
        if seen.is_new:
            try:
                self._listener.received(frame.payloads)
            except Exception:
                log.exception("bus_frame_failed", publisher=frame.publisher)
                self._report_loss("bad_frame")
        if seen.loss:
            log.warning("bus_frames_lost", publisher=frame.publisher, loss=seen.loss)
            self._report_loss("push_lost")
        if frame.kind is FrameKind.GOODBYE:
            self._peers.pop(frame.publisher, None)
            self._listener.instance_gone(frame.publisher)

    async def exchange(self, status: bytes) -> dict[str, bytes]:
        """Write the status of this instance for some seconds. Returns the status of other instances; nothing when Redis
        cannot be reached."""
        own = RedisCommand(("SET", self._status_key(self.instance_id), status, "EX", STATUS_S))
        peers = list(self._peers)
        try:
            _, *found = await self._link.run([own, *(RedisCommand(("GET", self._status_key(name))) for name in peers)])
        except BusDown:
            return {}
        return {name: text for name, text in zip(peers, found, strict=True) if text is not None}

    # -- limits and locks shared by instances (`ports.Bus`) -------------------------------------------------

    async def take(self, key: str, per_min: int) -> int:
        interval_us = 60_000_000 // per_min
        try:
            (wait_ms,) = await self._link.run(
                [_TAKE.call([f"{self._prefix}limit:{{{key}}}"], interval_us, interval_us * per_min)]
            )
        except BusDown:
            return 0
        return int(wait_ms)

    async def give_back(self, key: str, per_min: int) -> None:
        with contextlib.suppress(BusDown):
            await self._link.run([_GIVE_BACK.call([f"{self._prefix}limit:{{{key}}}"], 60_000_000 // per_min)])

    async def lock(self, key: str, ttl_s: float) -> bool:
        words = ("SET", self._lock_key(key), self.instance_id, "NX", "PX", int(ttl_s * 1000))
        try:
            (taken,) = await self._link.run([RedisCommand(words)])
        except BusDown:
            return True
        return bool(taken)

    async def unlock(self, key: str) -> None:
        with contextlib.suppress(BusDown):
            await self._link.run([_UNLOCK.call([self._lock_key(key)], self.instance_id)])

    # -- keys ----------------------------------------------------------------------------------------------

    def _lock_key(self, key: str) -> str:
        return f"{self._prefix}lock:{{{key}}}"

    def _status_key(self, instance_id: str) -> str:
        return f"{self._prefix}status:{{{instance_id}}}"

    def _channel(self, instance_id: str) -> str:
        return f"{self._prefix}bus:{{{instance_id}}}"

    def _instances(self) -> list[str]:
        return [f"{self._prefix}{{instances}}:{name}" for name in ("seen", "users", "commits")]

    def _leave(self) -> RedisCommand:
        return _LEAVE.call(self._instances(), self.instance_id)
