"""How tests are dealt out when a run has several workers (pytest-xdist, --dist loadgroup).

What shares a server or a migrated database stays together: the tests of one file on one engine. Folders
with long tests come first, so that no worker begins a long one when the others have finished.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engines import engine_of

TESTS = Path(__file__).parents[1]
_LONGEST_FIRST = ("browser", "faults", "e2e", "conformance", "sim", "property", "contract")
_SLOW = {"browser", "faults", "e2e", "conformance", "sim"}  # real processes, real time


def group_for_workers(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)
    for item in items:
        if item.get_closest_marker("xdist_group") is None:  # some files know better
            item.add_marker(pytest.mark.xdist_group(_group_of(item)))


def mark_slow(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in _SLOW:
            item.add_marker(pytest.mark.slow)


def _rank(item: pytest.Item) -> int:
    folder = item.path.relative_to(TESTS).parts[0]
    return _LONGEST_FIRST.index(folder) if folder in _LONGEST_FIRST else len(_LONGEST_FIRST)


def _group_of(item: pytest.Item) -> str:
    file = item.path.relative_to(TESTS).with_suffix("").as_posix()
    engine = engine_of(item)
    return f"{file}:{engine}" if engine else file
