"""Background work: the one place that starts the tasks of the server, restarts, counts and logs what ends unexpectedly.

A service is a coroutine function that runs until the server stops. When it raises or returns, that is logged and
counted, and it is started again after a pause that grows; until it has run for `healthy_s` again, `failing` names it
and `/readyz` reports it. A service resets at its start what a run that failed may have left. A job is a coroutine that
ends by itself; its failure is logged and counted.

Work that needs other parts until its end is started in a `branch`, which is stopped before those parts are.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextvars import Context
from typing import Any

import structlog

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally

log = structlog.get_logger()

PAUSES_S = (0.05, 0.2, 1.0, 5.0)
HEALTHY_S = 10.0  # a service that ran this long since its last failure is no longer reported as failing

AGAIN_S = 1.0  # between two attempts to cancel

Service = Callable[[], Coroutine[Any, Any, None]]


async def end_all(tasks: Sequence[asyncio.Future[Any]]) -> list[Any]:
    """Cancel tasks and wait for their end. Returns their results, exceptions included. Before Python 3.12 `wait_for`,
    which database drivers use, loses a cancellation that comes together with what it waits for: it is repeated."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
    return await asyncio.gather(*tasks, return_exceptions=True)


class Running:
    """Handle of one service."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.task: asyncio.Task[None] | None = None
        self.failures = 0  # in a row
        self.error = ""  # of the last failure
        self.finishing = asyncio.Event()  # the owner has asked the service to return

    def cancel(self) -> None:
        """Stop the service without waiting for its end."""
        if self.task is not None:
            self.task.cancel()

    async def finish(self, timeout_s: float) -> None:
        """Wait for the return of the service, which its owner has asked for: that is no failure. Cancel it when it has
        not returned within `timeout_s`."""
        self.finishing.set()
        if self.task is not None:
            await asyncio.wait({self.task}, timeout=timeout_s)
            await self.stop()

    async def stop(self) -> None:
        """Cancel the service and wait for its end."""
        if self.task is not None:
            # Some libraries take a cancellation for a time-out of their own: repeat until the task has ended.
            while not self.task.done():
                self.task.cancel()
                await asyncio.wait({self.task}, timeout=0.2)


class Background:
    def __init__(self, pauses_s: tuple[float, ...] = PAUSES_S, healthy_s: float = HEALTHY_S) -> None:
        self._pauses_s = pauses_s
        self._healthy_s = healthy_s
        self._services: set[Running] = set()
        self._all_services: set[Running] = set()  # with those of branches
        self._jobs: set[asyncio.Task[Any]] = set()
        self._restarts = Tally()
        self._failed_jobs = Tally()

    def branch(self) -> Background:
        """Returns a part that is stopped alone. Both report and count the failures of both."""
        part = Background(self._pauses_s, self._healthy_s)
        part._all_services = self._all_services
        part._restarts, part._failed_jobs = self._restarts, self._failed_jobs
        return part

    def serve(self, name: str, service: Service) -> Running:
        """Run `service` until `stop`; the handle stops this one alone."""
        running = Running(name)
        self._restarts.add(name, 0)  # shown from the start, so that a rate can be taken
        running.task = asyncio.get_running_loop().create_task(
            self._keep_running(running, service), name=name, context=Context()
        )
        self._services.add(running)
        self._all_services.add(running)
        running.task.add_done_callback(lambda _: self._forget(running))
        return running

    def start(self, name: str, job: Coroutine[Any, Any, Any], *, detached: bool = False) -> asyncio.Task[Any]:
        """Run `job` to its end without a caller that waits. A `detached` one works for many requests, and does not log
        the id of the request that happens to start it."""
        self._failed_jobs.add(name, 0)
        context = Context() if detached else None
        task = asyncio.get_running_loop().create_task(self._finish(name, job), name=name, context=context)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)
        return task

    def failing(self) -> dict[str, str]:
        """Services that ended unexpectedly a short time ago, with the error."""
        return {running.name: running.error for running in self._all_services if running.failures}

    async def stop(self) -> None:
        """Cancel everything that still runs and wait for it."""
        left: set[asyncio.Task[Any]] = {running.task for running in self._services if running.task is not None}
        left |= self._jobs
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=0.2)

    def samples(self) -> Iterable[Sample]:
        yield from f.TASK_RESTARTS.each(self._restarts)
        yield from f.JOB_FAILURES.each(self._failed_jobs)
        yield f.TASKS_FAILING(len(self.failing()))

    async def _keep_running(self, running: Running, service: Service) -> None:
        loop = asyncio.get_running_loop()
        while not running.finishing.is_set():
            recovered = loop.call_later(self._healthy_s, self._recover, running)
            try:
                # in a task of its own, so that what wakes it enters the service and nothing else
                await loop.create_task(service(), name=running.name)
                if running.finishing.is_set():
                    return
                running.error = "it returned"
                log.error("task_ended", task=running.name)
            except Exception as error:
                running.error = f"{type(error).__name__}: {error}"
                log.exception("task_failed", task=running.name)
            finally:
                recovered.cancel()
            self._restarts.add(running.name)
            pause_s = self._pauses_s[min(running.failures, len(self._pauses_s) - 1)]
            running.failures += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await running.finishing.wait()

    def _forget(self, running: Running) -> None:
        self._services.discard(running)
        self._all_services.discard(running)

    def _recover(self, running: Running) -> None:
        running.failures = 0

    async def _finish(self, name: str, job: Coroutine[Any, Any, Any]) -> None:
        try:
            await job
        except Exception:
            self._failed_jobs.add(name)
            log.exception("job_failed", job=name)
