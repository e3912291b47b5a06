"""Defects of the server, made by tests: a call that raises, and what the background reports about it."""

from __future__ import annotations

from typing import Any

import pytest

from nexo.background import Background


def raise_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, times: int = 1) -> list[tuple[Any, ...]]:
    """Make the next calls of `owner.name` raise a RuntimeError; later ones are real. Returns the arguments of the calls
    that raised, as they are made."""
    real = getattr(owner, name)
    failed: list[tuple[Any, ...]] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(failed) < times:
            failed.append(args)
            raise RuntimeError("a defect")
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)
    return failed


def counts(background: Background) -> dict[tuple[str, ...], float]:
    """Returns the values of its metrics by name and labels."""
    return {(sample.name, *sample.labels): sample.value for sample in background.samples()}  # type: ignore[misc]


def restarts(background: Background, task: str) -> float:
    return counts(background).get(("nexo_task_restarts_total", task), 0)


def failed_jobs(background: Background, job: str) -> float:
    return counts(background).get(("nexo_job_failures_total", job), 0)
