"""Several server processes on one port: started, watched, started again, and stopped as one.

The supervisor holds no client connections and no data; a child is the same program, started with its number. A socket
pair joins the two: over it a child reports that it accepts connections, and when one side closes, the other knows that
the process has ended. So the children of a supervisor that was killed stop gracefully.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Sequence

import structlog

from nexo.errors import StartupError

log = structlog.get_logger()

EXIT_UNUSABLE = 2  # of a child: trying again will not help (configuration, schema)
EXIT_CUT_OFF = 1
FIRST_TRIES = 3
BACKOFF_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SETTLED_S = 60.0  # a process that served this long did not fail to start
STAGGER_S = 0.5
KILL_MARGIN_S = 1.0

_READY = b"ready\n"


class Supervisor:
    """`command` starts a child; it is given `--process`, its number from 1, and `--link-fd`."""

    def __init__(
        self,
        count: int,
        command: Sequence[str],
        *,
        shutdown_s: float,
        on_ready: Callable[[], None],
        on_end: Callable[[int, int], None] = lambda number, pid: None,
        backoff_s: Sequence[float] = BACKOFF_S,
    ) -> None:
        """`on_ready` is called once, when all take connections; `on_end` with number and pid of each that ended."""
        self._numbers = range(1, count + 1)
        self._command = list(command)
        self._shutdown_s = shutdown_s
        self._on_ready = on_ready
        self._on_end = on_end
        self._backoff_s = backoff_s
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._waiting_for = set(self._numbers)  # those that were never ready
        self._go = asyncio.Event()  # the first one is ready: an error that stops all is reported once, by that one
        self._stop = asyncio.Event()
        self._exit_code = 0

    async def run(self) -> int:
        """Run until a signal has ended all processes. Returns the exit code. Raises StartupError when they cannot be
        started at all."""
        keepers = [asyncio.create_task(self._keep(number)) for number in self._numbers]
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({stopping, *keepers}, return_when=asyncio.FIRST_COMPLETED)
            failed = [keeper.exception() for keeper in keepers if keeper.done()]
            self._stop.set()
            self._go.set()
            await self._stop_in_turn(keepers)
        finally:
            stopping.cancel()
            self._kill_all()
            await asyncio.gather(stopping, *keepers, return_exceptions=True)
        for failure in failed:
            if failure is not None:
                raise failure
        return self._exit_code

    # -- one child after another under one number ---------------------------------------------------------------

    async def _keep(self, number: int) -> None:
        failures = 0
        if number != self._numbers[0]:
            await self._go.wait()
        while not self._stop.is_set():
            began = asyncio.get_running_loop().time()
            was_ready, code = await self._live(number)
            if self._stop.is_set():
                if code:
                    self._exit_code = EXIT_CUT_OFF
                return
            lived_s = asyncio.get_running_loop().time() - began
            failures = 1 if was_ready and lived_s > SETTLED_S else failures + 1
            if self._waiting_for:
                self._check_can_start(number, code, failures)
            pause_s = self._backoff_s[min(failures, len(self._backoff_s)) - 1]
            log.error("process_ended", number=number, end=_describe(code), again_in_s=pause_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause_s)

    def _check_can_start(self, number: int, code: int, failures: int) -> None:
        """Raises StartupError for a process that fails before all were ready. Later, a process that fails is restarted
        for ever, while the other ones serve."""
        if number in self._waiting_for and (code == EXIT_UNUSABLE or failures >= FIRST_TRIES):
            tries = "" if failures == 1 else f" {failures} times in a row"
            raise StartupError(f"process {number} did not start{tries} ({_describe(code)}); its messages are above")

    async def _live(self, number: int) -> tuple[bool, int]:
        """Start a process and wait for its end. Returns whether it was ready, and its exit code (negative: signal)."""
        ours, theirs = socket.socketpair()
        with theirs:
            # A session of its own: Ctrl-C reaches the supervisor alone, which then stops all in order.
            process = await asyncio.create_subprocess_exec(
                *self._command, "--process", str(number), "--link-fd", str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        self._running[number] = process
        if self._stop.is_set():  # stopped while it was being started: `_stop_in_turn` has passed it
            process.terminate()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            ready = await reader.readline() == _READY
            if ready:
                self._is_ready(number, process.pid)
            code = await process.wait()
        finally:
            writer.close()
            self._running.pop(number, None)
        try:
            self._on_end(number, process.pid)
        except Exception:  # a failure to note its end must not affect other processes
            log.exception("end_not_noted", number=number)
        return ready, code

    def _is_ready(self, number: int, pid: int) -> None:
        log.info("process_ready", number=number, pid=pid)
        self._go.set()
        if self._waiting_for:
            self._waiting_for.discard(number)
            if not self._waiting_for:
                self._on_ready()

    # -- the end ------------------------------------------------------------------------------------------------

    async def _stop_in_turn(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        """Stop the processes one after another, so that not all clients reconnect at the same moment; the next one is
        stopped after a short time even if the previous one still runs."""
        deadline = asyncio.get_running_loop().time() + self._shutdown_s + STAGGER_S * len(keepers) + KILL_MARGIN_S
        for number in self._numbers:
            process = self._running.get(number)
            if process is not None:
                _send(process, signal.SIGTERM)
                await asyncio.wait({keepers[number - 1]}, timeout=STAGGER_S)
        _, left = await asyncio.wait(keepers, timeout=deadline - asyncio.get_running_loop().time())
        if left:
            log.error("processes_cut_off", processes=sorted(self._running))
            self._exit_code = EXIT_CUT_OFF

    def _kill_all(self) -> None:
        for process in self._running.values():
            _send(process, signal.SIGKILL)

    def stop(self) -> None:
        """End all of them gracefully."""
        self._stop.set()

    def reload(self) -> None:
        for process in self._running.values():
            _send(process, signal.SIGHUP)

    def heed_signals(self) -> None:
        """End all gracefully on the first signal, at once on the second; pass SIGHUP on to the children."""
        loop = asyncio.get_running_loop()

        def stop(number: signal.Signals) -> None:
            if self._stop.is_set():
                log.warning("stopped_at_once", signal=number.name)
                self._kill_all()
                # default action and the same signal again: the exit code names the signal
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
                return
            log.info("stopping", signal=number.name, processes=len(self._running))
            self.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)
        loop.add_signal_handler(signal.SIGHUP, self.reload)


class SupervisorLink:
    """A child's end of the socket pair."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(False)

    def ready(self) -> None:
        with contextlib.suppress(OSError):  # the supervisor has ended: `on_lost` handles it
            self._socket.send(_READY)

    def on_lost(self, stop: Callable[[], None]) -> None:
        """Call `stop` when the supervisor has ended. Nothing else is ever received."""
        loop = asyncio.get_running_loop()

        def gone() -> None:
            loop.remove_reader(self._socket)
            log.error("supervisor_lost")
            stop()

        loop.add_reader(self._socket, gone)


def _send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _describe(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"
