"""Instances of one cluster, each with its own way to Redis and to the database, which can be cut or frozen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from harness import processes
from harness.cluster import SECRET
from harness.migrated import migrated_database
from harness.network import Network, Only, Road
from harness.server_process import ServerProcess
from harness.servers import Redis
from harness.waiting import until

DETECT_S = 1
LEARN_S = DETECT_S + 2.0  # within this time every connected user knows of a saved message
READY_S = 15.0
REDIS_FAULTS = ("redis cut", "redis frozen", "deaf", "mute")
FAULTS = (*REDIS_FAULTS, "database cut", "database frozen", "both cut", "both frozen")


class Node:
    """One instance and its roads."""

    def __init__(self, server: ServerProcess, redis: Road, database: Road) -> None:
        self.server = server
        self.redis = redis
        self.database = database

    def suffer(self, fault: str) -> None:
        """From here on this instance cannot reach something. Deaf: it can publish, and hears nothing; mute: the
        other way round."""
        match fault.split():
            case ["deaf"]:
                self.redis.freeze(Only.LISTENING)
            case ["mute"]:
                self.redis.freeze(Only.COMMANDS)
            case [what, how]:
                roads = {"redis": [self.redis], "database": [self.database], "both": [self.redis, self.database]}
                for road in roads[what]:
                    if how == "cut":
                        road.cut()
                    else:
                        road.freeze()

    def recover(self) -> None:
        self.redis.heal()
        self.database.heal()

    async def readiness(self) -> tuple[int, str]:
        """Status and reason of /readyz."""
        async with httpx.AsyncClient(timeout=10, trust_env=False) as http:
            answer = await http.get(f"{self.server.address}/readyz")
        return answer.status_code, "" if answer.status_code == 200 else str(answer.json().get("detail", ""))

    async def until_ready(self, timeout_s: float = READY_S) -> None:
        found = (0, "")

        async def is_ready() -> bool:
            nonlocal found
            found = await self.readiness()
            return found[0] == 200

        await until(is_ready, lambda: f"ready again: {found}", patience_s=timeout_s)

    async def until_not_ready(self, timeout_s: float) -> str:
        """The reason, once /readyz answers 503."""

        async def trouble() -> str:
            status, reason = await self.readiness()
            assert status in (200, 503)
            return reason

        return await until(trouble, "not ready", patience_s=timeout_s)


class Partition:
    def __init__(self, nodes: list[Node], settings: dict[str, Any], redis: Redis) -> None:
        self.nodes = nodes
        self.settings = settings  # of an instance that can reach everything
        self.redis = redis

    @property
    def sites(self) -> list[ServerProcess]:
        return [node.server for node in self.nodes]

    @property
    def output(self) -> str:
        return "\n".join(node.server.output for node in self.nodes)

    async def recover(self) -> None:
        for node in self.nodes:
            node.recover()
        for node in self.nodes:
            await node.until_ready()


@contextlib.contextmanager
def partition(engine_name: str, instances: int = 2, **settings: Any) -> Iterator[Partition]:
    """A cluster whose parts can be kept from each other, on an empty database of this engine."""
    with contextlib.ExitStack() as stack:
        store_url = stack.enter_context(migrated_database(engine_name, processes.new_dir("partition")))
        redis = stack.enter_context(Redis("appendonly no"))
        network = stack.enter_context(Network())
        shared: dict[str, Any] = {
            "store__url": store_url,
            "store__pool_size": 4,
            "redis__url": redis.url,
            "auth__secret": SECRET,
            "bus__detect_s": DETECT_S,
            "bus__breaker_ms": 200,
            **settings,
        }
        nodes = []
        for _ in range(instances):
            to_redis = stack.enter_context(network.road_to(redis.url))
            to_database = stack.enter_context(network.road_to(store_url))
            own = {"redis__url": to_redis.url, "store__url": to_database.url}
            nodes.append(Node(ServerProcess(**(shared | own)), to_redis, to_database))
        with ThreadPoolExecutor(instances) as pool:
            list(pool.map(ServerProcess.start, [node.server for node in nodes]))
        for node in nodes:
            stack.callback(node.server.kill)
        yield Partition(nodes, shared, redis)
