"""The JavaScript SDK: its own tests by Node's runner, its types by tsc, and that what is shipped is what is checked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "clients" / "js"
NODE_MIN = 18


def missing(what: str) -> None:
    """On a developer's machine a reason to skip, in CI a failure."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def run(*command: str, timeout_s: float = 280) -> str:
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with the packages of the lock file installed."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        missing("Node.js and npm are not installed (Debian: apt-get install nodejs npm)")
    version = run(str(node), "--version").strip()
    if int(version.lstrip("v").split(".")[0]) < NODE_MIN:
        missing(f"The JavaScript SDK needs Node {NODE_MIN} or newer, this is {version}")
    lock, installed = PACKAGE / "package-lock.json", PACKAGE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        run(str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    return str(node)


def test_its_own_tests_pass(node: str) -> None:
    files = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.glob("test/*.test.js"))
    said = run(node, "--test", *files)
    passed = re.search(r"^# pass (\d+)$", said, re.MULTILINE)
    assert passed is not None
    assert int(passed.group(1)) > 100


def test_its_types_hold_and_are_those_that_are_shipped(node: str, tmp_path: Path) -> None:
    run(node, "node_modules/typescript/bin/tsc", "--project", "tsconfig.json", "--outDir", str(tmp_path))
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.d.ts")}
    shipped = {path.relative_to(PACKAGE / "types"): path.read_text() for path in (PACKAGE / "types").rglob("*.d.ts")}
    assert made == shipped, "run: npm run types"


def test_the_lock_file_names_versions_and_hashes_but_no_registry() -> None:
    text = (PACKAGE / "package-lock.json").read_text()
    assert '"integrity"' in text
    assert '"resolved"' not in text
    assert "://" not in re.sub(r'"url": "[^"]*"', "", text)  # where a package asks for donations
