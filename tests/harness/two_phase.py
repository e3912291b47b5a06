"""Servers and workers with two-phase acknowledgement for everything, and the Redis that they need."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

import pytest

from harness import processes, sql
from harness.cluster import Cluster, cluster
from harness.server_process import NEXO, START_TIMEOUT_S, ServerProcess, environment
from harness.servers import Redis

ON: dict[str, Any] = {"two_phase__enabled": True, "two_phase__scope": "all"}
QUICK: dict[str, Any] = {"two_phase__owner_ttl_s": 2, "bus__breaker_ms": 200}
LONG = os.environ.get("NEXO_LONG_TESTS") == "1"


def modes(usual: bool) -> list[Any]:
    """For a fixture or test: both modes when there is time, else this one. True: delivered before it is saved."""
    both = [pytest.param(False, id="saved_first"), pytest.param(True, id="delivered_first")]
    return both if LONG else [both[usual]]


def engines(usual: str) -> list[str]:
    """All servers of SQL when there is time, else this one: tests share them out among themselves."""
    return ["mariadb", "postgresql"] if LONG else [usual]


@contextlib.asynccontextmanager
async def held_saves(store_url: str) -> AsyncIterator[None]:
    """Nothing that was accepted is saved meanwhile: the rows that each save has to check are locked. Everything else
    can be read and written."""
    async with sql.connected(store_url) as run:
        await run("BEGIN")
        await run("SELECT shard FROM stream_owners FOR UPDATE")
        yield
        await run("ROLLBACK")


@contextlib.contextmanager
def two_phase(
    *, deliver_before_saved: bool = False, redis: Redis | None = None, **settings: Any
) -> Iterator[ServerProcess]:
    with contextlib.ExitStack() as stack:
        if redis is None:
            redis = stack.enter_context(Redis("appendonly no"))
        yield stack.enter_context(
            ServerProcess(
                redis__url=redis.url,
                two_phase__deliver_before_saved=deliver_before_saved,
                **{**ON, **settings},
            )
        )


@contextlib.contextmanager
def two_phase_cluster(
    engine_name: str, instances: int = 2, *, redis: Redis | None = None, **settings: Any
) -> Iterator[Cluster]:
    with cluster(engine_name, instances, redis, **{**ON, **QUICK, **settings}) as running:
        yield running


class WorkerProcess:
    """`nexo worker`, with the settings of a server."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.directory = processes.new_dir("worker")
        self.log = self.directory / "log"
        self.port = settings.get("worker__port") or processes.free_port()
        self._settings = {"worker__port": self.port, **settings}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        seen = len(self.output)
        command = [str(NEXO), "worker", "--data", str(self.directory / "data")]
        env = environment(self._settings)
        self._process = processes.spawn(command, cwd=self.directory, log=self.log, env=env)
        deadline = time.monotonic() + START_TIMEOUT_S
        while "Nexo saves" not in self.output[seen:]:
            assert self._process.poll() is None and time.monotonic() < deadline, self.output  # noqa: PT018
            time.sleep(0.01)

    @property
    def address(self) -> str:
        """Of its health and metrics."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def stop(self) -> int:
        assert self._process is not None
        self.signal(signal.SIGTERM)
        return self._process.wait(30)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def metric(server: ServerProcess, name: str, **labels: str) -> float:
    """What a server says about itself now; 0 when it says nothing."""
    with urllib.request.urlopen(f"{server.address}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    found = 0.0
    for line in text.splitlines():
        if line.startswith((f"{name}{{", f"{name} ")) and all(item in line for item in wanted):
            found += float(line.rpartition(" ")[2])
    return found


def streams(server: ServerProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`nexo streams …` with the settings of a server."""
    return subprocess.run(
        [NEXO, "streams", *arguments],
        cwd=server.directory,
        env=environment({name: value for name, value in server.settings.items() if name.startswith(("redis", "two"))}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def backlog(server: ServerProcess) -> dict[str, int]:
    """What waits, over all shards."""
    done = streams(server, "list", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    return {name: sum(row[name] for row in rows) for name in ("accepted", "to_save", "dead")}
