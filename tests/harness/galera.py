"""Three private MariaDB Galera nodes, configured by `deploy/galera/node.cnf`. For the long mode: 20 s and 400 MB."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Self

from harness import processes, sql
from harness.mariadb import MariaDb
from harness.server import ServerUnavailable, find_program
from harness.waiting import until_blocking

CONFIG = Path(__file__).parents[2] / "deploy" / "galera" / "node.cnf"
PROVIDER = Path("/usr/lib/galera/libgalera_smm.so")


class GaleraNode(MariaDb):
    name = "galera"

    def __init__(self, number: int, group_ports: list[int]) -> None:
        super().__init__()
        self._number = number
        self._group_ports = group_ports
        self._own_ports = (processes.free_port(), processes.free_port())  # of both kinds of state transfer
        self.is_first = False

    def _prepare(self) -> None:
        if not PROVIDER.exists():
            raise ServerUnavailable("galera-4 is not installed (Debian: apt-get install galera-4 mariadb-server rsync)")
        find_program("rsync", "rsync")
        find_program("wsrep_sst_rsync", "mariadb-server")
        super()._prepare()
        if self._number:  # accounts come from the first node
            (self.directory / "grants.sql").write_text("SELECT 1;\n")

    def _command(self) -> list[str | Path]:
        own = f"127.0.0.1:{self._group_ports[self._number]}"
        ist, sst = self._own_ports
        values = {
            "wsrep_cluster_address": "gcomm://" + ",".join(f"127.0.0.1:{port}" for port in self._group_ports),
            "wsrep_node_name": f"node{self._number}",
            "wsrep_node_address": own,
            "wsrep_provider": str(PROVIDER),
        }
        text = CONFIG.read_text()
        for name, value in values.items():
            text = re.sub(rf"(?m)^{name}=.*$", f"{name}={value}", text)
        ours = f"gmcast.listen_addr=tcp://{own};ist.recv_addr=127.0.0.1:{ist};"
        text = text.replace('wsrep_provider_options="', f'wsrep_provider_options="{ours}')
        text += f"wsrep_sst_receive_address=127.0.0.1:{sst}\n"
        config = self.directory / "node.cnf"
        config.write_text(text)
        processes.give_to(config, self._account)
        program, _, *options = super()._command()
        first = ["--wsrep-new-cluster"] if self.is_first else []
        return [program, f"--defaults-file={config}", *options, *first]

    def may_be_first(self) -> None:
        """After a full stop: this node is the one that the others join."""
        self.is_first = True
        state = self.directory / "data" / "grastate.dat"
        if state.exists():
            state.write_text(state.read_text().replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"))


class Galera:
    def __init__(self) -> None:
        ports = [processes.free_port() for _ in range(3)]
        self.nodes = [GaleraNode(number, ports) for number in range(3)]
        for node in self.nodes:  # one account for all
            node._password = self.nodes[0]._password

    def __enter__(self) -> Self:
        self.nodes[0].is_first = True
        for node in self.nodes:
            node.start()
        self.nodes[0].is_first = False
        self.wait_for(3)
        return self

    def __exit__(self, *_: object) -> None:
        for node in reversed(self.nodes):
            node.kill()
            shutil.rmtree(node.directory, ignore_errors=True)

    def wait_for(self, size: int) -> None:
        """Until every node that runs is one of so many and takes writes."""
        until_blocking(lambda: all(_state(node) == (str(size), "ON") for node in self.nodes if node.running),
                       f"{size} nodes", patience_s=90)  # fmt: skip

    def create_database(self) -> str:
        """The URL of an empty database, with all hosts, the first node first."""
        url = self.nodes[0].create_database()
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return url.replace(f"127.0.0.1:{self.nodes[0].port}", hosts)


def _state(node: GaleraNode) -> tuple[str, str]:
    try:
        found: dict[str, str] = dict(
            sql.execute(node.url("mysql"), "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size','wsrep_ready')")
        )
    except Exception:  # it is not ready to answer
        return "", ""
    return found["wsrep_cluster_size"], found["wsrep_ready"]
