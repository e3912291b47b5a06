"""Programs of others that read the OpenAPI document or verify webhooks, installed from lock files on first use.

They have an environment of their own: what they ask for excludes versions that Nexo needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "generators"
_LOCK = FOLDER / "requirements.txt"
_BIN = FOLDER / ".venv" / "bin"
INSTALL_TIMEOUT_S = 240


def missing(what: str) -> None:
    """On a developer's machine a reason to skip, in CI a failure."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def python_tool(name: str) -> str:
    """Returns the path of a program of `requirements.txt`."""
    stamp = _BIN.parent / "installed"
    if not stamp.exists() or stamp.read_text() != _LOCK.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", _BIN.parent], check=True, timeout=INSTALL_TIMEOUT_S)
        run(str(_BIN / "pip"), "install", "--quiet", "--require-hashes", "-r", str(_LOCK), timeout_s=INSTALL_TIMEOUT_S)
        stamp.write_text(_LOCK.read_text())
    return str(_BIN / name)


def node_tool(path: str) -> list[str]:
    """Returns the command for a script of Node, named as in the folder of `package.json`."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        missing("Node.js and npm are not installed (Debian: apt-get install nodejs npm)")
    lock, installed = FOLDER / "package-lock.json", FOLDER / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        command = (str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        run(*command, cwd=FOLDER, timeout_s=INSTALL_TIMEOUT_S)
    return [str(node), str(FOLDER / path)]


def run(
    *command: str,
    cwd: Path | None = None,
    given: str | None = None,
    python_path: Path | None = None,
    timeout_s: float = 60,
) -> str:
    """Returns what a program writes, on both outputs. With `python_path` it imports from there only. Fails if the
    program fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = f"{_BIN}{os.pathsep}{environment['PATH']}"
    if python_path is not None:
        environment["PYTHONPATH"] = str(python_path)
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout
