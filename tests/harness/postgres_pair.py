"""A PostgreSQL primary with a synchronous standby, which is promoted by hand."""

from __future__ import annotations

import shutil
from typing import Self

from harness.postgres import Postgres, find_postgres
from harness.server import USER
from harness.waiting import until_blocking


class Standby(Postgres):
    """A copy that follows a running primary."""

    def __init__(self, primary: Postgres) -> None:
        super().__init__()
        self._primary = primary
        self._password = primary._password

    def _prepare(self) -> None:
        place = f"host=127.0.0.1 port={self._primary.port} user={USER} password={self._password}"
        target = self.directory / "data"
        self._run_tool(
            [
                find_postgres("pg_basebackup"),
                f"--dbname={place} application_name=standby",
                f"--pgdata={target}",
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--no-sync",
            ]
        )

    def start_at(self, port: int) -> None:
        """Start for the first time, at a given port."""
        self._prepare()
        self.port = port
        self._launch()


class PostgresPair:
    """Nothing is committed before the standby has it."""

    def __init__(self) -> None:
        self.primary = Postgres()
        self.standby = Standby(self.primary)

    def __enter__(self) -> Self:
        self.primary.start()
        self.standby.start()
        self.wait_for_standby(True)
        until_blocking(lambda: self._sync_state() == "sync", "the standby is synchronous")
        return self

    def __exit__(self, *_: object) -> None:
        self.standby.remove()
        self.primary.remove()

    def _sync_state(self) -> str:
        found = self.primary.execute("SELECT sync_state FROM pg_stat_replication")
        return str(found[0][0]) if found else ""

    def wait_for_standby(self, is_on: bool) -> None:
        names = "*" if is_on else ""
        self.primary.execute(f"ALTER SYSTEM SET synchronous_standby_names='{names}'")
        self.primary.execute("SELECT pg_reload_conf()")

    def create_database(self) -> str:
        """The URL of an empty database, with both hosts."""
        return self.with_both_hosts(self.primary.create_database())

    def with_both_hosts(self, url: str) -> str:
        own = f"127.0.0.1:{self.primary.port}"
        return url.replace(own, f"{own},127.0.0.1:{self.standby.port}") + "?target_session_attrs=read-write"

    def promote(self) -> None:
        """The standby becomes the primary. The other one must be gone, or silent."""
        self.standby.execute("SELECT pg_promote()")

    def rebuild(self) -> None:
        """The old primary is gone; in its place, at its port, a new standby follows the new primary."""
        old, self.primary = self.primary, self.standby
        old.kill()
        shutil.rmtree(old.directory, ignore_errors=True)
        self.standby = Standby(self.primary)
        self.standby.start_at(old.port)
        self.wait_for_standby(True)
        until_blocking(lambda: self._sync_state() == "sync", "the standby is synchronous")
