"""Disks of `bench/campaign.py` that fill up or are slow.

A disk is a file system in memory, in a mount namespace that goes away with the campaign: it is filled to the last byte
and cleared again. It is slow when every fsync of the server's processes takes longer, which strace does to them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness import keeper, processes
from harness.server import find_program

OWN_MOUNTS = "NEXO_CAMPAIGN_MOUNTS"  # set in the namespace
FSYNC_MS = 300


def enter_namespace() -> None:
    """Start this program again in a mount namespace of its own; without the right to one there are no full disks."""
    if os.environ.get(OWN_MOUNTS):
        return
    command = ["unshare", "--mount", "--propagation", "private"]
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            os.environ[OWN_MOUNTS] = "yes"
            os.execvp(command[0], [*command, sys.executable, *sys.argv])
    print("no mount namespace here: disks do not fill up in this campaign", flush=True)


def has_namespace() -> bool:
    return bool(os.environ.get(OWN_MOUNTS))


class Disk:
    def __init__(self, place: Path) -> None:
        self._ballast = place / "ballast"

    def fill(self) -> None:
        """To the last byte."""
        with self._ballast.open("wb", buffering=0) as file:
            size = 1 << 20
            while size:
                try:
                    file.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2

    def clear(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def disk_at(place: Path, size_mib: int, account: str | None = None) -> Iterator[Disk]:
    """A small disk at this place, for the processes of an account."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=700", "nexo", place], check=True)
    processes.give_to(place, account)
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "--lazy", place], check=False)


class SlowDisk:
    """What the processes in a directory write takes its time to reach the disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tracer: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        pids = [f"--attach={pid}" for pid in keeper.processes_in(self._directory)]
        calls = "fsync,fdatasync,msync,sync_file_range"
        delay = f"--inject={calls}:delay_enter={FSYNC_MS * 1000}"
        command = [find_program("strace", "strace"), "--follow-forks", "--quiet=all", f"--trace={calls}", delay, *pids]
        self._tracer = processes.spawn([*command, "--output=/dev/null"], cwd=processes.new_dir("slow"), log=self._log())

    def end(self) -> None:
        if self._tracer is not None:
            self._tracer.send_signal(signal.SIGTERM)  # it lets go of all of them
            self._tracer.wait(30)
            self._tracer = None

    @staticmethod
    def _log() -> Path:
        return processes.scratch_dir() / "slow.log"
