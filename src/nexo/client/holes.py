"""When to pull what is missing: after a wait, a few conversations at a time, again when there is no answer. No I/O."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

from nexo.client.options import PULLS_MAX, Options


class Pull(NamedTuple):
    request_id: str
    asked_at: float


class Holes:
    def __init__(self, options: Options, rng: random.Random) -> None:
        self._wait_s = options.gap_wait_ms / 1000
        self._timeout_s = options.ack_timeout_ms / 1000
        self._rng = rng
        self._numbers = itertools.count(1)
        self._due: dict[str, float] = {}  # conversation → when to pull
        self._pulls: dict[str, Pull] = {}
        self._failures: dict[str, int] = {}

    def forget(self) -> None:
        """The connection has ended."""
        self._due.clear()
        self._pulls.clear()
        self._failures.clear()

    def seen(self, name: str, now: float, progressed: bool = False) -> None:
        """Something is missing there. It is probably on its way: wait, and while it keeps coming, go on waiting."""
        if name not in self._pulls and (progressed or name not in self._due):
            self._due[name] = now + self._wait_s * (1 + self._rng.random() / 2)

    def at(self, name: str, when: float) -> None:
        """Pull then, whatever was planned before."""
        if name not in self._pulls:
            self._due[name] = when

    def hasten(self, name: str, now: float) -> None:
        """No use in waiting any longer, if anything is missing there."""
        if name in self._due:
            self._due[name] = now

    def filled(self, name: str) -> None:
        self._due.pop(name, None)

    def take(self, now: float) -> list[tuple[str, str]]:
        """Conversations to pull now, each with the id for the request."""
        taken = []
        for name, at in sorted(self._due.items(), key=lambda item: item[1]):
            if at > now or len(self._pulls) >= PULLS_MAX:
                break
            del self._due[name]
            request_id = f"p-{next(self._numbers)}"
            self._pulls[name] = Pull(request_id, now)
            taken.append((name, request_id))
        return taken

    def not_needed(self, name: str) -> None:
        """It was filled before its pull went out."""
        self._pulls.pop(name, None)

    def answered(self, name: str) -> bool:
        """Whether that answer was waited for."""
        self._failures.pop(name, None)
        return self._pulls.pop(name, None) is not None

    def refused(self, name: str) -> int:
        """How often in a row now."""
        self._pulls.pop(name, None)
        self._failures[name] = self._failures.get(name, 0) + 1
        return self._failures[name]

    def asked_with(self, request_id: str | None) -> str | None:
        return next((name for name, pull in self._pulls.items() if pull.request_id == request_id), None)

    def repeat_late(self, now: float) -> None:
        for name, pull in list(self._pulls.items()):
            if now >= pull.asked_at + self._timeout_s:
                del self._pulls[name]
                self._due[name] = now

    def oldest_asked(self) -> float | None:
        return min((pull.asked_at for pull in self._pulls.values()), default=None)

    def deadline(self) -> float | None:
        due = [pull.asked_at + self._timeout_s for pull in self._pulls.values()]
        if len(self._pulls) < PULLS_MAX:
            due += self._due.values()
        return min(due, default=None)
