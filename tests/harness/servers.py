"""The servers that a test run shares, one of each kind, started on first use.

A test that kills or pauses a server makes one of its own instead: `with Redis() as server: ...`.
"""

from __future__ import annotations

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harness.mariadb import MariaDb
from harness.postgres import Postgres
from harness.redis_server import Redis
from harness.server import Server, ServerUnavailable, SqlServer

__all__ = [
    "KINDS",
    "MariaDb",
    "Postgres",
    "Redis",
    "Server",
    "ServerUnavailable",
    "SqlServer",
    "mariadb",
    "postgres",
    "redis",
    "shared",
    "start_all",
]

KINDS: tuple[type[Server], ...] = (MariaDb, Postgres, Redis)
_Kind = TypeVar("_Kind", bound=Server)


class _Shared:
    """The servers of this test run, one of each kind; a failure is remembered instead of tried again."""

    def __init__(self) -> None:
        self._outcomes: dict[type[Server], Server | ServerUnavailable] = {}
        self._locks: dict[type[Server], threading.Lock] = {kind: threading.Lock() for kind in KINDS}

    def get(self, kind: type[_Kind]) -> _Kind:
        with self._locks[kind]:
            if kind not in self._outcomes:
                self._outcomes[kind] = self._start(kind)
            outcome = self._outcomes[kind]
        if isinstance(outcome, ServerUnavailable):
            raise ServerUnavailable(str(outcome))
        assert isinstance(outcome, kind)
        return outcome

    def seen(self, kind: type[Server]) -> Server | ServerUnavailable | None:
        """What became of this kind in this run, without starting anything."""
        return self._outcomes.get(kind)

    @staticmethod
    def _start(kind: type[_Kind]) -> _Kind | ServerUnavailable:
        try:
            server = kind()
            server.start()
        except ServerUnavailable as error:
            return error
        except (OSError, subprocess.SubprocessError) as error:
            return ServerUnavailable(f"{kind.name} cannot be started: {error}")
        return server


shared = _Shared()


def mariadb() -> MariaDb:
    return shared.get(MariaDb)


def postgres() -> Postgres:
    return shared.get(Postgres)


def redis() -> Redis:
    return shared.get(Redis)


def start_all(*kinds: type[Server]) -> None:
    """Start these (by default all three) in parallel; raises the first ServerUnavailable, after all tried."""
    wanted = kinds or KINDS
    with ThreadPoolExecutor(len(wanted)) as pool:
        starts = [pool.submit(shared.get, kind) for kind in wanted]
    for start in starts:
        start.result()
