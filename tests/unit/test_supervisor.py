"""The supervisor with children that are scripts of a few lines: every way to start, to fail and to end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.waiting import until
from nexo.errors import StartupError
from nexo.supervisor import Supervisor

CHILD = """
import os, pathlib, signal, socket, sys, time
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
number, folder = arguments["--process"], pathlib.Path(arguments["--folder"])
lives = folder / number
lives.write_text(f"{lives.read_text() if lives.exists() else ''}{os.getpid()} ")
life = len(lives.read_text().split())
link = socket.socket(fileno=int(arguments["--link-fd"]))
def ready(): link.send(b"ready\\n")
def wait():
    while link.recv(1): pass
def note(name): (folder / f"{name}-{number}").touch()
"""


class Run:
    """A supervisor over `script`, in which `number` and `life` say which child it is."""

    def __init__(self, folder: Path, script: str, count: int = 2, shutdown_s: float = 5) -> None:
        self.folder = folder
        self.ready = asyncio.Event()
        self.ended: list[int] = []
        command = [sys.executable, "-c", CHILD + script, "--folder", str(folder)]
        self.supervisor = Supervisor(
            count, command, shutdown_s=shutdown_s, on_ready=self.ready.set,
            on_end=lambda number, pid: self.ended.append(number), backoff_s=(0.0, 0.05),
        )  # fmt: skip
        self.task = asyncio.create_task(self.supervisor.run())

    def pids(self, number: int) -> list[int]:
        file = self.folder / str(number)
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    async def until(self, condition: Callable[[], object]) -> None:
        def is_so() -> bool:
            met = bool(condition())
            assert met or not self.task.done(), self.task
            return met

        await until(is_so)

    async def stop(self) -> int:
        self.supervisor.stop()
        return await asyncio.wait_for(self.task, 20)


ENDS_ON_SIGTERM = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"


async def test_all_are_started_and_told_to_stop_and_the_exit_code_is_zero(tmp_path: Path) -> None:
    run = Run(tmp_path, f"{ENDS_ON_SIGTERM}ready(); wait()", count=3)
    await asyncio.wait_for(run.ready.wait(), 20)
    assert [len(run.pids(number)) for number in (1, 2, 3)] == [1, 1, 1]
    assert await run.stop() == 0
    assert sorted(run.ended) == [1, 2, 3]


async def test_one_that_ends_is_started_again_and_the_others_stay(tmp_path: Path) -> None:
    run = Run(tmp_path, f"{ENDS_ON_SIGTERM}ready()\nif number == '2' and life < 3: os.kill(os.getpid(), 9)\nwait()")
    await run.until(lambda: len(run.pids(2)) == 3)
    await asyncio.wait_for(run.ready.wait(), 20)
    assert len(run.pids(1)) == 1
    assert run.ended == [2, 2]
    assert await run.stop() == 0


async def test_what_trying_again_cannot_mend_ends_all_at_once(tmp_path: Path) -> None:
    run = Run(tmp_path, "sys.exit(2)")
    with pytest.raises(StartupError, match=r"process 1 did not start \(exit code 2\)"):
        await asyncio.wait_for(run.task, 20)
    assert run.pids(2) == [], "the others were not even tried"


async def test_one_that_never_gets_ready_is_given_up_after_some_tries(tmp_path: Path) -> None:
    run = Run(tmp_path, f"{ENDS_ON_SIGTERM}if number == '2': os.kill(os.getpid(), 9)\nready(); wait()")
    with pytest.raises(StartupError, match=r"process 2 did not start 3 times in a row \(signal SIGKILL\)"):
        await asyncio.wait_for(run.task, 20)
    assert run.ended.count(1) == 1, "the one that ran was stopped"


async def test_once_all_were_there_one_that_fails_is_tried_for_ever(tmp_path: Path) -> None:
    script = f"{ENDS_ON_SIGTERM}if number == '2' and 1 < life < 7: sys.exit(2)\nready(); wait()"
    run = Run(tmp_path, script)
    await asyncio.wait_for(run.ready.wait(), 20)
    run.supervisor._running[2].kill()
    await run.until(lambda: len(run.pids(2)) == 7)
    assert await run.stop() == 0


async def test_one_that_does_not_stop_is_killed_and_the_exit_code_tells(tmp_path: Path) -> None:
    script = f"{ENDS_ON_SIGTERM}if number == '1': signal.signal(signal.SIGTERM, signal.SIG_IGN)\nready(); wait()"
    run = Run(tmp_path, script, shutdown_s=0.2)
    await asyncio.wait_for(run.ready.wait(), 20)
    assert await run.stop() == 1


async def test_a_reload_reaches_all(tmp_path: Path) -> None:
    script = f"{ENDS_ON_SIGTERM}signal.signal(signal.SIGHUP, lambda *_: note('reloaded'))\nready(); wait()"
    run = Run(tmp_path, script)
    await asyncio.wait_for(run.ready.wait(), 20)
    run.supervisor.reload()
    await run.until(lambda: len(list(tmp_path.glob("reloaded-*"))) == 2)
    assert await run.stop() == 0


async def test_a_stop_while_they_start_ends_what_has_started(tmp_path: Path) -> None:
    run = Run(tmp_path, f"{ENDS_ON_SIGTERM}note('here'); wait()")
    await run.until(lambda: list(tmp_path.glob("here-*")))
    assert await run.stop() == 0
    assert run.pids(2) == []
