"""Cleans up after a test run that could not do so itself, for example after kill -9.

Runs as a process of its own: `python keeper.py DIRECTORY` waits until its standard input closes, which the
kernel does when the test run is gone, then ends every process that works in DIRECTORY and removes it.
A working directory is set before a program starts and is inherited, so no process can slip through
between its start and some registration, and none is mistaken for another after its number was reused.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path


def processes_in(directory: Path) -> list[int]:
    """The processes whose working directory is `directory` or below it."""
    top = str(directory)
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            cwd = os.readlink(f"/proc/{entry}/cwd")
        except OSError:  # ended meanwhile, a zombie, or somebody else's
            continue
        if cwd == top or cwd.startswith(f"{top}/"):
            found.append(int(entry))
    return found


def signal_all_in(directory: Path, signum: signal.Signals) -> None:
    for pid in processes_in(directory):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def kill_all_in(directory: Path, timeout_s: float = 10.0) -> None:
    """SIGKILL, repeated, because a process may start another one while the list is read."""
    deadline = time.monotonic() + timeout_s
    while processes_in(directory):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes in {directory} do not end: {processes_in(directory)}")
        signal_all_in(directory, signal.SIGKILL)
        time.sleep(0.01)


def end_all_in(directory: Path, grace_s: float = 5.0) -> None:
    """First the quick exit, on which PostgreSQL still gives its shared memory back, then SIGKILL."""
    signal_all_in(directory, signal.SIGQUIT)
    signal_all_in(directory, signal.SIGCONT)  # a paused process would not notice the first signal
    deadline = time.monotonic() + grace_s
    while processes_in(directory) and time.monotonic() < deadline:
        time.sleep(0.02)
    kill_all_in(directory)


def main(directory: Path) -> None:
    # Whatever is meant for the test run (Ctrl-C, a closed terminal) must not end its keeper first.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    while sys.stdin.buffer.read(1):
        pass
    end_all_in(directory)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
