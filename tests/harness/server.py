"""What the private servers have in common: start, readiness, stop, crash, hang, and data that survives."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from harness import keeper, processes, sql

USER = "nexo"

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 30.0


class ServerUnavailable(Exception):
    """A server cannot be started on this machine; the text says why."""


class Server(ABC):
    """One private server process and its data, which survive `kill` and `restart` like a real one's."""

    name: ClassVar[str]
    accounts: ClassVar[tuple[str, ...]]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self) -> None:
        self.directory = processes.new_dir(self.name)
        self.log = self.directory / "log"
        self.port = 0
        self.version = ""
        self._account = processes.unprivileged_account(*self.accounts)
        self._process: subprocess.Popen[bytes] | None = None
        processes.give_to(self.directory, self._account)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns when the server answers. The port is chosen at the first start and kept from then on."""
        if self.running:
            return
        if self.port:
            self._launch()
            return
        self._prepare()
        for attempt in range(3):
            self.port = processes.free_port()
            try:
                self._launch()
                return
            except ServerUnavailable:
                # Most likely somebody else took the port in between.
                if attempt == 2:
                    self.port = 0
                    raise

    def stop(self) -> None:
        """An orderly shutdown."""
        if self._process is None:
            return
        self.resume()
        self._process.send_signal(self.stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """SIGKILL for all its processes at once: what a crash of the machine leaves."""
        if self._process is None:
            return
        self._process.kill()
        keeper.kill_all_in(self.directory)
        self._process.wait()
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """The server hangs: connections stay open and nothing answers."""
        keeper.signal_all_in(self.directory, signal.SIGSTOP)

    def resume(self) -> None:
        keeper.signal_all_in(self.directory, signal.SIGCONT)

    def remove(self) -> None:
        """Stop the server for good and delete its data."""
        self.stop()
        shutil.rmtree(self.directory)

    @abstractmethod
    def _prepare(self) -> None:
        """Make the data directory."""

    @abstractmethod
    def _command(self) -> list[str | Path]: ...

    @abstractmethod
    def _read_version(self) -> str:
        """Ask the server; raises when it does not answer yet."""

    def _launch(self) -> None:
        self._process = processes.spawn(self._command(), cwd=self.directory, log=self.log, account=self._account)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                # The drivers complain in many ways about a closed port; a bare connection complains in one.
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                self.version = self._read_version()
                return
            except Exception as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.kill()
                    reason = f"{self.name} did not start: {error}\n{self._log_extract()}"
                    raise ServerUnavailable(reason) from error
            time.sleep(0.02)

    def _run_tool(self, command: list[str | Path]) -> None:
        # MariaDB deletes at its start what looks like another MariaDB's temporary tables in a shared folder.
        env = {**processes.ENVIRONMENT, "TMPDIR": str(self.directory)}
        tool = processes.spawn(command, cwd=self.directory, log=self.log, account=self._account, env=env)
        if tool.wait(_START_TIMEOUT_S) != 0:
            raise ServerUnavailable(f"{command[0]} failed:\n{self._log_extract()}")

    def _log_extract(self) -> str:
        """The last lines, and before them the ones that complain."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        complaints = [line for line in lines[:-10] if "ERROR" in line or "FATAL" in line]
        return "\n".join(complaints[-10:] + lines[-10:])


class SqlServer(Server):
    """A database server; every test gets an empty database of its own."""

    scheme: ClassVar[str]
    admin_database: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._password = secrets.token_hex(8)
        self._databases = 0
        self._lock = threading.Lock()

    def url(self, database: str) -> str:
        return f"{self.scheme}://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """The URL of a fresh, empty database."""
        with self._lock:
            self._databases += 1
            database = f"nexo_{self._databases}"
        self.execute(self._create_statement(database))
        return self.url(database)

    @abstractmethod
    def drop_database(self, url: str) -> None:
        """Also when connections to it are still open, or hold locks."""

    @abstractmethod
    def has_connections(self, url: str) -> bool:
        """Whether any connection to this database is open."""

    def execute(self, statement: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own, as administrator; callable from anywhere."""
        return sql.execute(self.url(database or self.admin_database), statement)

    @abstractmethod
    def _create_statement(self, database: str) -> str: ...


@functools.cache
def find_program(program: str, package: str) -> Path:
    # Debian keeps servers in sbin, which is not on everybody's PATH.
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"])
    found = shutil.which(program, path=places)
    if found is None:
        raise ServerUnavailable(f"{program} is not installed (Debian: apt-get install {package})")
    return Path(found)
