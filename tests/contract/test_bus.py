"""One suite over every bus: in one process, over Redis, Redis Cluster and Redis behind Sentinel.

What only makes sense between instances runs on those that are shared.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import processes
from harness.proxy import Only, proxy_to
from harness.redis_cluster import RedisBehindSentinel, RedisCluster
from harness.servers import Redis
from harness.waiting import loop_time, loop_turns, nothing_for, until
from nexo.background import Background
from nexo.bus.local import LocalBus
from nexo.bus.redis import RedisBus
from nexo.bus.redis_client import BusDown, RedisCommand, end_tasks
from nexo.config import load, parse_redis_url
from nexo.ports import PresenceChange

DETECT_S = 1
PATIENCE_S = 20.0

_numbers = itertools.count(1)
Server = Redis | RedisCluster | RedisBehindSentinel


class Listener:
    """The gateway's place, with everything that it is told."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.losses: list[str] = []
        self.again: list[str] = []
        self.changes: list[PresenceChange] = []
        self.gone: list[str] = []
        self.up: list[bool] = []
        self.users: dict[str, list[int]] = {}
        self.watching: list[str] = []
        self._told = asyncio.Event()

    def received(self, payloads: Sequence[bytes]) -> None:
        self.payloads += payloads
        self._told.set()

    def lost(self, reason: str) -> None:
        self.losses.append(reason)
        self._told.set()

    def registered_again(self, user_ids: Sequence[str]) -> None:
        self.again += user_ids
        self._told.set()

    def presence_changed(self, change: PresenceChange) -> None:
        self.changes.append(change)
        self._told.set()

    def instance_gone(self, instance_id: str) -> None:
        self.gone.append(instance_id)
        self._told.set()

    def reachable(self, is_up: bool) -> None:
        self.up.append(is_up)
        self._told.set()

    def here(self) -> Mapping[str, Sequence[int]]:
        return self.users

    def watched(self) -> Sequence[str]:
        return self.watching

    async def until(self, is_so: Callable[[], Any], timeout_s: float = PATIENCE_S) -> None:
        async with asyncio.timeout(timeout_s):
            while not is_so():
                self._told.clear()
                if not is_so():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.5):
                            await self._told.wait()


class Instance:
    def __init__(self, bus: LocalBus | RedisBus, listener: Listener) -> None:
        self.bus = bus
        self.presence = bus.presence
        self.listener = listener

    @property
    def id(self) -> str:
        return self.bus.instance_id

    async def sign_in(self, user_id: str, *platforms: int) -> None:
        self.listener.users[user_id] = list(platforms)
        assert await self.presence.register(user_id, platforms) is not None

    def sign_out(self, user_id: str) -> None:
        del self.listener.users[user_id]
        self.presence.changed(user_id, ())


@pytest.fixture(scope="module")
def single() -> Iterator[Redis]:
    with Redis("appendonly no") as server:
        yield server


@pytest.fixture(scope="module")
def clustered() -> Iterator[RedisCluster]:
    with RedisCluster() as server:
        yield server


