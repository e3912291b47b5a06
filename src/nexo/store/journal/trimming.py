"""Deletes the oldest rows in small steps, and stores the number of the last deleted row."""

from __future__ import annotations

from typing import NamedTuple

from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.journal.reading import TRIMMED, Hole
from nexo.store.sql import Sql

STEP = 500


class Trimmed(NamedTuple):
    rows: int
    hole: Hole | None  # to be closed before the next step


def trim(sql: Sql, older_than_ms: int, step: int = STEP) -> Script[Trimmed]:
    """Delete the oldest rows that are older than this. The newest row stays: SQLite would use its number again."""
    yield do(sql.insert_ignore("journal_state", ("id", "trimmed_to"), ("id",)), TRIMMED, 0)
    ((trimmed,),) = yield query(f"SELECT trimmed_to FROM journal_state WHERE id=?{sql.for_update}", TRIMMED)
    now_ms = yield NOW
    found = yield query(f"SELECT id,at FROM journal WHERE id>? ORDER BY id LIMIT {step + 1}", trimmed)
    end = trimmed
    for number, at in found[:-1]:
        if at >= now_ms - older_than_ms:
            break
        if number != end + 1:
            if end == trimmed:
                return Trimmed(0, Hole(end + 1, number - 1, now_ms - at))
            break
        end = number
    if end > trimmed:
        yield do("DELETE FROM journal WHERE id<=?", end)
        yield do("UPDATE journal_state SET trimmed_to=? WHERE id=?", end, TRIMMED)
    return Trimmed(end - trimmed, None)
