"""Services are restarted, counted and reported while they fail; jobs that fail are counted."""

from __future__ import annotations

import asyncio

from harness.defects import counts
from harness.waiting import loop_turns, until
from nexo.background import Background, end_all


async def test_a_service_that_raises_is_started_again_and_reported() -> None:
    background = Background(pauses_s=(0.0,), healthy_s=60)
    runs = 0
    third = asyncio.Event()

    async def service() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise RuntimeError("broken")
        third.set()
        await asyncio.Event().wait()

    background.serve("reader", service)
    await third.wait()
    assert background.failing() == {"reader": "RuntimeError: broken"}
    assert counts(background)["nexo_task_restarts_total", "reader"] == 2
    assert counts(background)["nexo_tasks_failing",] == 1
    await background.stop()


async def test_a_service_that_returns_has_ended_unexpectedly_too() -> None:
    background = Background(pauses_s=(0.0,), healthy_s=60)
    runs = 0
    again = asyncio.Event()

    async def service() -> None:
        nonlocal runs
        runs += 1
        if runs > 1:
            again.set()
            await asyncio.Event().wait()

    background.serve("reader", service)
    await again.wait()
    assert background.failing() == {"reader": "it returned"}
    await background.stop()


async def test_a_service_that_runs_for_a_while_is_healthy_again() -> None:
    background = Background(pauses_s=(0.0,), healthy_s=0.01)
    failed = False

    async def service() -> None:
        nonlocal failed
        if not failed:
            failed = True
            raise RuntimeError("once")
        await asyncio.Event().wait()

    background.serve("reader", service)
    await until(lambda: failed and not background.failing())
    assert counts(background)["nexo_tasks_failing",] == 0
    await background.stop()


async def test_stopping_one_service_leaves_the_others() -> None:
    background = Background()
    running = background.serve("one", asyncio.Event().wait)  # type: ignore[arg-type]
    other = background.serve("two", asyncio.Event().wait)  # type: ignore[arg-type]
    await loop_turns()
    await running.stop()
    assert running.task is not None
    assert running.task.cancelled()
    assert other.task is not None
    assert not other.task.done()
    await background.stop()
    assert other.task.cancelled()


async def test_a_job_that_fails_is_counted_and_does_not_disturb_the_caller() -> None:
    background = Background()

    async def job() -> None:
        raise RuntimeError("broken")

    await background.start("receipt", job())
    assert counts(background)["nexo_job_failures_total", "receipt"] == 1
    await background.stop()


async def test_a_branch_is_stopped_alone_and_reported_by_both() -> None:
    background = Background(pauses_s=(0.0,), healthy_s=60)
    branch = background.branch()
    failed = asyncio.Event()

    async def service() -> None:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("once")
        await asyncio.Event().wait()

    below = background.serve("below", asyncio.Event().wait)  # type: ignore[arg-type]
    branch.serve("above", service)
    await until(branch.failing)
    assert background.failing() == branch.failing() == {"above": "RuntimeError: once"}
    assert counts(background)["nexo_task_restarts_total", "above"] == 1
    await branch.stop()
    assert background.failing() == {}
    assert below.task is not None
    assert not below.task.done()
    await background.stop()


async def test_a_service_whose_owner_asked_it_to_return_has_not_failed() -> None:
    background = Background()
    over = asyncio.Event()

    async def service() -> None:
        await over.wait()

    running = background.serve("reader", service)
    await loop_turns()
    over.set()
    await running.finish(5.0)
    assert counts(background)["nexo_task_restarts_total", "reader"] == 0
    assert background.failing() == {}


async def test_a_service_that_does_not_return_in_time_is_cancelled() -> None:
    running = Background().serve("reader", asyncio.Event().wait)  # type: ignore[arg-type]
    await loop_turns()
    await running.finish(0.01)
    assert running.task is not None
    assert running.task.cancelled()


async def test_finishing_does_not_wait_for_the_pause_after_a_failure() -> None:
    background = Background(pauses_s=(60.0,))

    async def service() -> None:
        raise RuntimeError("broken")

    running = background.serve("reader", service)
    await until(background.failing)
    async with asyncio.timeout(5):
        await running.finish(30.0)
    assert counts(background)["nexo_task_restarts_total", "reader"] == 1


async def test_a_cancellation_that_gets_lost_is_repeated() -> None:
    cancelled = 0

    async def deaf() -> None:
        nonlocal cancelled
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled += 1
                if cancelled == 2:
                    raise

    async def fail() -> None:
        raise ValueError("of its own")

    tasks = [asyncio.ensure_future(deaf()), asyncio.ensure_future(fail())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    ended = await end_all(tasks)
    assert [type(one) for one in ended] == [asyncio.CancelledError, ValueError]
    assert cancelled == 2
