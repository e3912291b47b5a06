"""A Python script of the tests as a process of its own: lines in, lines out, and any death one likes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from harness import processes

TESTS = Path(__file__).parents[1]


class ProgramFailed(Exception):
    """It ended when nobody expected it; the text is what it complained of."""


class Program:
    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())
        self.lines: list[str] = []  # all that it has said

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            async with self._news:
                self.lines.append(line.decode().rstrip("\n"))
                self._news.notify_all()
        async with self._news:
            self._news.notify_all()

    async def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()

    async def wait_for(self, word: str, count: int = 1, timeout_s: float = 60) -> str:
        """The `count`-th line that starts with this word."""

        def heard() -> list[str]:
            return [line for line in self.lines if line.split(" ", 1)[0] == word]

        try:
            async with asyncio.timeout(timeout_s), self._news:
                await self._news.wait_for(lambda: len(heard()) >= count or self._reading.done() or self._is_over())
        except TimeoutError:
            raise TimeoutError(f"{count} × {word} did not come; the last was {self.lines[-1:]}\n{self.log()}") from None
        if len(heard()) < count:
            raise ProgramFailed(f"it ended before {count} × {word}:\n{self.log()}")
        return heard()[count - 1]

    def _is_over(self) -> bool:
        assert self._process.stdout is not None
        return self._process.stdout.at_eof()

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def signal(self, signum: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signum)

    async def wait_until_stopped(self, timeout_s: float = 30) -> None:
        """Until it has got SIGSTOP from whomever."""
        pid = self._process.pid
        async with asyncio.timeout(timeout_s):
            seen = await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if seen is None or seen.si_code != os.CLD_STOPPED:
            raise ProgramFailed(f"it ended instead of stopping:\n{self.log()}")

    async def kill(self) -> None:
        """SIGKILL; afterwards `lines` is complete."""
        self.signal(signal.SIGKILL)
        await self._end()

    async def finish(self, timeout_s: float = 60) -> None:
        """Wait for its own, orderly end."""
        async with asyncio.timeout(timeout_s):
            await self._end()
        if self._process.returncode:
            raise ProgramFailed(f"exit code {self._process.returncode}:\n{self.log()}")

    async def _end(self) -> None:
        await self._process.wait()
        await self._reading
        if self._process.stdin is not None:
            self._process.stdin.close()


async def start(script: Path, *arguments: str, **environment: str) -> Program:
    """Its standard error goes to a file; warnings are errors there as well."""
    directory = processes.new_dir(script.stem)
    log = directory / "log"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NEXO_")}
    with log.open("wb") as complaints:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-W",
            "error",
            str(script),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=complaints,
            cwd=directory,
            env={**plain, "PYTHONPATH": os.pathsep.join([str(TESTS), plain.get("PYTHONPATH", "")]), **environment},
            start_new_session=True,
        )
    return Program(process, log)


@asynccontextmanager
async def running(script: Path, *arguments: str, **environment: str) -> AsyncIterator[Program]:
    """As `start`; whatever is left of it at the end of the block is killed."""
    program = await start(script, *arguments, **environment)
    try:
        yield program
    finally:
        await program.kill()
