"""Redis that fails over by itself: three servers with three Sentinels, and a Cluster of three masters with replicas."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import redis

from harness import processes
from harness.redis_server import Redis
from harness.server import Server, find_program
from harness.waiting import until_blocking

SERVICE = "nexo-ha"
SLOTS = 16_384
DOWN_AFTER_MS = 1000
CLUSTER_TIMEOUT_MS = 1000
_REPLICATED = ("appendonly no", "repl-diskless-sync-delay 0")


def ask(port: int, *words: str | int) -> Any:
    with redis.Redis(port=port, socket_timeout=5) as client:
        return client.execute_command(*words)


def _info(port: int, section: str) -> dict[str, Any]:
    with redis.Redis(port=port, socket_timeout=5) as client:
        found: Any = client.info(section)
        return dict(found)


class _Sentinel(Server):
    name = "sentinel"
    accounts = ("redis",)

    def __init__(self, master_port: int) -> None:
        super().__init__()
        self._master_port = master_port

    def _prepare(self) -> None:
        find_program("redis-server", "redis-server")

    def _command(self) -> list[str | Path]:
        config = self.directory / "sentinel.conf"
        if not config.exists():  # a sentinel writes into it what it learns
            lines = (
                f"port {self.port}",
                "bind 127.0.0.1",
                f"dir {self.directory}",
                f"sentinel monitor {SERVICE} 127.0.0.1 {self._master_port} 2",
                f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
                f"sentinel failover-timeout {SERVICE} 10000",
            )
            config.write_text("\n".join(lines) + "\n")
            processes.give_to(config, self._account)
        return [find_program("redis-server", "redis-server"), config, "--sentinel"]

    def _read_version(self) -> str:
        return str(_info(self.port, "server")["redis_version"])


class SentinelGroup:
    """One master, two replicas, and three Sentinels that watch them."""

    def __init__(self) -> None:
        self.redis: list[Redis] = []
        self.sentinels: list[_Sentinel] = []

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'127.0.0.1:{one.port}' for one in self.sentinels)}/{SERVICE}"

    def __enter__(self) -> Self:
        first = Redis(*_REPLICATED)
        first.start()
        self.redis = [first] + [Redis(*_REPLICATED, f"replicaof 127.0.0.1 {first.port}") for _ in range(2)]
        self.sentinels = [_Sentinel(first.port) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(Server.start, self.redis[1:]))
            until_blocking(self._is_replicated, "the replicas follow")  # sentinels ask for them every ten seconds only
            list(pool.map(Server.start, self.sentinels))
        until_blocking(self._is_whole, "the sentinels know each other and both replicas")
        return self

    def __exit__(self, *_: object) -> None:
        for server in (*self.sentinels, *self.redis):
            server.remove()

    def _is_whole(self) -> bool:
        for one in self.sentinels:
            words = ask(one.port, "SENTINEL", "MASTER", SERVICE)
            state = words if isinstance(words, dict) else dict(zip(words[::2], words[1::2], strict=True))
            found = {_text(key): _text(value) for key, value in state.items()}
            if found["num-slaves"] != "2" or found["num-other-sentinels"] != "2":
                return False
        return True

    def _is_replicated(self) -> bool:
        links = [_info(one.port, "replication") for one in self.redis]
        return any(link["role"] == "master" and link["connected_slaves"] == 2 for link in links) and all(
            link.get("master_link_status", "up") == "up" for link in links
        )

    def wait_until_whole(self) -> None:
        """One master, which both others follow."""
        until_blocking(self._is_replicated, "the replicas follow", patience_s=60)

    def master(self) -> Redis:
        """The server that the sentinels name."""
        for one in self.sentinels:
            with contextlib.suppress(redis.RedisError):
                _, port = ask(one.port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
                return next(server for server in self.redis if server.port == int(port))
        raise AssertionError("no sentinel answers")


class _Node(Redis):
    def __init__(self) -> None:
        self.cluster_port = processes.free_port()
        super().__init__(
            *_REPLICATED,
            "cluster-enabled yes",
            f"cluster-port {self.cluster_port}",
            f"cluster-node-timeout {CLUSTER_TIMEOUT_MS}",
            "cluster-config-file nodes.conf",
            "cluster-replica-validity-factor 0",
        )


class ReplicatedCluster:
    """A Redis Cluster of three masters, each with one replica."""

    def __init__(self) -> None:
        self.nodes = [_Node() for _ in range(6)]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def __enter__(self) -> Self:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(Server.start, self.nodes))
        share = SLOTS // 3 + 1
        first = self.nodes[0]
        for i, node in enumerate(self.nodes):
            if i < 3:
                ask(node.port, "CLUSTER", "ADDSLOTSRANGE", i * share, min((i + 1) * share, SLOTS) - 1)
            ask(first.port, "CLUSTER", "MEET", "127.0.0.1", node.port, node.cluster_port)
        until_blocking(lambda: all(self._knows(node, 6) for node in self.nodes), "the nodes find together")
        for i in range(3):
            ask(self.nodes[3 + i].port, "CLUSTER", "REPLICATE", _text(ask(self.nodes[i].port, "CLUSTER", "MYID")))
        until_blocking(self._is_whole, "every replica follows its master")
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.remove()

    def _knows(self, node: Redis, count: int) -> bool:
        lines = _text_of(ask(node.port, "CLUSTER", "INFO"))
        return f"cluster_known_nodes:{count}" in lines and "cluster_state:ok" in lines

    def _is_whole(self) -> bool:
        links = [_info(node.port, "replication") for node in self.nodes]
        roles = [link["role"] for link in links]
        return roles.count("slave") == 3 and all(link.get("master_link_status", "up") == "up" for link in links)

    def master_of(self, key: str) -> Redis:
        """The master that has the slot of a key."""
        asked = next(node for node in self.nodes if node.running)
        number = int(ask(asked.port, "CLUSTER", "KEYSLOT", key)) // (SLOTS // 3 + 1)
        two = (self.nodes[number], self.nodes[number + 3])
        return next(node for node in two if self.is_master(node))

    @staticmethod
    def is_master(node: Redis) -> bool:
        return bool(_info(node.port, "replication")["role"] == "master")

    def wait_until_whole(self) -> None:
        """Every master has its replica."""
        until_blocking(self._is_whole, "every replica follows its master", patience_s=60)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _text_of(value: Any) -> list[str]:
    return _text(value).split() if not isinstance(value, dict) else [f"{k}:{v}" for k, v in value.items()]
