"""A program for tests: runs a command of `nexo` again and again on a fresh copy of a folder, killed one step later each
time, until it reaches its end. A step is a file that is opened, renamed, linked or removed, or a database that is
opened.

    killed_steps.py TEMPLATE WORK COMMAND...

In COMMAND, `{}` is the folder. For each kill a line of JSON tells what is there, and what is there after the
command has been run once more, undisturbed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from nexo.cli import app

CHANGES = {"os.rename", "os.link", "os.remove", "os.chown"}
OPENINGS = {"open", "sqlite3.connect"}


def run(command: list[str], folder: Path, kill_at: int) -> int:
    """The status of a process that runs the command, and is killed at this step (0: at none)."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    steps = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal steps
        path = str(arguments[0]) if arguments else ""
        # what is written before it has a name of its own is one step, however often it is opened
        if str(folder) in path and (event in CHANGES or (event in OPENINGS and ".part" not in path)):
            steps += 1
            if steps == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        app(command, prog_name="nexo")
    except SystemExit as end:
        os._exit(int(end.code or 0))
    os._exit(70)


def look(folder: Path) -> dict[str, list[str]]:
    """What a server would find: the users in the database, and those in every other file that is one. It looks at a
    copy: to open a database changes it, and its log."""
    seen = folder.with_name("seen")
    copy(folder, seen)
    return {
        str(path.relative_to(seen)): users(path)
        for path in sorted(seen.rglob("*"))
        if path.is_file() and not path.name.startswith(("lock", "secret", ".nexo-"))
        if not path.name.endswith(("-wal", "-shm", "-journal"))
    }


def users(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        ((whole,),) = database.execute("PRAGMA integrity_check")
        assert whole == "ok", (path, whole)
        return [user for (user,) in database.execute("SELECT user_id FROM users ORDER BY user_id")]


def copy(template: Path, work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(template, work)


def main() -> None:
    template, work = Path(sys.argv[1]), Path(sys.argv[2])
    command = [part.replace("{}", str(work)) for part in sys.argv[3:]]
    copy(template, work)
    with open(os.devnull, "w") as null, redirect_stdout(null), redirect_stderr(null), suppress(SystemExit):
        app(command, prog_name="nexo")  # everything is loaded once, not by every child
    step = 0
    while True:
        step += 1
        copy(template, work)
        status = run(command, work, step)
        parts = [path.name for path in work.rglob(".nexo-*")]
        after = look(work)  # as a server would: it opens the database, with its log
        again = run(command, work, 0) if status else 0
        left = [path.name for path in work.rglob(".nexo-*")]
        line = {"step": step, "status": status, "parts": parts, "found": after, "again": again, "left": left}
        print(json.dumps(line | {"at_last": look(work)}), flush=True)
        if status != signal.SIGKILL:
            break


if __name__ == "__main__":
    main()
