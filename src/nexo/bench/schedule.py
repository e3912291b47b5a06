"""When an open loop sends: the times are fixed before the run and do not depend on how fast the server answers."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import msgspec


class Schedule(msgspec.Struct, frozen=True):
    """`rate` sends a second, evenly or in bursts of `burst` at once, or with random pauses (`poisson`); over the
    first `ramp_s` seconds the rate grows from nothing. Offsets are seconds from the start."""

    rate: float
    seconds: float
    ramp_s: float = 0.0
    burst: int = 1
    poisson: bool = False
    seed: int = 0

    def offset_of(self, number: float) -> float:
        """When the (fractional) number of sends has been reached."""
        ramp_s = min(self.ramp_s, self.seconds)
        in_ramp = self.rate * ramp_s / 2
        if number < in_ramp:
            return math.sqrt(2 * number * ramp_s / self.rate)
        return ramp_s + (number - in_ramp) / self.rate

    def offsets(self) -> Iterator[float]:
        if self.rate <= 0:
            return
        step = random.Random(self.seed).expovariate if self.poisson else None
        reached = 0.0
        number = 0
        while True:
            if step is not None:
                reached += step(1.0)
            else:
                reached = float(number // self.burst * self.burst)
            offset = self.offset_of(reached)
            if offset >= self.seconds:
                return
            yield offset
            number += 1

    @property
    def total(self) -> float:
        """Sends on average."""
        ramp_s = min(self.ramp_s, self.seconds)
        return self.rate * (self.seconds - ramp_s / 2)
