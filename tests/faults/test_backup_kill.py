"""kill -9 at every step of `nexo backup` and `nexo restore`: there is the old or the new, whole, never a mixture."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness import processes
from harness.server_process import NEXO, environment

SCRIPT = Path(__file__).with_name("killed_steps.py")
ADD = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode=WAL")
database.execute("INSERT INTO users (user_id, password_hash) VALUES ('ben', 'none')")
os.kill(os.getpid(), 9)
"""


def nexo(*arguments: str | Path, text: str | None = None) -> None:
    subprocess.run([NEXO, *arguments], env=environment({}), input=text, text=True, capture_output=True, check=True)


@pytest.fixture(scope="module")
def template() -> Path:
    """A folder whose database has ann and ben, the latter in the log only, and a backup with ann."""
    folder = processes.new_dir("template")
    data = folder / "data"
    nexo("user", "add", "ann", "--data", data, text="a long password\n")
    (data / "secret").write_text("a secret of more than thirty-two characters")
    (data / "secret").chmod(0o600)
    nexo("backup", folder / "ann.backup", "--data", data)
    (data / "secret").write_text("another one, of more than thirty-two characters")
    subprocess.run([sys.executable, "-c", ADD, data / "nexo.db"], check=False)
    assert (data / "nexo.db-wal").stat().st_size
    return folder


def killed(template: Path, *command: str) -> list[dict[str, Any]]:
    work = processes.new_dir("killed")
    done = subprocess.run(
        [sys.executable, SCRIPT, template, work / "folder", *command],
        env=environment({}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["status"] == 9 for line in lines[:-1])
    assert lines[-1]["status"] == 0, "the last one is not killed"
    assert len(lines) > 5, "there is something to kill"
    return lines


def test_a_restore_that_is_killed_leaves_the_old_database_or_the_new_one(template: Path) -> None:
    lines = killed(template, "restore", "{}/ann.backup", "--data", "{}/data")
    states = [line["found"]["data/nexo.db"] for line in lines]
    assert states == sorted(states, key=len, reverse=True), "old until the step at which it is new"
    assert states[0] == ["ann", "ben"]
    assert states[-1] == ["ann"]
    for line in lines:
        assert line["again"] == 0, line
        assert line["left"] == [], line
        assert line["at_last"]["data/nexo.db"] == ["ann"], line
        kept = [found for name, found in line["at_last"].items() if name.startswith("data/nexo.db.before-")]
        assert ["ann", "ben"] in kept, f"the old database is lost: {line}"


def test_a_backup_that_is_killed_leaves_a_whole_one_or_none(template: Path) -> None:
    lines = killed(template, "backup", "{}/new.backup", "--data", "{}/data")
    assert lines[0]["found"].get("new.backup") is None
    assert any(line["parts"] for line in lines), "one was killed with a part written"
    for line in lines:
        assert line["found"]["data/nexo.db"] == ["ann", "ben"], line
        assert line["found"].get("new.backup") in (None, ["ann", "ben"]), line
        assert line["left"] == [], line
        assert line["at_last"]["new.backup"] == ["ann", "ben"], line


def test_a_backup_that_is_ended_while_it_copies_leaves_none() -> None:
    """A larger database, and an end after the first pages: by Ctrl-C, which cleans up, and by a kill."""
    folder = processes.new_dir("large")
    data = folder / "data"
    nexo("user", "add", "ann", "--data", data, text="a long password\n")
    with closing(sqlite3.connect(data / "nexo.db")) as database, database:
        database.execute("CREATE TABLE large (content BLOB)")
        database.executemany("INSERT INTO large VALUES (?)", [(bytes(1 << 20),)] * 40)
    command = [NEXO, "backup", folder / "new.backup", "--data", data]
    for number, code in ((signal.SIGINT, 4), (signal.SIGKILL, -9)):
        with subprocess.Popen(command, env=environment({}), stderr=subprocess.PIPE, text=True) as child:
            assert child.stderr is not None
            assert "copying" in child.stderr.readline()
            child.send_signal(number)
            said = child.stderr.read()
        assert child.returncode == code, said
        assert "Traceback" not in said
        assert not (folder / "new.backup").exists()
        assert bool(list(folder.glob(".nexo-*.part"))) == (number == signal.SIGKILL)
    nexo("backup", folder / "new.backup", "--data", data)
    assert sorted(path.name for path in folder.iterdir()) == ["data", "new.backup"]
