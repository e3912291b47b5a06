"""A private Redis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import redis

from harness import processes
from harness.server import Server, find_program


class Redis(Server):
    """Keeps what it acknowledged (append-only file, synced always), so that `kill` and `start` lose nothing.

    `options` are further lines of its configuration, such as `"maxmemory 10mb"`.
    """

    name = "redis"
    accounts = ("redis",)

    def __init__(self, *options: str) -> None:
        super().__init__()
        self._options = options

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def flush(self) -> None:
        """Everything that it holds is gone, at once."""
        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            client.flushall()

    def blocked(self) -> int:
        """How many connections wait for something to come in, as with XREADGROUP BLOCK."""
        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            info: Any = client.info("clients")
            return int(info["blocked_clients"])

    def _prepare(self) -> None:
        find_program("redis-server", "redis-server")

    def _command(self) -> list[str | Path]:
        lines = (
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.directory}",
            "appendonly yes",
            "appendfsync always",
            'save ""',
            "maxmemory-policy noeviction",
            *self._options,
        )
        config = self.directory / "redis.conf"
        config.write_text("\n".join(lines) + "\n")
        processes.give_to(config, self._account)
        return [find_program("redis-server", "redis-server"), config]

    def _read_version(self) -> str:
        with redis.Redis.from_url(self.url, socket_timeout=5) as client:
            info: Any = client.info("server")
            return str(info["redis_version"])
