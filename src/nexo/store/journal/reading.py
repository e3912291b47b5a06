"""Reads rows of the journal in order, and never passes a number whose row may still be committed.

On a server numbers are given out before the commit: a row may become visible after rows with higher numbers, and a
transaction that is rolled back leaves a hole. A reader stops at a hole. It closes a hole that
stays by inserting an empty row with its number: if a transaction has inserted that number and not ended, the insert
waits for it and then finds its row or takes its place; if the transaction has not inserted it yet, it finds the number
taken and is tried again with another one. The pause before a hole is closed only avoids such second attempts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from nexo.core.journal import CHANGED, SAVED_TYPE, JournalEntry, Place
from nexo.errors import NexoError
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.journal.recent import RecentBatch, RecentBatches, is_entry
from nexo.store.journal.writing import EMPTY
from nexo.store.sql import Sql

ROWS_AT_ONCE = 64
GRACE_MS = 200  # most transactions commit within this time
CLOSED_AT_ONCE = 100
SLOWEST_MS = 3_000  # a transaction takes less, from its time to its commit
IN_FLIGHT = 20_000  # rows: more than are written during the slowest transaction
TRIMMED = 1  # rows of journal_state
BEAT = 2

_decode = msgspec.json.Decoder(list[list[Any]]).decode


class Part(Struct, frozen=True, gc=False):
    """One message, event, account change or cursor that a row refers to."""

    row: int
    number: int  # within its row
    at: int
    kind: int
    key: tuple[Any, Any]


class Hole(NamedTuple):
    """Numbers without a row, below a row that is there."""

    first: int
    last: int
    age_ms: int  # at least

    @property
    def is_old(self) -> bool:
        return self.age_ms >= GRACE_MS

    @property
    def numbers(self) -> range:
        return range(self.first, min(self.last, self.first + CLOSED_AT_ONCE - 1) + 1)


class JournalScan(NamedTuple):
    found: list[Part | JournalEntry]  # entries: of messages in memory, which may have been changed since
    ids: tuple[int, int] | None  # of the messages in memory: the lowest and the highest
    end: Place  # the place after all of these
    has_more: bool
    hole: Hole | None


def scan(place: Place, limit: int, max_bytes: int, recent: RecentBatches | None) -> Script[JournalScan]:
    """Returns what follows a place, up to the first hole: parts, and entries where the messages are in memory."""
    found: list[Part | JournalEntry] = []
    size, first_id, last_id = 0, 1 << 63, 0
    row, done = place
    hole, has_more = None, False
    while not has_more and hole is None:
        rows = yield query(f"SELECT id,at,entries FROM journal WHERE id>? ORDER BY id LIMIT {ROWS_AT_ONCE}", row)
        for number, at, entries in rows:
            if number != row + 1:
                hole = yield from _hole(place, Place(row, done), number, at)
                break
            batch = recent.find(entries) if recent is not None else None
            if batch is not None and batch.size > max_bytes:
                batch = None  # too large for one page
            if batch is not None:
                size += batch.size
                first_id, last_id = min(first_id, batch.first_id), max(last_id, batch.last_id)
            if len(found) >= limit or (size > max_bytes and found):
                has_more = True
                break
            if batch is not None:
                found += _entries(batch, number, at, done, limit + 1 - len(found))
            else:
                _add_parts(found, number, at, _decode(entries), done, limit)
            if len(found) > limit:
                row, done = place_before(found[limit])
                del found[limit:]
                has_more = True
                break
            row, done = number, 0
        if len(rows) < ROWS_AT_ONCE:
            break
    return JournalScan(found, (first_id, last_id) if last_id else None, Place(row, done), has_more, hole)


def _entries(batch: RecentBatch, row: int, at: int, done: int, most: int) -> Iterable[Part | JournalEntry]:
    """Returns the entries of a batch in memory from a part on; a part for each message that is no entry as it is."""
    chosen = batch.messages[done : done + most] if done or len(batch.messages) > most else batch.messages
    if batch.is_plain:
        return [
            JournalEntry(f"{row}.{n}.0", SAVED_TYPE, at, message.conversation_id, message.sender_id, message)
            for n, (message, _, _, _) in enumerate(chosen, done)
        ]
    return [
        JournalEntry(f"{row}.{n}.0", SAVED_TYPE, at, one[0].conversation_id, one[0].sender_id, one[0])
        if is_entry(one)
        else Part(row, n, at, CHANGED, (one[1], one[0].seq))
        for n, one in enumerate(chosen, done)
    ]


def place_before(one: Part | JournalEntry) -> Place:
    """Returns the place after everything before this part, or before the part of this entry."""
    if isinstance(one, Part):
        return Place(one.row - 1, one.number)
    row, number, _ = one.event_id.split(".")
    return Place(int(row) - 1, int(number))


def _size(reference: list[Any]) -> int:
    return reference[3] - reference[2] + 1 if reference[0] == CHANGED else 1


def _add_parts(
    parts: list[Part | JournalEntry], row: int, at: int, references: list[list[Any]], done: int, limit: int
) -> None:
    """Add the parts of a row, without the first ones, which are done, and with at most one above the limit."""
    index = 0
    for reference in references:
        size = _size(reference)
        if index + size > done:
            kind, a, b = reference[:3]
            if kind == CHANGED:
                first = max(0, done - index)
                last = min(size, first + limit + 1 - len(parts))
                parts += [Part(row, index + n, at, CHANGED, (a, b + n)) for n in range(first, last)]
            else:
                parts.append(Part(row, index, at, kind, (a, b)))
            if len(parts) > limit:
                return
        index += size


def _hole(place: Place, end: Place, number: int, at: int) -> Script[Hole]:
    """Returns the hole before `number`. Raises cursor_expired if the missing rows were trimmed."""
    if end.row == place.row and place.row < (yield from trimmed_to()):
        raise NexoError("cursor_expired")
    return Hole(end.row + 1, number - 1, (yield NOW) - at)


def trimmed_to() -> Script[int]:
    """Returns the number of the last row that was trimmed."""
    found = yield query("SELECT trimmed_to FROM journal_state WHERE id=?", TRIMMED)
    return int(found[0][0]) if found else 0


def newest() -> Script[int]:
    """Returns the number of the newest visible row; 0 in a new journal."""
    ((number,),) = yield query("SELECT MAX(id) FROM journal")
    return number or 0


def place_at(at_ms: int) -> Script[Place]:
    """Returns a place before all rows that were written from this time on. Rows are nearly in the order of time: one
    transaction may take some seconds longer than another."""
    low, high = (yield from trimmed_to()), (yield from newest())
    while low < high:  # the first row that is not older is above `low`, and at most `high` + 1
        middle = (low + high + 1) // 2
        found = yield query("SELECT id,at FROM journal WHERE id>=? AND id<=? ORDER BY id LIMIT 1", middle, high)
        if not found or found[0][1] >= at_ms - SLOWEST_MS:
            high = middle - 1
        else:
            low = found[0][0]
    return Place(low, 0)


class Recent(NamedTuple):
    newest: int
    missing: list[int]  # lower numbers that a transaction in progress may hold


def recent() -> Script[Recent]:
    number = yield from newest()
    low = max((yield from trimmed_to()), number - IN_FLIGHT)
    found = yield query("SELECT id FROM journal WHERE id>? AND id<=?", low, number)
    present = {row[0] for row in found}
    return Recent(number, [missing for missing in range(low + 1, number) if missing not in present])


def close(sql: Sql, numbers: Sequence[int]) -> Script[int]:
    """Inserts empty rows for the numbers that have none. Returns how many. Ascending, to avoid deadlocks between
    readers."""
    now_ms = yield NOW
    insert = sql.insert_ignore("journal", ("id", "at", "entries"), ("id",), len(numbers))
    yield do(insert, *(value for number in numbers for value in (number, now_ms, EMPTY)))
    chosen = sql.one_of("id", numbers, "bigint")
    ((closed,),) = yield query(
        f"SELECT COUNT(*) FROM journal WHERE {chosen.sql} AND at=? AND entries=?", *chosen.params, now_ms, EMPTY
    )
    return int(closed)


def flush() -> Script[None]:
    """Commits a small row, which puts all rows read before it on the disk: the log is flushed in order. On MySQL and
    MariaDB a commit is visible before it is on the disk, and after a crash its number could be used for another row."""
    yield do(
        "INSERT INTO journal_state (id,beat) VALUES (?,1) ON DUPLICATE KEY UPDATE beat=beat+1",
        BEAT,
    )
