"""What every scenario has: a preparation, the part that is measured, and the end at which all is accounted for."""

from __future__ import annotations

from typing import Protocol

from nexo.bench.crowd import Crowd


class Act(Protocol):
    crowd: Crowd
    figures: dict[str, float]  # figures that only this scenario has
    has_histories: bool

    async def prepare(self) -> None:
        """Everything up to the moment from which on it is measured."""
        ...

    async def perform(self, start: float) -> None:
        """From `start` (a moment of `perf_counter`, the same for all processes) until the measured time is over."""
        ...

    async def finish(self) -> None:
        """Wait for what is under way, count up, compare the histories."""
        ...
