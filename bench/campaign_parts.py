"""The parts of `bench/campaign.py` that break: databases, Redis, instances and the network between them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from harness import processes
from harness.galera import Galera
from harness.migrated import migrated_database
from harness.network import Network, Road
from harness.postgres_pair import PostgresPair
from harness.redis_failover import ReplicatedCluster, SentinelGroup
from harness.server_process import NEXO, ServerProcess, environment
from harness.servers import Redis, mariadb, postgres

SECRET = "a secret that all instances of a campaign share"
DATABASES = ("postgresql", "mariadb", "pair", "galera")
REDIS = ("single", "sentinel", "cluster")


class Fault(NamedTuple):
    """What is done, and undone after some seconds."""

    name: str
    begin: Callable[[], Any]
    end: Callable[[], Any]


def nothing() -> None:
    pass


class Site:
    """One instance, with its own way to a single Redis and a single database."""

    def __init__(self, server: ServerProcess, roads: list[Road]) -> None:
        self.server = server
        self.roads = roads

    def faults(self) -> Iterator[Fault]:
        server = self.server
        yield Fault("instance killed", server.kill, server.start)
        yield Fault("instance frozen", lambda: server.signal(signal.SIGSTOP), lambda: server.signal(signal.SIGCONT))
        yield Fault("instance stopped in order", server.stop, server.start)
        yield Fault("instance's clock off", lambda: self._with_clock("+40s"), lambda: self._with_clock(""))
        for road, to in zip(self.roads, ("Redis", "the database"), strict=False):
            yield Fault(f"instance cut off from {to}", road.cut, road.heal)
            yield Fault(f"instance's way to {to} silent", road.freeze, road.heal)

    def _with_clock(self, step: str) -> None:
        """Start again with a clock that differs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.server.pid, signal.SIGKILL)  # the wrapper stays between
        self.server.kill()
        self.server._wrapper = ["faketime", "-f", step] if step else []
        self.server.start()


class World:
    """Instances on the chosen database and Redis."""

    def __init__(self, store_url: str, sites: list[Site]) -> None:
        self.store_url = store_url
        self.sites = sites
        self.faults: list[Callable[[random.Random], Fault]] = []
        for site in sites:
            kinds = list(site.faults())
            self.faults.append(lambda rng, kinds=kinds: rng.choice(kinds))

    def check(self) -> str:
        """What `nexo check` complains about."""
        done = subprocess.run(
            [NEXO, "check"],
            env=environment({"store__url": self.store_url}),
            capture_output=True,
            text=True,
            check=False,
        )
        return "" if done.returncode == 0 else done.stdout + done.stderr


def _nexo(command: str, store_url: str) -> str:
    """Run a command on the database. Returns what it says if it fails."""
    settings = environment({"store__url": store_url})
    done = subprocess.run([NEXO, command], env=settings, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _servers_of_redis(redis: Any) -> list[Redis]:
    if isinstance(redis, SentinelGroup):
        return redis.redis
    return list(redis.nodes) if isinstance(redis, ReplicatedCluster) else [redis]


def _redis_faults(redis: Any) -> Callable[[random.Random], Fault]:
    def choose(rng: random.Random) -> Fault:
        server = rng.choice(_servers_of_redis(redis))
        kinds = [
            Fault("Redis killed, back empty", server.kill, server.start),
            Fault("Redis frozen", server.pause, server.resume),
        ]
        if isinstance(redis, Redis):
            kinds.append(Fault("Redis forgets everything", server.flush, nothing))
        return rng.choice(kinds)

    return choose


def _server_faults(server: Any, what: str) -> Callable[[random.Random], Fault]:
    def choose(rng: random.Random) -> Fault:
        return rng.choice(
            [
                Fault(f"{what} killed", server.kill, server.start),
                Fault(f"{what} frozen", server.pause, server.resume),
                Fault(f"{what} restarted", server.restart, nothing),
            ]
        )

    return choose


def _pair_faults(pair: PostgresPair) -> Callable[[random.Random], Fault]:
    def choose(rng: random.Random) -> Fault:
        def frozen() -> None:
            pair.primary.pause()
            pair.promote()

        def killed() -> None:
            pair.primary.kill()
            pair.promote()

        return rng.choice(
            [
                Fault("primary frozen, standby promoted", frozen, pair.rebuild),
                Fault("primary killed, standby promoted", killed, pair.rebuild),
                Fault("standby frozen", pair.standby.pause, pair.standby.resume),
                Fault("standby killed", pair.standby.kill, pair.standby.start),
            ]
        )

    return choose


def _galera_faults(galera: Galera) -> Callable[[random.Random], Fault]:
    def choose(rng: random.Random) -> Fault:
        node = rng.choice(galera.nodes)

        def back() -> None:
            node.start()
            galera.wait_for(3)

        def resumed() -> None:
            node.resume()
            galera.wait_for(3)

        return rng.choice(
            [
                Fault("Galera node killed", node.kill, back),
                Fault("Galera node frozen", node.pause, resumed),
                Fault("Galera node stopped in order", node.stop, back),
            ]
        )

    return choose


@contextlib.contextmanager
def world(database: str, redis_kind: str, instances: int, **settings: Any) -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        redis: Any = {"single": lambda: Redis("appendonly no"), "sentinel": SentinelGroup, "cluster": ReplicatedCluster}
        redis = stack.enter_context(redis[redis_kind]())
        faults: list[Callable[[random.Random], Fault]] = [_redis_faults(redis)]
        if database in ("pair", "galera"):
            servers: Any = stack.enter_context(PostgresPair() if database == "pair" else Galera())
            store_url = servers.create_database()
            done = subprocess.run(
                [NEXO, "migrate"],
                env=environment({"store__url": store_url}),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise SystemExit(done.stderr)
            faults.append(_pair_faults(servers) if database == "pair" else _galera_faults(servers))
        else:
            store_url = stack.enter_context(migrated_database(database, processes.new_dir("campaign")))
            faults.append(_server_faults(postgres() if database == "postgresql" else mariadb(), "database"))
        network = stack.enter_context(Network())
        files = processes.new_dir("files")
        shared = {
            "store__url": store_url,
            "store__pool_size": 4,
            "redis__url": redis.url,
            "auth__secret": SECRET,
            "bus__detect_s": 1,
            "recall__window_s": 86400,
            **settings,
        }
        sites = []
        for _ in range(instances):
            own: dict[str, Any] = {"files__url": f"file://{files}"}
            roads: list[Road] = []
            if redis_kind == "single":
                roads.append(stack.enter_context(network.road_to(redis.url)))
                own["redis__url"] = roads[0].url
                if database in ("postgresql", "mariadb"):
                    roads.append(stack.enter_context(network.road_to(store_url)))
                    own["store__url"] = roads[1].url
            server = ServerProcess(**(shared | own))
            server.start()
            stack.callback(server.kill)
            sites.append(Site(server, roads))
        made = World(store_url, sites)
        made.faults += faults
        yield made
