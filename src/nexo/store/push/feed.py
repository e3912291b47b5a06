"""What push reads from the journal: references only, no messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nexo.core.journal import CHANGED, EXPIRED, READ, JournalEntry
from nexo.core.push import PushPage
from nexo.store.engine import Script
from nexo.store.journal.reading import Part


class ResolvedPush(NamedTuple):
    page: PushPage
    done: int


def references_of(given: Sequence[Part | JournalEntry]) -> Script[ResolvedPush]:
    """Returns the conversations and members that these parts concern."""
    saved: dict[int, tuple[int, int]] = {}
    read: dict[tuple[int, str], None] = {}
    changed: set[int] = set()
    newest_at = 0
    for part in given:
        if not isinstance(part, Part):
            continue
        newest_at = max(newest_at, part.at)
        if part.kind == CHANGED:
            conv, seq = part.key
            low, high = saved.get(conv, (seq, seq))
            saved[conv] = (min(low, seq), max(high, seq))
        elif part.kind == READ:
            read[part.key] = None
        elif part.kind == EXPIRED:
            changed.add(part.key[0])
    return ResolvedPush(PushPage(saved, list(read), changed, newest_at), len(given))
    yield  # makes it a script; what it needs is in the parts
