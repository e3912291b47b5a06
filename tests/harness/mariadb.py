"""A private MariaDB."""

from __future__ import annotations

from pathlib import Path

from harness import processes
from harness.server import USER, SqlServer, find_program


class MariaDb(SqlServer):
    name = "mariadb"
    scheme = "mysql"
    admin_database = "mysql"
    accounts = ("mysql",)

    def has_connections(self, url: str) -> bool:
        database = url.rpartition("/")[2]
        return bool(self.execute(f"SELECT id FROM information_schema.processlist WHERE db = '{database}'"))

    def drop_database(self, url: str) -> None:
        database = url.rpartition("/")[2]
        # DROP waits for every transaction that has touched a table, so those end first.
        open_connections = f"SELECT id FROM information_schema.processlist WHERE db = '{database}'"
        for (connection_id,) in self.execute(open_connections):
            # The sentence is an `IF EXISTS` that KILL itself lacks: a connection may close by itself.
            self.execute(
                f"BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END; KILL CONNECTION {connection_id}; END"
            )
        self.execute(f"DROP DATABASE IF EXISTS {database}")

    def _prepare(self) -> None:
        install = find_program("mariadb-install-db", "mariadb-server-core")
        self._run_tool(
            [
                install,
                "--no-defaults",
                f"--datadir={self.directory / 'data'}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
            ]
        )
        grants = self.directory / "grants.sql"
        grants.write_text(
            f"CREATE USER IF NOT EXISTS '{USER}'@'127.0.0.1' IDENTIFIED BY '{self._password}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        processes.give_to(grants, self._account)

    def _command(self) -> list[str | Path]:
        return [
            find_program("mariadbd", "mariadb-server-core"),
            "--no-defaults",
            f"--datadir={self.directory / 'data'}",
            f"--socket={self.directory / 'socket'}",
            f"--pid-file={self.directory / 'pid'}",
            f"--init-file={self.directory / 'grants.sql'}",
            f"--tmpdir={self.directory}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--character-set-server=utf8mb4",
            "--max-connections=500",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-file-size=64M",
            "--key-buffer-size=1M",
            "--aria-pagecache-buffer-size=8M",
            "--performance-schema=OFF",
        ]

    def _read_version(self) -> str:
        return str(self.execute("SELECT VERSION()")[0][0]).partition("-")[0]

    def _create_statement(self, database: str) -> str:
        # No collation: the server's default ignores case, and the schema must not depend on it.
        return f"CREATE DATABASE {database} CHARACTER SET utf8mb4"
