"""Several `nexo serve` on one database and one Redis, talked to as if they were one server.

Every time somebody asks for the address, it is the next instance's: people who connect one after the other are
spread over all of them, and so is each call over HTTP.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest

from harness import processes, sql
from harness.migrated import migrated_database
from harness.server_process import NEXO, ServerProcess, environment
from harness.servers import Redis

SECRET = "a secret that all instances of a test share"


class Cluster:
    def __init__(self, store_url: str, redis_url: str, instances: int = 3, **settings: Any) -> None:
        self.store_url = store_url
        self.settings: dict[str, Any] = {
            "store__url": store_url,
            "store__pool_size": 4,
            "redis__url": redis_url,
            "auth__secret": SECRET,
            **settings,
        }
        self.instances = [ServerProcess(**self.settings) for _ in range(instances)]
        self._turns = itertools.cycle(self.instances)

    def __enter__(self) -> Self:
        with ThreadPoolExecutor(len(self.instances)) as pool:
            list(pool.map(ServerProcess.start, self.instances))
        return self

    def __exit__(self, *_: object) -> None:
        for instance in self.instances:
            instance.kill()

    def __getitem__(self, number: int) -> ServerProcess:
        return self.instances[number]

    # -- as one server -----------------------------------------------------------------------------------

    def _next(self) -> ServerProcess:
        return next(self._turns)

    @property
    def address(self) -> str:
        return self._next().address

    @property
    def ws_address(self) -> str:
        return self._next().ws_address

    @property
    def port(self) -> int:
        return self._next().port

    @property
    def secret(self) -> str:
        return SECRET

    def select(self, statement: str) -> list[tuple[Any, ...]]:
        """What a statement finds in the database."""
        return sql.execute(self.store_url, statement)

    @property
    def output(self) -> str:
        return "\n".join(instance.output for instance in self.instances)

    def kill(self) -> None:
        for instance in self.instances:
            instance.kill()

    def run(
        self, *arguments: str, text: str | None = None, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Another `nexo` command on the same database."""
        return subprocess.run(
            [NEXO, *arguments],
            cwd=self.instances[0].directory,
            env=environment({name: self.settings[name] for name in ("store__url", "auth__secret")}),
            capture_output=True,
            input=text,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def check(self) -> None:
        done = self.run("check")
        assert done.returncode == 0, f"nexo check: {done.stdout}\n{done.stderr}"


@contextlib.contextmanager
def cluster(engine_name: str, instances: int = 3, redis: Redis | None = None, **settings: Any) -> Iterator[Cluster]:
    """A cluster on an empty database of this engine, with a Redis of its own unless one is given."""
    folder = processes.new_dir("cluster")
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(migrated_database(engine_name, folder))
        if redis is None:
            redis = stack.enter_context(Redis("appendonly no"))
        yield stack.enter_context(Cluster(url, redis.url, instances, **settings))


def cpu_s(server: ServerProcess) -> float:
    """Processor time of an instance so far."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="session")
def on_three(three: Cluster) -> Cluster:
    return three


def suite(module: ModuleType, *fixtures: str) -> dict[str, Any]:
    """The tests of a module that use one of these fixtures (`server` when none is named), and whatever else it
    defines: a module that takes all of it into its own names runs them once more, against three instances. Other
    fixtures than `server` it defines anew."""
    wanted = set(fixtures) | {"server"}
    taken = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("__")
        and (not name.startswith("test_") or set(inspect.signature(value).parameters) & wanted)
    }
    return taken | {"server": on_three}
