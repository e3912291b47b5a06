"""A private server to measure: `nexo serve` on a temporary data folder, without limits, on any free port."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from nexo.errors import StartupError

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 40.0
NEXO = (sys.executable, "-c", "from nexo.cli import main; main()")  # also where no script is installed

# No limits, which a load test would measure instead of the server; and passwords at the lowest price, because
# thousands of users are registered before anything is measured.
SETTINGS = {
    "limits.sends_per_s": "0",
    "limits.frames_per_s": "0",
    "limits.acks_per_s": "0",
    "limits.inflight_sends": "0",
    "limits.connections_per_user": "0",
    "limits.connections_per_ip": "0",
    "limits.connections_total": "0",
    "limits.logins_per_min": "0",
    "limits.login_failures_per_address_per_min": "0",
    "limits.refreshes_per_min": "0",
    "limits.registers_per_min": "0",
    "limits.group_creates_per_min": "0",
    "limits.membership_per_min": "0",
    "limits.requests_per_s": "0",
    "auth.argon2_memory_kib": "8",
    "auth.argon2_time_cost": "1",
}


class OwnServer:
    def __init__(self, url: str, pid: int, data: Path, environment: dict[str, str]) -> None:
        self.url = url
        self.pid = pid
        self.data = data
        self._environment = environment

    def check_store(self) -> str:
        """Returns what `nexo check` finds wrong with what is stored; empty when nothing is. The server may be
        running."""
        done = _run(["check", "--data", str(self.data)], self._environment)
        return "" if done.returncode == 0 else (done.stdout or done.stderr).strip()


def _run(arguments: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [*NEXO, *arguments]
    return subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False, timeout=900)


@contextmanager
def own_server(
    store_url: str = "",
    settings: Mapping[str, str] | None = None,
    cores: set[int] | None = None,
    program: Sequence[str] = NEXO,
) -> Iterator[OwnServer]:
    """Runs a server that ends with the run, together with everything it stored (in a server database the messages
    stay). `program` is run in place of `nexo`, and must start it."""
    wanted = SETTINGS | dict(settings or {})
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NEXO_")}
    environment = plain | {f"NEXO_{key.upper().replace('.', '__')}": value for key, value in wanted.items()}
    with tempfile.TemporaryDirectory(prefix="nexo-bench-") as folder:
        if store_url:
            environment |= {"NEXO_STORE__URL": store_url, "NEXO_AUTH__SECRET": secrets.token_urlsafe(32)}
            migrated = _run(["migrate"], environment)
            if migrated.returncode:
                raise StartupError(f"the database cannot be used: {(migrated.stderr or migrated.stdout).strip()}")
        data = Path(folder) / "data"
        command = [*program, "serve", "--port", "0", "--data", str(data)]
        with (Path(folder) / "log").open("w+") as log:
            process = subprocess.Popen(
                [*command, "--log-level", "warning"],
                env=environment,
                cwd=folder,  # or a nexo.toml here would have its say
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C ends the measurement, not the server
                preexec_fn=None if cores is None else lambda: os.sched_setaffinity(0, cores),
            )
            try:
                yield OwnServer(_wait_for_address(process, log.name), process.pid, data, environment)
            finally:
                _stop(process)


def _wait_for_address(process: subprocess.Popen[str], log: str) -> str:
    assert process.stdout is not None
    timer = threading.Timer(START_TIMEOUT_S, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            if " at http" in line:
                return line.split(" at ")[1].split()[0]
    finally:
        timer.cancel()
    raise StartupError(f"the server did not start:\n{Path(log).read_text()[-2000:]}")


def _stop(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
