"""How tests are dealt out when a run has several workers (pytest-xdist).

What shares a server or a migrated database stays together: the tests of one file on one engine. Folders
with long tests come first, so that no worker begins a long one when the others have finished.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling  # type: ignore[import-untyped]

TESTS = Path(__file__).parents[1]
_LONGEST_FIRST = ("browser", "faults", "e2e", "conformance", "sim", "property", "contract")
_ENGINE = re.compile(r"\[(?:.*-)?(sqlite|mariadb|postgresql)(?:-.*)?\]$")
_GROUP = re.compile(r'xdist_group\("([^"]+)"\)')
_SLOW = {"browser", "faults", "e2e", "conformance", "sim"}  # real processes, real time


class ByFileAndEngine(LoadScopeScheduling):  # type: ignore[misc]
    """xdist's own groups (`--dist loadgroup`) hang on names of tests that pytest 9 no longer lets it change."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, rest = nodeid.partition("::")
        engine = _ENGINE.search(rest)
        together = _group_of(file) or file
        if together.endswith("contract/test_hooks.py"):  # its last test counts what all of them have met
            return together
        return f"{together}:{engine[1]}" if engine else together


@cache
def _group_of(file: str) -> str | None:
    """Some files know better: `pytestmark = pytest.mark.xdist_group("…")`."""
    found = _GROUP.search((TESTS.parent / file).read_text(encoding="utf-8"))
    return found[1] if found else None


def longest_first(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


def shuffle_files(items: list[pytest.Item], seed: str) -> None:
    """Files in another order, each as a whole: what a file shares is made once all the same."""
    files = sorted({item.path for item in items})
    random.Random(seed).shuffle(files)
    items.sort(key=lambda item: files.index(item.path))


def mark_slow(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in _SLOW:
            item.add_marker(pytest.mark.slow)


def _rank(item: pytest.Item) -> int:
    folder = item.path.relative_to(TESTS).parts[0]
    return _LONGEST_FIRST.index(folder) if folder in _LONGEST_FIRST else len(_LONGEST_FIRST)
