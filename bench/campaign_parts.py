"""The parts of `bench/campaign.py` that break: databases, Redis, instances and the network between them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from campaign_disks import Disk, SlowDisk, disk_at, has_namespace
from harness import processes
from harness.galera import Galera
from harness.mariadb import MariaDb
from harness.migrated import migrate_database
from harness.network import Network, Road
from harness.patroni import Patroni
from harness.postgres import Postgres
from harness.postgres_pair import PostgresPair
from harness.redis_failover import ReplicatedCluster, SentinelGroup
from harness.redis_server import Redis
from harness.server import SqlServer
from harness.server_process import NEXO, ServerProcess, environment
from harness.waiting import until_blocking

SECRET = "a secret that all instances of a campaign share"
DATABASES = ("postgresql", "mariadb", "pair", "galera", "patroni")
REDIS = ("single", "sentinel", "cluster")
DISK_MIB = 700  # of one database server: its first files and log take 100 to 300
FILES_MIB = 64


class Fault(NamedTuple):
    """What is done, and undone after some seconds."""

    name: str
    begin: Callable[[], Any]
    end: Callable[[], Any]
    at_least_s: float = 0.0


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

    def __init__(self, store_url: str, sites: list[Site], servers: Any, redis: Any) -> None:
        self.store_url = store_url
        self.sites = sites
        self.servers = servers  # of a cluster of databases
        self.redis = redis
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


def _server_faults(server: SqlServer, disk: Disk | None) -> Callable[[random.Random], Fault]:
    slow = SlowDisk(server.directory)
    kinds = [
        Fault("database killed", server.kill, server.start),
        Fault("database frozen", server.pause, server.resume),
        Fault("database restarted", server.restart, nothing),
        Fault("database's disk slow", slow.begin, slow.end),
    ]
    if disk is not None:

        def has_room() -> None:
            disk.clear()
            server.start()  # a server may have ended, as PostgreSQL does when its log finds no room

        kinds.append(Fault("database's disk full", disk.fill, has_room, at_least_s=3.0))
    return lambda rng: rng.choice(kinds)


def _or_disk_of_files(choose: Callable[[random.Random], Fault], disk: Disk) -> Callable[[random.Random], Fault]:
    full = Fault("disk of files full", disk.fill, disk.clear)
    return lambda rng: full if rng.random() < 0.15 else choose(rng)


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


def _patroni_faults(servers: Patroni) -> Callable[[random.Random], Fault]:
    def choose(rng: random.Random) -> Fault:
        primary = servers.primary()
        standby = rng.choice([node for node in servers.nodes if node is not primary])
        for_long_s = rng.choice((0.0, 26.0))  # longer than the lease, or not

        def back(node: Any, again: Callable[[], Any]) -> Callable[[], None]:
            def do() -> None:
                again()
                servers.wait_until_synchronous()
                until_blocking(node.role, "it has a role again", patience_s=90)

            return do

        return rng.choice(
            [
                Fault("primary's machine killed", primary.kill, back(primary, primary.start), for_long_s),
                Fault("primary's machine frozen", primary.pause, back(primary, primary.resume), for_long_s),
                Fault("primary's PostgreSQL killed", primary.kill_database, back(primary, nothing)),
                Fault("standby's machine killed", standby.kill, back(standby, standby.start)),
                Fault("standby's machine frozen", standby.pause, back(standby, standby.resume)),
            ]
        )

    return choose


CLUSTERS: dict[str, tuple[Any, Any]] = {
    "pair": (PostgresPair, _pair_faults),
    "galera": (Galera, _galera_faults),
    "patroni": (lambda: Patroni(3), _patroni_faults),
}


def _single(stack: contextlib.ExitStack, database: str) -> tuple[str, Callable[[random.Random], Fault]]:
    """One server, with a disk of its own where that can be had."""
    server: SqlServer = Postgres() if database == "postgresql" else MariaDb()
    disk = None
    if has_namespace():
        disk = stack.enter_context(disk_at(server.directory / "data", DISK_MIB, server._account))
    server.start()
    stack.callback(server.kill)
    url = server.create_database()
    return url, _server_faults(server, disk)


@contextlib.contextmanager
def world(database: str, redis_kind: str, instances: int, **settings: Any) -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        redis: Any = {"single": lambda: Redis("appendonly no"), "sentinel": SentinelGroup, "cluster": ReplicatedCluster}
        redis = stack.enter_context(redis[redis_kind]())
        faults: list[Callable[[random.Random], Fault]] = [_redis_faults(redis)]
        servers: Any = None
        if database in CLUSTERS:
            cluster, its_faults = CLUSTERS[database]
            servers = stack.enter_context(cluster())
            store_url, database_faults = servers.create_database(), its_faults(servers)
        else:
            store_url, database_faults = _single(stack, database)
        faults.append(database_faults)
        migrate_database(store_url)
        network = stack.enter_context(Network())
        files = processes.new_dir("files")
        if has_namespace():
            faults[-1] = _or_disk_of_files(faults[-1], stack.enter_context(disk_at(files, FILES_MIB)))
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
        made = World(store_url, sites, servers, redis)
        made.faults += faults
        yield made
