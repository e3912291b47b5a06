"""The table of the figures to reach: what was measured is replaced, everything else of the page stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import targets
from page import END, mark
from target_rows import ROWS, CouldNotMeasure, Outcome, Row, Scale


def recorded(number: str, outcome: Outcome, scale: Scale | None = None) -> targets.Recorded:
    row = Row(number, "what", "≥ 1", "2", lambda scale: outcome, "less")
    return targets.take(row, scale or Scale())


def test_a_page_keeps_what_was_not_measured_again(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{mark(targets.SCRIPT)}\n{END}\nafter\n")
    targets.write_markdown(page, "facts", [recorded("G4", Outcome("17,000/s", True, False, "nexo bench single"))])
    targets.write_markdown(page, "newer facts", [recorded("H1", Outcome("9,000/s", True, True, "nexo bench http"))])
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert text.count("facts") == 1
    assert "17,000/s | must | `nexo bench single` |" in text
    assert "9,000/s | aim |" in text
    assert text.count("not measured yet") == len(ROWS) - 2


def test_what_was_quick_or_failed_says_so() -> None:
    assert recorded("G3", Outcome("8 KiB", True, True, "x"), Scale(quick=True)).measured == "quick (less): 8 KiB"
    assert recorded("G3", Outcome("20 KiB", False, False, "x")).reached == "**no**"

    def fail(scale: Scale) -> Outcome:
        raise CouldNotMeasure("no\ndatabase")

    found = targets.take(Row("S2", "what", "", "", fail), Scale())
    assert (found.measured, found.reached) == ("not measured: no database", "–")


def test_a_page_without_the_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(SystemExit):
        targets.write_markdown(page, "facts", [])
    assert page.read_text() == "nothing"
