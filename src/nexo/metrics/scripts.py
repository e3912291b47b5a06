"""How long the database takes, by script."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path
from types import CodeType
from typing import Any

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets, Tally

NOTED_MAX = 256  # scripts that are not counted yet
SCRIPTS_MAX = 256  # there are as many as generator functions in the store; a bound all the same


def script_name(script: Generator[Any, Any, Any]) -> str:
    """Returns the name of a script: its module and function."""
    code: CodeType = script.gi_code  # type: ignore[attr-defined]
    return f"{Path(code.co_filename).stem}.{code.co_name}"


class ScriptMeter:
    """Identifies scripts by their code object, and names them after its file and function. A script around another one
    has that one's full name as its own (`expiry.shown`)."""

    def __init__(self) -> None:
        self._taken: dict[tuple[CodeType, str], Buckets] = {}
        self.noted: list[tuple[Generator[Any, Any, Any], float]] = []  # scripts that ended, and how long they took
        self.failures = Tally(transient=0, unknown=0, conflict=0, failed=0)

    def count(self) -> None:
        """Count what was noted."""
        noted, self.noted = self.noted, []
        for script, taken_s in noted:
            code: CodeType = script.gi_code  # type: ignore[attr-defined]  # what is not a generator cannot be run
            key = (code, script.__name__)  # type: ignore[attr-defined]
            buckets = self._taken.get(key)
            if buckets is None:
                if len(self._taken) >= SCRIPTS_MAX:
                    continue
                buckets = self._taken[key] = Buckets()
            buckets.observe(taken_s)

    def samples(self) -> Iterable[Sample]:
        self.count()
        by_name: dict[str, Buckets] = {}
        for (code, name), buckets in self._taken.items():
            by_name[name if "." in name else f"{Path(code.co_filename).stem}.{name}"] = buckets
        for name, buckets in sorted(by_name.items()):
            yield f.SCRIPTS(buckets, name)
        yield from f.SCRIPT_FAILURES.each(self.failures)
