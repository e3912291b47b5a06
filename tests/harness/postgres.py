"""A private PostgreSQL."""

from __future__ import annotations

import functools
import signal
from pathlib import Path

from harness import processes
from harness.server import USER, SqlServer, find_program

_EMPTY_POSTGRES_DATABASE = """
DO $$
DECLARE
    other_schema name;
BEGIN
    PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    FOR other_schema IN
        SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', other_schema);
    END LOOP;
    CREATE SCHEMA public AUTHORIZATION pg_database_owner;
    GRANT USAGE ON SCHEMA public TO PUBLIC;
    EXECUTE format('ALTER DATABASE %I RESET ALL', current_database());
END
$$
"""


class Postgres(SqlServer):
    name = "postgresql"
    scheme = "postgresql"
    admin_database = "postgres"
    accounts = ("postgres",)
    stop_signal = signal.SIGINT  # SIGTERM would wait until the last client has gone

    def __init__(self) -> None:
        super().__init__()
        self._emptied: list[str] = []

    def create_database(self) -> str:
        with self._lock:
            if self._emptied:
                return self.url(self._emptied.pop())
        return super().create_database()

    def has_connections(self, url: str) -> bool:
        database = url.rpartition("/")[2]
        return bool(self.execute(f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}'"))

    def drop_database(self, url: str) -> None:
        """Empties it for the next test instead: create and drop take 200 ms here, emptying about 20."""
        database = url.rpartition("/")[2]
        try:
            if self.has_connections(url):
                raise RuntimeError("a process that a test left behind would go on in it")
            self.execute(_EMPTY_POSTGRES_DATABASE, database)
        except Exception:  # whatever a test did to it, it gets another one
            self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
            return
        with self._lock:
            self._emptied.append(database)

    def _prepare(self) -> None:
        password_file = self.directory / "password"
        password_file.write_text(self._password)
        processes.give_to(password_file, self._account)
        self._run_tool(
            [
                find_postgres("initdb"),
                f"--pgdata={self.directory / 'data'}",
                "--no-sync",
                "--no-locale",
                "--encoding=UTF8",
                f"--username={USER}",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
            ]
        )

    def _command(self) -> list[str | Path]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "300",
            "fsync": "on",
            "synchronous_commit": "on",
            "shared_buffers": "64MB",
            # Shared memory as files in the data directory: after SIGKILL it goes away with them.
            "dynamic_shared_memory_type": "mmap",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [find_postgres("postgres"), "-D", self.directory / "data", "-p", str(self.port), *options]

    def _read_version(self) -> str:
        return str(self.execute("SHOW server_version")[0][0]).partition(" ")[0]

    def _create_statement(self, database: str) -> str:
        return f"CREATE DATABASE {database} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'UTF8'"


@functools.cache
def find_postgres(program: str) -> Path:
    """Debian keeps one folder per major version, outside PATH; the newest counts."""
    found = Path("/usr/lib/postgresql").glob(f"*/bin/{program}")
    newest = max(found, key=lambda path: int(path.parts[4]), default=None)
    return newest or find_program(program, "postgresql")
