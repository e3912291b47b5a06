"""The bus over Redis: one channel per instance, numbered frames, a beat that notices what is missing.

Three tasks: the beat (sign of life, heartbeats, who is silent, what Redis has forgotten), the publisher (one
round trip to find out who is where, one to publish, for everything that waits) and the subscriber.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable
from typing import Any

import msgspec
import structlog
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from nexo.bus.frames import Frame, FrameKind, decode_frame, encode_frame, split_payloads
from nexo.bus.numbering import Incoming, Outgoing
from nexo.bus.redis_link import BusDown, Command, RedisLink, Script, end_tasks
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

BEATS_PER_DETECTION = 5
RENEWALS_PER_TTL = 3
STATUS_S = 20
TRIES_AT_START = 2  # the first may take longer than later ones: connecting, looking around in a cluster

Waiting = tuple[bytes, Collection[str] | None, Collection[str] | None]  # payload, users, instances


class RedisBus:
    """`ports.Bus`; its `presence` is `ports.Presence`."""

    is_shared = True

    def __init__(self, config: Config, url: RedisUrl) -> None:
        self.instance_id = new_instance_id()
        self._settings = config.bus
        self._beat_s = config.bus.detect_s / BEATS_PER_DETECTION
        self._prefix = config.redis.prefix
        self._link = RedisLink(url, config.redis.timeout_ms / 1000)
        self._link.on_break = self._went_down
        self._incoming = Incoming(config.bus.detect_s - self._beat_s)
        self._outgoing = Outgoing()
        self.presence = RedisPresence(
            self._link, self.instance_id, config.bus.presence_ttl_s, self._prefix, self._incoming.is_gone
        )
        self._listener: BusListener
        self._peers: dict[str, int] = {}  # other instances that are alive, with their number of users
        self._queue: list[Waiting] = []
        self._overflowed = False
        self._numbers = asyncio.Lock()  # frames leave in the order of their numbers, heartbeats among them
        self._wake = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._stopping = False
        self._beating: asyncio.Task[None] | None = None
        self._publisher: asyncio.Task[None] | None = None
        self._subscriber: asyncio.Task[None] | None = None
        self._echo_at = 0.0  # when this instance last heard itself
        self._is_up = False
        self._settled = asyncio.Event()  # it is clear whether others can be heard
        self._heard = asyncio.Event()
        self._watches_at = self._beat_at = 0.0
        self.frames_out = self.frames_in = self.losses = 0
        self._losses = Tally()

    # -- life ------------------------------------------------------------------------------------------

    async def start(self, listener: BusListener) -> None:
        self._listener = listener
        self.presence.start(listener)
        self._beating = asyncio.create_task(self._beat_on())
        self._publisher = asyncio.create_task(self._publish_on())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * self._settings.detect_s):
                await self._settled.wait()
        if not self._is_up:
            log.warning("bus_down_at_start")
            listener.reachable(False)
            return
        # those who have been heard know of this instance, and will tell it what they tell everybody
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
            await asyncio.wait({self._publisher}, timeout=1)
        await end_tasks(self._publisher, self._beating, self._subscriber)
        with contextlib.suppress(BusDown):
            await self._link.run([self._frame(peer, FrameKind.GOODBYE) for peer in self._peers] + [self._leave()])
        await self._link.close()

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

    async def _publish_on(self) -> None:
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
                log.exception("publish_failed", count=len(items))
                self._outgoing.lose(self._peers)

    async def _publish(self, items: list[Waiting]) -> None:
        # all that is said in one conversation is for the same list: each is looked through once
        audiences = {id(user_ids): user_ids for _, user_ids, _ in items if user_ids is not None}
        wanted = {user_id for user_ids in audiences.values() for user_id in user_ids}
        try:
            places = await self.presence.look_up(wanted) if wanted else {}
        except BusDown:
            self._outgoing.lose(self._peers)  # nobody knows for whom it was
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
            await self._link.run(frames)  # each has taken its number, published or not

    def _frame(self, receiver: str, kind: FrameKind, payloads: list[bytes] | None = None) -> Command:
        data = kind is FrameKind.DATA
        number = self._outgoing.take(receiver) if data else self._outgoing.last(receiver)
        frame = encode_frame(Frame(kind, self.instance_id, number, payloads or []))
        return self._link.publish(self._channel(receiver), frame)

    # -- the beat ----------------------------------------------------------------------------------------

    async def _beat_on(self) -> None:
        failures = 0
        while not self._stopping:
            started = time.monotonic()
            try:
                await self._beat()
            except BusDown:
                failures += 1
                if failures == TRIES_AT_START:
                    self._settled.set()
                self._went_down()
            except Exception:
                log.exception("beat_failed")
            pause_s = self._settings.breaker_ms / 1000 if self._link.is_broken else self._beat_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.01, started + pause_s - time.monotonic())):
                    await self._beat_now.wait()
            self._beat_now.clear()

    async def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at > 3 * self._beat_s:  # it was this process that stood still, and what came waits unread
            self._incoming.pardon(now)
            if self._is_up:
                self._echo_at = max(self._echo_at, now - self._beat_s)
        self._beat_at = now
        forget_ms = 4 * self._settings.detect_s * 1000
        sign = _BEAT.call(self._instances(), self.instance_id, self.presence.count, forget_ms)
        (answer,) = await self._link.run([sign], probe=True)
        self._meet(answer, now)
        self._listen()
        is_forgotten = self._is_up and not answer[0]
        if is_forgotten:
            log.warning("redis_forgot", instance=self.instance_id)
            await self.presence.register_all()
            self._tell_lost("presence_lost")
        async with self._numbers:  # one to itself too: that is how it knows that it can hear
            receivers = (*self._peers, self.instance_id)
            await self._link.run([self._frame(name, FrameKind.HEARTBEAT) for name in receivers])
        if not self._is_up:
            await self._come_up(now)
        else:
            self._notice_silence(now)
            await self._renew(now)

    def _meet(self, answer: list[Any], now: float) -> None:
        """Who is there, by the list that everybody signs."""
        peers: dict[str, int] = {}
        for i in range(1, len(answer), 3):
            name, age_ms, users = answer[i].decode(), answer[i + 1], answer[i + 2]
            if name != self.instance_id and age_ms <= self._settings.detect_s * 1000:
                peers[name] = users
                self._incoming.expect(name, now)
                if name not in self._peers:
                    self._outgoing.meet(name)
        self._peers = peers

    async def _come_up(self, now: float) -> None:
        """Once this instance hears itself, everything is registered again; then it counts as reachable."""
        if now - self._echo_at > 2 * self._beat_s:
            return
        await self.presence.register_all()
        self._incoming.pardon(time.monotonic())
        self._is_up = True
        self._settled.set()
        log.info("bus_up", instance=self.instance_id, peers=len(self._peers))
        if self._listener.here():
            self._tell_lost("bus_back")
        self._listener.reachable(True)

    def _went_down(self) -> None:
        if self._is_up:
            self._is_up = False
            self._echo_at = 0.0  # what was heard before says nothing about what is heard after
            self._listener.reachable(False)

    def _notice_silence(self, now: float) -> None:
        if now - self._echo_at > self._settings.detect_s:
            log.warning("bus_deaf", instance=self.instance_id)
            self._stop_listening()
            self._went_down()
            return
        for name in self._incoming.fallen_silent(now):
            log.warning("instance_silent", instance=name)
            self._peers.pop(name, None)
            self._tell_lost("instance_lost")
            self._listener.instance_gone(name)

    async def _renew(self, now: float) -> None:
        round_s = self._settings.presence_ttl_s / RENEWALS_PER_TTL
        self.presence.renew_some(self._beat_s / round_s)
        if now - self._watches_at > round_s:
            self._watches_at = now
            await self.presence.renew_watches()

    def _tell_lost(self, reason: str) -> None:
        self.losses += 1
        self._losses.add(reason)
        self._listener.lost(reason)

    # -- listening ---------------------------------------------------------------------------------------

    def _listen(self) -> None:
        if self._subscriber is None or self._subscriber.done():
            self._subscriber = asyncio.create_task(self._hear())

    def _stop_listening(self) -> None:
        if self._subscriber is not None:
            self._subscriber.cancel()

    async def _hear(self) -> None:
        """Until the connection breaks; the beat starts it again. What was missed is found by the numbers."""
        pubsub: PubSub | None = None
        try:
            async with asyncio.timeout(self._settings.detect_s):
                pubsub = await self._link.subscribe(self._channel(self.instance_id))
            while True:
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
        await self._link.look_around()

    def _take_in(self, data: bytes) -> None:
        now = time.monotonic()
        try:
            frame = decode_frame(data)
        except msgspec.MsgspecError as error:
            log.error("bad_bus_frame", error=str(error))
            self._tell_lost("bad_frame")
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
                self._tell_lost("bad_frame")
        if seen.loss:
            log.warning("bus_frames_lost", publisher=frame.publisher, loss=seen.loss)
            self._tell_lost("push_lost")
        if frame.kind is FrameKind.GOODBYE:
            self._peers.pop(frame.publisher, None)
            self._listener.instance_gone(frame.publisher)

    async def exchange(self, status: bytes) -> dict[str, bytes]:
        """Leave what this instance says of itself for a moment, and read what the others left. Nothing when Redis
        cannot be asked."""
        own = Command(("SET", self._status_key(self.instance_id), status, "EX", STATUS_S))
        peers = list(self._peers)
        try:
            _, *found = await self._link.run([own, *(Command(("GET", self._status_key(name))) for name in peers)])
        except BusDown:
            return {}
        return {name: text for name, text in zip(peers, found, strict=True) if text is not None}

    # -- small things that instances share (`ports.Bus`) ---------------------------------------------------

    async def take(self, key: str, per_min: int) -> int:
        interval_us = 60_000_000 // per_min
        try:
            (wait_ms,) = await self._link.run(
                [_TAKE.call([f"{self._prefix}limit:{{{key}}}"], interval_us, interval_us * per_min)]
            )
        except BusDown:
            return 0
        return int(wait_ms)

    async def lock(self, key: str, ttl_s: float) -> bool:
        words = ("SET", self._lock_key(key), self.instance_id, "NX", "PX", int(ttl_s * 1000))
        try:
            (taken,) = await self._link.run([Command(words)])
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
        return [f"{self._prefix}{{instances}}:seen", f"{self._prefix}{{instances}}:users"]

    def _leave(self) -> Command:
        return _LEAVE.call(self._instances(), self.instance_id)
