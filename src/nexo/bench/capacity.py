"""How much load a server takes before a latency objective is missed: the load is doubled until then, and the limit
narrowed down."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from nexo.bench.result import Result, Trial

PRECISION = 0.05
MAX_TRIALS = 20
_OBJECTIVE = re.compile(r"(?:(saved|received)\.)?(p50|p95|p99|p99\.9|max)=(\d+(?:\.\d+)?)")


class Objective(msgspec.Struct, frozen=True):
    metric: Literal["saved", "received"]
    percentile: str
    limit_ms: float

    def __str__(self) -> str:
        return f"{self.metric} {self.percentile} ≤ {self.limit_ms:g} ms"


def parse_objective(text: str) -> Objective:
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no objective: e.g. p99=50, saved.p99=50 or received.p95=20, in milliseconds")
    metric, percentile, limit = match.groups()
    return Objective("received" if metric == "received" else "saved", percentile, float(limit))


def try_result(rate: float, result: Result, objective: Objective) -> Trial:
    """Did the server hold the objective at this rate?"""
    summary = result.latencies.get(objective.metric)
    latency_ms = getattr(summary, objective.percentile.replace(".", "")) if summary else float("inf")
    why_not = ""
    if not result.verdict.ok:
        why_not = result.verdict.reasons[0]
    elif latency_ms > objective.limit_ms:
        why_not = f"{objective.percentile} {latency_ms:.1f} ms"
    elif result.saved_per_s < 0.95 * rate:
        why_not = f"only {result.saved_per_s:,.0f}/s were saved"
    return Trial(rate, result.saved_per_s, latency_ms, not why_not, why_not, result.generator.was_bottleneck)


class CapacitySearch:
    """Chooses the next rate to try from the trials so far, until the highest that holds is known well enough."""

    def __init__(self, start_rate: float) -> None:
        self._next: float | None = start_rate
        self.trials: list[Trial] = []

    @property
    def next_rate(self) -> float | None:
        return self._next

    @property
    def best(self) -> Trial | None:
        held = [trial for trial in self.trials if trial.held and trial.rate < self._lowest_broken]
        return max(held, key=lambda trial: trial.rate, default=None)

    @property
    def _lowest_broken(self) -> float:
        return min((trial.rate for trial in self.trials if not trial.held), default=float("inf"))

    def note(self, trial: Trial) -> None:
        self.trials.append(trial)
        best, broken = self.best, self._lowest_broken
        if len(self.trials) >= MAX_TRIALS or (trial.was_generator and not trial.held):
            self._next = None  # what broke was not the server
        elif broken == float("inf"):
            self._next = trial.rate * 2
        elif best is None:
            self._next = trial.rate / 2 if trial.rate > 1 else None
        elif broken <= best.rate * (1 + PRECISION):
            self._next = None
        else:
            self._next = (best.rate + broken) / 2
