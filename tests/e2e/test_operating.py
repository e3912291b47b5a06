"""What docs/operate.md tells operators about the log is what the server logs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
SOURCE = Path(__file__).parents[2] / "src" / "nexo"


def test_every_event_that_is_explained_is_logged_somewhere() -> None:
    table = PAGE[PAGE.index("| event |") : PAGE.index("## It does not start")]
    events = re.findall(
        r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    )
    logged = set()
    for path in SOURCE.rglob("*.py"):
        logged |= set(
            re.findall(r"(?:\.(?:debug|info|warning|error|exception)|\bwrite)\(\s*\"(\w+)\"", path.read_text())
        )
    assert len(events) > 15
    assert [event for event in events if event not in logged] == []


def test_every_warning_and_error_of_the_server_is_explained() -> None:
    explained = set(re.findall(r"`(\w+)`", PAGE))
    found = set()
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] not in ("bench", "cli"):
            found |= set(re.findall(r"log\.warning\(\s*\"(\w+)\"", path.read_text()))
    assert len(found) > 15
    # what happens in the last second of a process needs no page
    unexplained = found - explained - {"committer_stopped_busy", "node_lease_not_released", "stopped_at_once"}
    assert len(unexplained) <= 3, f"explain these in docs/operate.md: {sorted(unexplained)}"
