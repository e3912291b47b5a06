"""A private Redis Cluster (three masters), and a private Redis behind a Sentinel."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import redis

from harness import processes
from harness.redis_server import Redis
from harness.server import Server, find_program
from harness.waiting import until_blocking

SLOTS = 16_384
SERVICE = "nexo-test"


class _Node(Redis):
    def __init__(self) -> None:
        super().__init__(
            "appendonly no",
            "cluster-enabled yes",
            f"cluster-port {processes.free_port()}",
            "cluster-node-timeout 2000",
            "cluster-config-file nodes.conf",
        )


class RedisCluster:
    """Three masters that share the slots, without replicas."""

    def __init__(self) -> None:
        self.nodes = [_Node() for _ in range(3)]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def __enter__(self) -> Self:
        for node in self.nodes:
            node.start()
        share = SLOTS // len(self.nodes) + 1
        for i, node in enumerate(self.nodes):
            self._run(node, "CLUSTER", "ADDSLOTSRANGE", i * share, min((i + 1) * share, SLOTS) - 1)
            port = next(option.split()[1] for option in node._options if option.startswith("cluster-port"))
            for other in self.nodes:
                self._run(other, "CLUSTER", "MEET", "127.0.0.1", node.port, port)
        self._wait()
        return self

    def _wait(self) -> None:
        until_blocking(lambda: all(self._state(node) == "ok" for node in self.nodes), "the nodes find together")

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.remove()

    def pause(self) -> None:
        for node in self.nodes:
            node.pause()

    def resume(self) -> None:
        for node in self.nodes:
            node.resume()

    def flush(self) -> None:
        for node in self.nodes:
            self._run(node, "FLUSHALL")

    def blocked(self) -> int:
        return sum(node.blocked() for node in self.nodes)

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        self._wait()

    def _state(self, node: Redis) -> str:
        """ok once every node knows of all slots."""
        text = self._run(node, "CLUSTER", "INFO")
        lines = (text if isinstance(text, str) else text.decode()).split()
        wanted = {"cluster_state:ok", "cluster_known_nodes:3", f"cluster_slots_ok:{SLOTS}"}
        return "ok" if wanted <= set(lines) else "not yet"

    @staticmethod
    def _run(node: Redis, *words: str | int) -> Any:
        with redis.Redis(port=node.port, socket_timeout=5) as client:
            return client.execute_command(*words)


class _Sentinel(Server):
    name = "sentinel"
    accounts = ("redis",)

    def __init__(self, master: Redis) -> None:
        super().__init__()
        self._master = master

    def _prepare(self) -> None:
        find_program("redis-server", "redis-server")

    def _command(self) -> list[str | Path]:
        lines = (
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.directory}",
            f"sentinel monitor {SERVICE} 127.0.0.1 {self._master.port} 1",
        )
        config = self.directory / "sentinel.conf"
        config.write_text("\n".join(lines) + "\n")
        processes.give_to(config, self._account)
        return [find_program("redis-server", "redis-server"), config, "--sentinel"]

    def _read_version(self) -> str:
        with redis.Redis(port=self.port, socket_timeout=5) as client:
            info: Any = client.info("server")
            return str(info["redis_version"])


class RedisBehindSentinel:
    """One Redis, known by name to one Sentinel."""

    def __init__(self) -> None:
        self.redis = Redis("appendonly no")
        self._sentinel = _Sentinel(self.redis)

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self._sentinel.port}/{SERVICE}"

    def __enter__(self) -> Self:
        self.redis.start()
        self._sentinel.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._sentinel.remove()
        self.redis.remove()

    def pause(self) -> None:
        self.redis.pause()

    def resume(self) -> None:
        self.redis.resume()

    def flush(self) -> None:
        self.redis.flush()

    def kill(self) -> None:
        self.redis.kill()

    def start(self) -> None:
        self.redis.start()
