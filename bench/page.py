"""Parts of a page that a script writes: everything between its mark and the next end."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end -->"


def mark(script: str) -> str:
    return f"<!-- written by bench/{script}: begin -->"


def part(page: Path, script: str) -> str:
    return _divided(page, script)[1]


def replace_part(page: Path, script: str, text: str) -> None:
    before, _, behind = _divided(page, script)
    page.write_text(f"{before}{mark(script)}\n{text}\n{END}{behind}")


def _divided(page: Path, script: str) -> tuple[str, str, str]:
    before, begin, rest = page.read_text().partition(mark(script))
    inner, end, behind = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no {mark(script)} … {END}")
    return before, inner, behind
