"""How long the database takes, by script."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path
from types import CodeType
from typing import Any

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets, Tally

SCRIPTS_MAX = 256  # there are as many as generator functions in the store; a bound all the same


class ScriptMeter:
    """Scripts are told apart by their code, and named after its file and function."""

    def __init__(self) -> None:
        self._taken: dict[CodeType, Buckets] = {}
        self.failures = Tally(transient=0, unknown=0, conflict=0, failed=0)

    def observe(self, script: Generator[Any, Any, Any], taken_s: float) -> None:
        code: CodeType = script.gi_code  # type: ignore[attr-defined]  # what is not a generator cannot be run
        buckets = self._taken.get(code)
        if buckets is None:
            if len(self._taken) >= SCRIPTS_MAX:
                return
            buckets = self._taken[code] = Buckets()
        buckets.observe(taken_s)

    def samples(self) -> Iterable[Sample]:
        by_name: dict[str, Buckets] = {}
        for code, buckets in self._taken.items():
            by_name[f"{Path(code.co_filename).stem}.{code.co_name}"] = buckets
        for name, buckets in sorted(by_name.items()):
            yield f.SCRIPTS(buckets, name)
        yield from f.SCRIPT_FAILURES.each(self.failures)
