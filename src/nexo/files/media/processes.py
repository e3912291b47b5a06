"""Runs one worker process for one file: starts it, reads its answer within bounds, and ends it in any case.

Everything here blocks and runs in threads of the reader. Nothing is forked: a process begins by exec, with three
descriptors and no environment.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

_ANSWER_MAX_BYTES = 8 * 1024 * 1024
_PIECE_BYTES = 65_536
# Takes the folders of the packages, the module, and what the module's `main` takes.
_START = (
    "import sys, importlib; sys.path += sys.argv[1:3]; "
    "importlib.import_module('nexo.files.media.' + sys.argv[3]).main(*sys.argv[4:])"
)


class WorkerFailed(Exception):
    """A worker ended without an answer: the reason is for the log, the sentence for the caller."""

    result = "crashed"

    @property
    def sentence(self) -> str:
        return "The file cannot be read"


class WorkerLate(WorkerFailed):
    """A worker used all the processor time that one file may take."""

    result = "late"

    @property
    def sentence(self) -> str:
        return "Reading the file takes too long"


class NoRoom(Exception):
    """The machine has no room for another process, or no processor time for it: that is not the file's fault."""


class Job:
    """The work for one file: one process at a time, each with `seconds` of processor time, all within `clock_s` by
    the clock. `cancel` may be called from any thread."""

    def __init__(self, seconds: int, clock_s: int, memory_bytes: int) -> None:
        self._seconds = seconds
        self._clock_s = clock_s
        self._deadline = 0.0
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.is_cancelled = False

    def run(self, worker: str, file: BinaryIO | int, *arguments: str) -> bytes:
        """Returns the answer of a worker. Raises `WorkerFailed` or `NoRoom`."""
        limits = (str(self._memory_bytes), str(self._seconds), str(self._clock_s))
        command = [sys.executable, "-I", "-S", "-c", _START, *_folders(), worker, *limits, *arguments]
        with self._lock:
            if self.is_cancelled:
                raise WorkerFailed("cancelled")
            self._deadline = self._deadline or time.monotonic() + self._clock_s
            try:
                process = subprocess.Popen(
                    command,
                    stdin=file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise NoRoom(str(error)) from error
            self._process = process
        try:
            answer = self._read(process)
            self._wait(process)
        finally:
            _end(process)
        if process.returncode == -signal.SIGXCPU:
            raise WorkerLate("too slow")
        if process.returncode == -signal.SIGALRM:
            raise NoRoom("no processor time")
        if process.returncode != 0:
            raise WorkerFailed(_reason(process.returncode))
        return answer

    def check(self) -> None:
        """Raises `WorkerFailed` when the job was cancelled."""
        if self.is_cancelled:
            raise WorkerFailed("cancelled")

    def cancel(self) -> None:
        """End the process of this job, and begin no other."""
        with self._lock:
            self.is_cancelled = True
            if self._process is not None and self._process.returncode is None:
                self._process.kill()

    def _read(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        pieces: list[bytes] = []
        total = 0
        while True:
            left_s = self._deadline - time.monotonic()
            if left_s <= 0 or not poll.poll(left_s * 1000):
                raise NoRoom("no processor time")
            piece = os.read(descriptor, _PIECE_BYTES)
            if not piece:
                return b"".join(pieces)
            total += len(piece)
            if total > _ANSWER_MAX_BYTES:
                raise WorkerFailed("the answer is too long")
            pieces.append(piece)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(max(0.01, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise NoRoom("no processor time") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _reason(code: int) -> str:
    if code >= 0:
        return f"ended with {code}"
    return f"ended by {signal.Signals(-code).name}"


def _folders() -> tuple[str, str]:
    """Returns where this package and the library of pictures are."""
    library = importlib.util.find_spec("PIL")
    found = Path(library.origin).parents[1] if library is not None and library.origin is not None else Path("/")
    return str(Path(__file__).parents[3]), str(found)
