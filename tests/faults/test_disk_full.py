"""SQLite on a disk that is full: clear refusals, nothing lost, and on it goes when there is room again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness import processes
from harness.mounts import own_mounts

SCRIPT = Path(__file__).with_name("full_disk.py")


def test_a_full_disk_refuses_clearly_and_loses_nothing() -> None:
    command = own_mounts()
    directory = processes.new_dir("disk")
    disk = directory / "disk"
    disk.mkdir()
    log = directory / "log"
    path = os.pathsep.join([str(SCRIPT.parents[1]), os.environ.get("PYTHONPATH", "")])
    program = processes.spawn(
        [*command, sys.executable, "-W", "error", SCRIPT, disk],
        cwd=directory,
        log=log,
        env={**os.environ, "PYTHONPATH": path},
    )
    exit_code = program.wait(60)
    said = log.read_text()
    assert (exit_code, said.splitlines()[-1:]) == (0, ["DONE"]), said[-4000:]
