"""The shape of the tests, checked: they wait for signs, lie where their modules lie, and have no more than they use."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
UNIT = TESTS / "unit"
HARNESS = TESTS / "harness"
SOURCE = TESTS.parent / "src" / "nexo"
CLIENTS = TESTS.parent / "clients" / "python" / "src"

# Lower these when you can. Nothing outside of the harness sleeps by itself; `time_passes` is for what only time brings
# about, and most of what takes a while has a sign (see harness/waiting.py).
MAX_SLEEPS = 2
MAX_TIME_PASSES = 44

# Tests of no one module, each with its reason.
OF_NO_MODULE = {
    "nexo_client/test_simulation.py": "the whole client and a scripted server under one fake clock",
}


@cache
def texts() -> dict[Path, str]:
    installed = TESTS / "generators" / ".venv"
    paths = (path for path in sorted(TESTS.rglob("*.py")) if installed not in path.parents)
    return {path: path.read_text(encoding="utf-8") for path in paths}


def calls_of(name: str) -> list[str]:
    """File and line of each, outside of the harness."""
    pattern = re.compile(rf"\b(?<!def ){name}\(")
    return [
        f"{path.relative_to(TESTS)}:{number}"
        for path, text in texts().items()
        if HARNESS not in path.parents and name in text
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_nothing_sleeps_where_a_sign_can_be_awaited() -> None:
    found = calls_of("sleep")
    assert len(found) <= MAX_SLEEPS, "use harness.waiting:\n" + "\n".join(found)


def test_few_tests_need_time_itself() -> None:
    found = calls_of("time_passes")
    assert len(found) <= MAX_TIME_PASSES, "await a sign instead:\n" + "\n".join(found)


def test_every_unit_test_lies_where_its_module_lies() -> None:
    lost = []
    for path in sorted(UNIT.rglob("test_*.py")):
        place = path.relative_to(UNIT)
        source = CLIENTS if place.parts[0] == "nexo_client" else SOURCE
        module = source / place.with_name(place.name.removeprefix("test_"))
        if not module.exists() and not module.with_suffix("").is_dir() and str(place) not in OF_NO_MODULE:
            lost.append(f"tests/unit/{place}: there is no {module.relative_to(TESTS.parent)}")
    assert not lost, "\n".join(lost)


def test_the_map_of_the_harness_is_whole() -> None:
    named = set(re.findall(r"^\| `(\w+)` ", (HARNESS / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert named == {path.stem for path in HARNESS.glob("*.py")} - {"__init__"}


def test_the_harness_has_nothing_that_no_test_uses() -> None:
    """bench/ borrows servers from it, and Nexo calls what it is handed; scenarios name the steps."""
    others = [path for folder in (SOURCE, TESTS.parent / "bench") for path in folder.rglob("*.py")]
    scenarios = TESTS.rglob("*.json")
    words = Counter(
        word
        for text in (*texts().values(), *(path.read_text(encoding="utf-8") for path in (*others, *scenarios)))
        for word in re.findall(r"\w+", text)
    )
    unused = [
        f"{path.name}: {name}"
        for path, text in texts().items()
        if HARNESS in path.parents
        for name in re.findall(r"^ *(?:async )?(?:def|class) (\w+)", text, re.MULTILINE)
        if words[name] == 1 and not name.startswith(("__", "pytest_")) and name != "_split_scope"  # of pytest-xdist
        if not (path.name == "scripted_steps.py" and words[name.removeprefix("_")])
        if not (path.name == "dialects.py" and name.endswith("Speaker"))  # found as subclasses
    ]
    assert not unused, "\n".join(unused)
