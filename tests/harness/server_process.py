"""`nexo serve` as a process of its own: started, killed, paused and started again on the same data."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from harness import processes

NEXO = Path(sys.executable).parent / "nexo"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 40.0

# What costs time and is not what most tests are about: slow password hashes and limits.
TEST_SETTINGS: dict[str, object] = {
    "auth__argon2_memory_kib": 8,
    "auth__argon2_time_cost": 1,
    "limits__sends_per_s": 0,
    "limits__frames_per_s": 0,
    "limits__logins_per_min": 0,
    "limits__login_failures_per_address_per_min": 0,
    "limits__refreshes_per_min": 0,
    "limits__registers_per_min": 0,
    "limits__group_creates_per_min": 0,
    "limits__presence_per_min": 0,
    "limits__membership_per_min": 0,
    "limits__requests_per_s": 0,
}


class DidNotStart(Exception):
    """The server ended instead of starting; the text is what it said."""

    def __init__(self, exit_code: int, output: str) -> None:
        super().__init__(f"exit code {exit_code}\n{output}")
        self.exit_code = exit_code
        self.output = output


def environment(settings: dict[str, object]) -> dict[str, str]:
    """`limits__sends_per_s=0` as NEXO_LIMITS__SENDS_PER_S=0; nothing of Nexo's comes from outside."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NEXO_")}
    return plain | {f"NEXO_{name.upper()}": str(value) for name, value in settings.items()}


class ServerProcess:
    """One server on a data folder of its own, which survives `kill` and `start`. The port stays the same.

    Settings are named as in the environment, in lower case. With `bare=True` only those given count. A
    `wrapper` is a command that runs the one behind it; `options` are further ones of `nexo serve`; `program` is another
    installation's `nexo`.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        log_level: str | None = "info",
        bare: bool = False,
        wrapper: Sequence[str] = (),
        options: Sequence[str] = (),
        program: Path = NEXO,
        **settings: object,
    ) -> None:
        self.directory = processes.new_dir("nexo")
        self.data = data or self.directory / "data"
        self.log = self.directory / "log"
        self.port = 0
        self.settings = settings if bare else TEST_SETTINGS | settings
        self._log_level = log_level
        self._wrapper = list(wrapper)
        self._options = list(options)
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._read_from = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    # -- where it is -------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_address(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def database(self) -> Path:
        return self.data / "nexo.db"

    @property
    def secret(self) -> str:
        """What it signs tokens with."""
        return str(self.settings.get("auth__secret") or (self.data / "secret").read_text().strip())

    def select(self, statement: str) -> list[tuple[Any, ...]]:
        """What a statement finds in its database."""
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as database:
            return database.execute(statement).fetchall()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def output(self) -> str:
        """Everything it has printed and logged, since it was made."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def rss_bytes(self) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the process has ended")

    # -- its life ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when it takes connections; raises DidNotStart when it ends instead."""
        self._read_from = len(self.output)
        if not self.port:
            self.port = processes.free_port()
        options = ["--port", str(self.port), "--data", str(self.data), *self._options]
        if self._log_level is not None:
            options += ["--log-level", self._log_level]
        command = [*self._wrapper, str(self._program), "serve", *options]
        self._process = processes.spawn(command, cwd=self.directory, log=self.log, env=environment(self.settings))
        self.wait_for_output("Nexo runs at ")

    def wait_for_output(self, text: str) -> None:
        """Until it has printed or logged this since its last start."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while text not in self.output[self._read_from :]:
            code = self._process.poll()
            if code is not None:
                raise DidNotStart(code, self.output[self._read_from :])
            if time.monotonic() > deadline:
                self.kill()
                raise TimeoutError(f"the server never said {text!r}:\n{self.output}")
            time.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Its exit code, once it has ended."""
        assert self._process is not None
        return self._process.wait(timeout_s)

    def stop(self) -> int:
        """An orderly end; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """kill -9: nothing is finished, flushed or said."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The process stands still: what is sent to it waits in the kernel."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def run(
        self, *arguments: str | Path, text: str | None = None, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Another `nexo` command on the same data folder; `text` is what it reads."""
        return subprocess.run(
            [NEXO, *arguments, "--data", self.data],
            cwd=self.directory,
            env=environment({}),
            capture_output=True,
            input=text,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def check(self) -> None:
        """`nexo check` finds nothing wrong with what is stored."""
        done = self.run("check")
        assert done.returncode == 0, f"nexo check: {done.stdout}\n{done.stderr}"