@pytest.fixture(scope="module")
def guarded() -> Iterator[RedisBehindSentinel]:
    with RedisBehindSentinel() as server:
        yield server


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.servers) for kind in ("single", "clustered", "guarded")])
def redis_server(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


def make_bus(url: str, background: Background | None = None, **flags: object) -> RedisBus:
    settings = {"bus.detect_s": DETECT_S, "redis.url": url, "redis.timeout_ms": 500, "bus.breaker_ms": 100} | {
        name.replace("__", "."): value for name, value in flags.items()
    }
    return RedisBus(load(env={}, flags=settings), parse_redis_url(url), background or Background())


@contextlib.asynccontextmanager
async def joined(url: str, count: int = 2, **flags: object) -> AsyncIterator[list[Instance]]:
    prefix = f"t{next(_numbers)}:"  # those whom an earlier test has killed are nobody's neighbours here
    instances = [Instance(make_bus(url, redis__prefix=prefix, **flags), Listener()) for _ in range(count)]
    await asyncio.gather(*(instance.bus.start(instance.listener) for instance in instances))
    for instance in instances:  # a busy machine may take longer than a start waits
        await instance.listener.until(lambda listener=instance.listener: listener.up[-1])
    try:
        yield instances
    finally:
        for instance in instances:
            await instance.bus.stop()


async def kill(instance: Instance) -> None:
    """It is gone without a word."""
    bus: Any = instance.bus
    bus._stopping = True  # and stopping again does nothing
    for service in (bus._beating, bus._publisher, bus.presence._writer):
        await service.stop()
    await end_tasks(bus._subscriber)
    await bus._link.close()


# -- both kinds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["local", pytest.param("redis", marks=pytest.mark.servers)])
async def test_whoever_is_only_here_is_nowhere_else_and_nothing_published_comes_back(
    kind: str, request: pytest.FixtureRequest
) -> None:
    bus = LocalBus() if kind == "local" else make_bus(request.getfixturevalue("single").url)
    me = Instance(bus, Listener())
    await bus.start(me.listener)
    try:
        await me.sign_in("solo", 1)
        assert await me.presence.on_other_instances(["solo", "nobody"]) == {}
        assert await me.presence.watch(["solo"]) == {}
        bus.publish(b"to myself", ["solo"])
        bus.publish_to(b"to myself", [bus.instance_id])
        bus.publish_to_all(b"to all")
        await nothing_for(0.1)
        assert me.listener.payloads == []
        assert me.listener.losses == []
        assert await bus.lock("a", 5) is True
        assert await bus.lock("a", 5) is False
        await bus.unlock("a")
        assert await bus.lock("a", 5) is True
        await bus.unlock("a")
    finally:
        await bus.stop()


# -- routing ---------------------------------------------------------------------------------------------------


async def test_a_payload_reaches_the_instances_that_hold_a_user_and_no_other(redis_server: Server) -> None:
    async with joined(redis_server.url, 3) as (a, b, c):
        await b.sign_in("r.ben", 1)
        a.bus.publish(b"one", ["r.ann", "r.ben"])
        a.bus.publish(b"two", ["r.ben"])
        a.bus.publish(b"nobody", ["r.ann"])
        a.bus.publish_to(b"named", [c.id])
        await b.listener.until(lambda: len(b.listener.payloads) == 2)
        await c.listener.until(lambda: c.listener.payloads)
        assert (b.listener.payloads, c.listener.payloads) == ([b"one", b"two"], [b"named"])
        a.bus.publish_to_all(b"all")
        await asyncio.gather(*(i.listener.until(lambda i=i: b"all" in i.listener.payloads) for i in (b, c)))
        assert a.listener.payloads == []


async def test_a_user_on_two_instances_is_told_on_both_and_after_leaving_on_one(redis_server: Server) -> None:
    async with joined(redis_server.url, 3) as (a, b, c):
        await b.sign_in("two.ben", 1)
        await c.sign_in("two.ben", 2, 5)
        assert await a.presence.on_other_instances(["two.ben"]) == {"two.ben": (1, 2, 5)}
        assert await b.presence.on_other_instances(["two.ben"]) == {"two.ben": (2, 5)}
        a.bus.publish(b"both", ["two.ben"])
        await asyncio.gather(*(i.listener.until(lambda i=i: i.listener.payloads) for i in (b, c)))
        b.sign_out("two.ben")
        await b.listener.until(lambda: len(b.listener.changes) == 2)
        a.bus.publish(b"one", ["two.ben"])
        await c.listener.until(lambda: len(c.listener.payloads) == 2)
        assert b.listener.payloads == [b"both"]


async def test_many_payloads_arrive_in_order_in_few_frames(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("o.ben", 1)
        for i in range(2000):
            a.bus.publish(str(i).encode(), ["o.ben"])
            if i % 100 == 0:
                await loop_turns(5)
        await b.listener.until(lambda: len(b.listener.payloads) == 2000)
        assert [int(payload) for payload in b.listener.payloads] == list(range(2000))
        assert a.bus.frames_out < 100
        assert b.listener.losses == []


async def test_a_payload_that_fills_a_frame_by_itself_arrives(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("big.ben", 1)
        large = [bytes([i]) * 700_000 for i in range(3)]
        for payload in large:
            a.bus.publish(payload, ["big.ben"])
        await b.listener.until(lambda: len(b.listener.payloads) == 3)
        assert b.listener.payloads == large


# -- presence --------------------------------------------------------------------------------------------------


async def test_whoever_registers_before_a_publication_is_found_by_it(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        for i in range(50):
            await b.sign_in(f"n{i}.ben", 1)
            a.bus.publish(str(i).encode(), [f"n{i}.ben"])
        await b.listener.until(lambda: len(b.listener.payloads) == 50)


async def test_numbers_grow_with_every_registration_and_name_the_other_places(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        first = await a.presence.register("num.ann", [1], anew=True)
        second = await b.presence.register("num.ann", [2], anew=True)
        third = await a.presence.register("num.ann", [1], anew=True)
        aged = await a.presence.register("num.ann", [1], anew=True, age_ms=60_000)
        assert first
        assert second
        assert third
        assert aged
        assert aged.number < first.number < second.number < third.number
        assert (first.others, second.others, third.others) == ({}, {a.id: (1,)}, {b.id: (2,)})


async def test_coming_and_going_many_times_leaves_what_was_said_last(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        for _ in range(200):
            b.presence.changed("fast.ben", [1])
            b.presence.changed("fast.ben", [])
        await b.sign_in("fast.ben", 5)
        assert await a.presence.on_other_instances(["fast.ben"]) == {"fast.ben": (5,)}


async def test_changes_are_told_with_those_who_watch_and_only_when_something_changed(redis_server: Server) -> None:
    async with joined(redis_server.url, 3) as (a, b, c):
        assert await a.presence.watch(["w.ben"]) == {}
        a.listener.watching = ["w.ben"]
        await b.sign_in("w.ben", 1)
        await c.sign_in("w.ben", 1)  # the same platform once more: nothing to tell
        c.sign_out("w.ben")
        b.sign_out("w.ben")
        await b.listener.until(lambda: len(b.listener.changes) == 2)
        came, went = b.listener.changes
        assert (came.platforms, came.watchers, went.platforms) == ((1,), (a.id,), ())
        assert went.number > came.number
        assert c.listener.changes == []


async def test_a_watch_that_has_ended_is_removed_and_one_that_began_again_is_not(redis_server: Server) -> None:
    async with joined(redis_server.url, 2) as (a, b):
        names = [f"u.{number}" for number in range(20)]
        await a.presence.watch(names)
        a.presence.unwatch(names)
        a.listener.watching = names[:1]
        await a.presence.watch(names[:1])  # round trips of the removal may be under way
        platforms = itertools.cycle((1, 2))

        async def watched_by() -> list[tuple[str, ...]]:
            before = len(b.listener.changes)
            platform = next(platforms)
            for name in names:
                await b.sign_in(name, platform)
            await b.listener.until(lambda: len(b.listener.changes) == before + len(names))
            return [change.watchers for change in b.listener.changes[before:]]

        async def only_one_is_left() -> bool:
            return await watched_by() == [(a.id,), *[()] * 19]

        await until(only_one_is_left)


async def test_an_entry_that_is_not_renewed_ends_by_itself(single: Redis) -> None:
    async with joined(single.url, 2, bus__presence_ttl_s=5) as (a, b):
        await b.sign_in("ttl.ben", 1)
        a.bus._incoming.is_gone = lambda name: False  # as if nobody had noticed
        a.presence._is_gone = lambda name: False
        await kill(b)
        started = time.monotonic()

        async def is_gone() -> bool:
            return not await a.presence.on_other_instances(["ttl.ben"])

        await until(is_gone)
        assert time.monotonic() - started > 2


async def test_entries_are_renewed_for_as_long_as_their_instance_lives(single: Redis) -> None:
    async with joined(single.url, 2, bus__presence_ttl_s=5) as (a, b):
        for i in range(20):
            await b.sign_in(f"live{i}.ben", 1)
        await nothing_for(7)
        names = [f"live{i}.ben" for i in range(20)]
        assert (await a.presence.on_other_instances(names)).keys() == set(names)
        assert b.listener.again == []


# -- losses ----------------------------------------------------------------------------------------------------


async def test_a_publisher_that_falls_silent_is_a_loss_within_the_time(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("s.ben", 1)
        await kill(a)
        async with loop_time() as taken:
            await b.listener.until(lambda: b.listener.losses)
        assert taken.seconds < DETECT_S * 1.5
        assert b.listener.losses == ["instance_lost"]
        assert b.listener.gone == [a.id]
        await nothing_for(DETECT_S)
        assert len(b.listener.losses) == 1, "once"


async def test_the_users_of_a_dead_instance_are_not_shown_as_online(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("dead.ben", 1)
        await kill(b)
        await a.listener.until(lambda: a.listener.gone)
        assert await a.presence.on_other_instances(["dead.ben"]) == {}


async def test_one_who_says_goodbye_is_no_loss(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("g.ben", 1)
        a.bus.publish(b"last words", ["g.ben"])
        await a.bus.stop()
        await b.listener.until(lambda: b.listener.gone)
        await nothing_for(2 * DETECT_S)
        assert (b.listener.payloads, b.listener.losses) == ([b"last words"], [])


async def test_a_frame_that_could_not_be_published_is_noticed_as_a_hole(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("h.ben", 1)
        link: Any = a.bus._link
        run, tried = link.run, asyncio.Event()

        async def refusing(*_: Any, **__: Any) -> None:
            tried.set()
            raise BusDown

        link.run = refusing
        a.bus.publish(b"never", ["h.ben"])
        await tried.wait()
        link.run = run
        await b.listener.until(lambda: b.listener.losses)
        assert b.listener.losses == ["push_lost"]
        a.bus.publish(b"next", ["h.ben"])
        await b.listener.until(lambda: b.listener.payloads)
        assert b.listener.losses == ["push_lost"]


async def test_more_than_the_queue_holds_is_told_as_a_loss(single: Redis) -> None:
    async with joined(single.url, 2, bus__queue_max=100) as (a, b):
        await b.sign_in("q.ben", 1)
        for i in range(300):
            a.bus.publish(str(i).encode(), ["q.ben"])
        await b.listener.until(lambda: b.listener.losses)
        assert [int(payload) for payload in b.listener.payloads] == list(range(100))


async def test_garbage_on_the_channel_is_a_loss_and_no_more(single: Redis) -> None:
    async with joined(single.url) as (a, b):
        await b.sign_in("x.ben", 1)
        await a.bus._link.run([a.bus._link.publish(a.bus._channel(b.id), b"\xc1garbage")])
        await b.listener.until(lambda: b.listener.losses)
        a.bus.publish(b"fine", ["x.ben"])
        await b.listener.until(lambda: b.listener.payloads)
        assert b.listener.losses == ["bad_frame"]


# -- what happens to Redis -------------------------------------------------------------------------------------


async def test_a_flushed_redis_is_noticed_and_everything_registered_again(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("f.ben", 1)
        redis_server.flush()
        async with loop_time() as taken:
            await b.listener.until(lambda: b.listener.losses or b.listener.again)
        assert taken.seconds < DETECT_S * 1.5
        a.bus.publish(b"found again", ["f.ben"])
        await b.listener.until(lambda: b.listener.payloads)


async def test_one_lost_entry_is_noticed_when_it_is_renewed(single: Redis) -> None:
    async with joined(single.url, 2, bus__presence_ttl_s=5) as (a, b):
        await b.sign_in("lost.ben", 1)
        await b.bus._link.run([_command("DEL", f"{b.bus._prefix}online:{{lost.ben}}")])
        await b.listener.until(lambda: b.listener.again)
        assert b.listener.again == ["lost.ben"]
        assert await a.presence.on_other_instances(["lost.ben"]) == {"lost.ben": (1,)}


def _command(*words: str) -> Any:
    return RedisCommand(words)


async def test_while_redis_hangs_nobody_waits_longer_than_once(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("z.ben", 1)
        redis_server.pause()
        try:
            async with loop_time() as taken:
                assert await a.presence.register("z.new", [1]) is None
            assert taken.seconds < 1
            await a.listener.until(lambda: a.listener.up[-1:] == [False])
            async with loop_time() as taken:
                for i in range(100):
                    a.bus.publish(b"lost", ["z.ben"])
                    assert await a.presence.register(f"z{i}", [1]) is None
                    assert await a.presence.on_other_instances(["z.ben"]) == {}
                    assert await a.bus.take("key", 1) == 0
                    assert await a.bus.lock("key", 1) is True
            assert taken.seconds < 0.2
            await b.listener.until(lambda: b.listener.up[-1:] == [False])
        finally:
            redis_server.resume()
        await a.listener.until(lambda: a.listener.up[-1])
        await b.listener.until(lambda: b.listener.up[-1])
        assert b.listener.losses
        a.bus.publish(b"back", ["z.ben"])
        await b.listener.until(lambda: b"back" in b.listener.payloads)


async def test_a_redis_that_was_killed_and_started_again_is_used_again(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        await b.sign_in("k.ben", 1)
        redis_server.kill()
        for one in (a, b):  # who does not notice has nothing to come back from
            await one.listener.until(lambda one=one: one.listener.up[-1:] == [False])
        b.presence.changed("k.late", [2])
        b.listener.users["k.late"] = [2]
        redis_server.start()
        await a.listener.until(lambda: a.listener.up[-1])
        await b.listener.until(lambda: b.listener.up[-1])
        assert b.listener.losses
        assert await a.presence.on_other_instances(["k.ben", "k.late"]) == {"k.ben": (1,), "k.late": (2,)}
        a.bus.publish(b"back", ["k.ben"])
        await b.listener.until(lambda: b"back" in b.listener.payloads)


async def test_an_instance_starts_without_redis_and_joins_later() -> None:
    with Redis("appendonly no") as server:
        url = server.url
        server.kill()
        bus = make_bus(url)
        me = Instance(bus, Listener())
        await bus.start(me.listener)
        try:
            assert me.listener.up == [False]
            me.listener.users["late.ann"] = [1]
            assert await me.presence.register("late.ann", [1]) is None
            server.start()
            await me.listener.until(lambda: me.listener.up[-1])
            assert me.listener.losses == ["bus_back"]
        finally:
            await bus.stop()


# -- who may use it ------------------------------------------------------------------------------------------


@pytest.mark.servers
async def test_a_redis_with_a_user_a_password_and_tls_is_joined() -> None:
    folder = make_certificate()
    with Redis(
        "appendonly no",
        f"tls-port {(port := processes.free_port())}",
        f"tls-cert-file {folder}/cert.pem",
        f"tls-key-file {folder}/key.pem",
        f"tls-ca-cert-file {folder}/cert.pem",
        "tls-auth-clients no",
        "user nexo on >p@ss/word ~* &* +@all",
    ):
        account = "nexo:p%40ss%2Fword"
        url = f"rediss://{account}@localhost:{port}/0?ssl_ca_certs={folder}/cert.pem"
        async with joined(url) as (a, b):
            await b.sign_in("tls.ben", 1)
            a.bus.publish(b"secret", ["tls.ben"])
            await b.listener.until(lambda: b.listener.payloads)
        stranger = make_bus(f"rediss://nexo:wrong@localhost:{port}/0?ssl_ca_certs={folder}/cert.pem")
        await stranger.start(Listener())
        assert not stranger._is_up
        await stranger.stop()


def make_certificate() -> Path:
    """A folder with a key and a certificate for localhost, readable for a server that runs as somebody else."""
    folder = processes.new_dir("tls")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    name = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    files = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"))
    subprocess.run(["openssl", "req", "-x509", *curve, *name, *files], check=True, capture_output=True)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    return folder


# -- what instances share --------------------------------------------------------------------------------------


async def test_a_lock_is_one_instances_until_it_lets_go_or_time_is_up(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        assert await a.bus.lock("l", 0.3) is True
        assert await b.bus.lock("l", 0.3) is False
        await b.bus.unlock("l")
        assert await b.bus.lock("l", 0.3) is False, "it was not b's to let go of"
        await a.bus.unlock("l")
        assert await b.bus.lock("l", 0.3) is True
        await until(lambda: a.bus.lock("l", 0.3))
        await b.bus.unlock("l")
        assert await b.bus.lock("l", 0.3) is False


async def test_a_limit_counts_over_all_instances(redis_server: Server) -> None:
    async with joined(redis_server.url) as (a, b):
        waits = [await instance.bus.take("tries", 4) for instance in (a, b, a, b)]
        assert waits == [0, 0, 0, 0]
        for instance in (a, b):
            assert 10_000 < await instance.bus.take("tries", 4) <= 15_000


@pytest.mark.servers
async def test_a_connection_that_hangs_without_being_reset_is_replaced(single: Redis) -> None:
    """As with a machine that disappears: there is no sign that what is subscribed there will never be heard."""
    async with proxy_to(single.url) as proxy, joined(proxy.url) as (one, two):
        await two.sign_in("ann", 5)
        proxy.kill_quietly()
        await one.listener.until(lambda: not one.listener.up[-1])
        await one.listener.until(lambda: one.listener.up[-1])
        await two.listener.until(lambda: two.listener.up[-1])
        one.bus.publish(b"again", ["ann"])
        await two.listener.until(lambda: b"again" in two.listener.payloads)


@pytest.mark.servers
async def test_an_instance_that_hears_nothing_is_still_heard(single: Redis) -> None:
    """It takes no other one for gone: its own deafness is no sign of their silence."""
    async with joined(single.url, 1) as (two,), proxy_to(single.url) as proxy:
        one = Instance(make_bus(proxy.url, redis__prefix=two.bus._prefix), Listener())  # type: ignore[union-attr]
        await one.bus.start(one.listener)
        try:
            await two.sign_in("ann", 5)
            await one.listener.until(lambda: one.bus._peers)  # type: ignore[union-attr]
            one.bus._incoming._silence_s = DETECT_S / 2  # type: ignore[union-attr]  # sooner than it is known to be deaf
            proxy.stall(Only.LISTENING)
            await one.listener.until(lambda: not one.listener.up[-1])
            one.bus.publish(b"heard", ["ann"])
            await two.listener.until(lambda: b"heard" in two.listener.payloads)
            assert not two.bus.misses(one.id)
            assert (one.listener.gone, two.listener.gone) == ([], [])
            proxy.flow()
            await one.listener.until(lambda: one.listener.up[-1])
        finally:
            proxy.flow()
            await one.bus.stop()


@pytest.mark.servers
async def test_an_instance_knows_which_others_commit(single: Redis) -> None:
    async with joined(single.url, 3) as (one, two, worker):
        one.bus.committed_at = lambda: time.monotonic() - 2.0
        two.bus.committed_at = time.monotonic
        await one.listener.until(lambda: len(one.bus.last_commits()) == 1)
        await two.listener.until(lambda: len(two.bus.last_commits()) == 1)
        assert time.monotonic() - one.bus.last_commits()[0] < 1.9
        assert time.monotonic() - two.bus.last_commits()[0] >= 2.0
        await worker.listener.until(lambda: len(worker.bus.last_commits()) == 2)
