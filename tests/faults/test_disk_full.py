"""SQLite on a disk that is full: clear refusals, nothing lost, and on it goes when there is room again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import processes

SCRIPT = Path(__file__).with_name("full_disk.py")
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def own_mounts() -> list[str]:
    """The command that gives a program a file system tree of its own, where it may mount a small disk."""
    for command in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        try:
            done = subprocess.run(
                [*command, "mount", "-t", "tmpfs", "-o", "size=1m", "nexo-probe", "/mnt"],
                capture_output=True,
                text=True,
            )
        except FileNotFoundError:
            reason = "there is no unshare"
            continue
        if done.returncode == 0:
            return command
        reason = done.stderr.strip()
    text = f"a small disk cannot be mounted here ({reason}): what a full disk does is NOT tested"
    pytest.fail(text, pytrace=False) if IN_CI else pytest.skip(text)


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
