"""A file system tree of a program's own, for a small disk that only it can see."""

from __future__ import annotations

import os
import subprocess

import pytest

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
    if IN_CI:
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
