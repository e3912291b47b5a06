"""PostgreSQL under Patroni with one etcd, by `deploy/patroni/patroni.yml`. For the long mode: 40 s, 300 MB."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Self

from harness import keeper, processes, sql
from harness.postgres import find_postgres
from harness.server import Server, ServerUnavailable, find_program
from harness.waiting import until_blocking

CONFIG = Path(__file__).parents[2] / "deploy" / "patroni" / "patroni.yml"
PASSWORD = "change-me"
# Not Debian's 3.0: under it a primary that froze takes its lead back from the one that replaced it. The Python is that
# of the system, which other accounts may run and which has the libraries.
PROGRAM = Path(sys.prefix) / "patroni"
PYTHON = Path("/usr/bin/python3")


class _Etcd(Server):
    name = "etcd"
    accounts = ("nobody",)

    def __init__(self) -> None:
        super().__init__()
        self._peer_port = processes.free_port()

    def _prepare(self) -> None:
        find_program("etcd", "etcd-server")

    def _command(self) -> list[str | Path]:
        own, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self._peer_port}"
        return [
            find_program("etcd", "etcd-server"),
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={own}",
            f"--advertise-client-urls={own}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        ]

    def _read_version(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/version", timeout=5) as answer:
            return str(answer.read())


class PatroniNode(Server):
    """One server: Patroni and its PostgreSQL. `port` is that of the REST API."""

    name = "patroni"
    accounts = ("postgres",)

    def __init__(self, etcd_port: int) -> None:
        super().__init__()
        self._etcd_port = etcd_port
        self.database_port = processes.free_port()

    def _prepare(self) -> None:
        if not (PROGRAM / "patroni" / "__main__.py").exists():
            raise ServerUnavailable("Patroni is not installed: NEXO_LONG_TESTS=1 scripts/test-services.sh")

    def _command(self) -> list[str | Path]:
        text = CONFIG.read_text()
        for pattern, value in (
            (r"etcd1:2379,etcd2:2379,etcd3:2379", f"127.0.0.1:{self._etcd_port}"),
            (r"(0\.0\.0\.0|pg1):8008", f"127.0.0.1:{self.port}"),
            (r"(0\.0\.0\.0|pg1):5432", f"127.0.0.1:{self.database_port}"),
            (r"name: pg1", f"name: pg{self.port}"),
            (r"data_dir: .*", f"data_dir: {self.directory / 'data'}"),
            (r"bin_dir: .*", f"bin_dir: {find_postgres('postgres').parent}"),
            (r"(?m)^postgresql:$", f"postgresql:\n  parameters:\n    unix_socket_directories: {self.directory}"),
            (r"(?m)^  authentication:$", f"  pgpass: {self.directory / 'pgpass'}\n  authentication:"),
        ):
            text = re.sub(pattern, value, text)
        config = self.directory / "patroni.yml"
        config.write_text(text)
        processes.give_to(config, self._account)
        return ["env", f"PYTHONPATH={PROGRAM}", PYTHON, "-m", "patroni", config]

    def kill_database(self) -> None:
        """Only PostgreSQL: Patroni stays."""
        keeper.kill_all_in(self.directory / "data")

    def _read_version(self) -> str:
        return str(self.role())

    def role(self) -> str:
        """`primary` or `replica`, as it says itself; empty while neither."""
        for role in ("primary", "replica"):
            address = f"http://127.0.0.1:{self.port}/{role}"
            with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=2):
                return role
        return ""


class Patroni:
    def __init__(self, servers: int = 2) -> None:
        self._count = servers
        self.etcd = _Etcd()
        self.nodes: list[PatroniNode] = []

    def __enter__(self) -> Self:
        self.etcd.start()
        for _ in range(self._count):
            node = PatroniNode(self.etcd.port)
            self.nodes.append(node)
            node.start()
            until_blocking(node.role, "it has a role", patience_s=120)
        self.wait_until_synchronous()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (*self.nodes, self.etcd):
            server.kill()
            shutil.rmtree(server.directory, ignore_errors=True)

    def primary(self) -> PatroniNode:
        return until_blocking(self._primaries, "a primary", patience_s=90)[0]

    def _primaries(self) -> list[PatroniNode]:
        return [node for node in self.nodes if node.running and node.role() == "primary"]

    def _is_synchronous(self) -> bool:
        try:
            found = sql.execute(self._url(self.primary(), "postgres"), "SELECT sync_state FROM pg_stat_replication")
        except Exception:  # it changes its role
            return False
        return ("sync",) in found

    def wait_until_synchronous(self) -> None:
        until_blocking(self._is_synchronous, "a synchronous standby", patience_s=120)

    @staticmethod
    def _url(node: PatroniNode, database: str) -> str:
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{node.database_port}/{database}"

    def create_database(self) -> str:
        """The URL of an empty database, with all hosts."""
        sql.execute(self._url(self.primary(), "postgres"), "CREATE DATABASE nexo TEMPLATE template0 ENCODING 'UTF8'")
        hosts = ",".join(f"127.0.0.1:{node.database_port}" for node in self.nodes)
        return f"postgresql://postgres:{PASSWORD}@{hosts}/nexo?target_session_attrs=read-write"
