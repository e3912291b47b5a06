"""Reading a journal in tests."""

from __future__ import annotations

import asyncio

from harness.core import look
from nexo.assembly.core import Core
from nexo.core.journal import JournalEntry, Place
from nexo.core.model import Message

BEGINNING = Place(0, 0)


async def read_all(core: Core, place: Place = BEGINNING, limit: int = 256) -> list[JournalEntry]:
    """Return all that can be read from a place on, page by page; a fresh hole is waited for."""
    found: list[JournalEntry] = []
    while True:
        page = await core.store.journal.page(place, limit)
        found += page.entries
        if page.place == place:
            if not page.is_waiting:
                return found
            await asyncio.sleep(0.02)
        place = page.place


def types_of(entries: list[JournalEntry]) -> list[str]:
    return [entry.type for entry in entries]


def seqs_of(entries: list[JournalEntry]) -> list[tuple[str, int]]:
    """Return conversation and seq of the messages among them."""
    return [(entry.data.conversation_id, entry.data.seq) for entry in entries if isinstance(entry.data, Message)]


async def rows_of(core: Core) -> list[tuple[int, str]]:
    return [(row[0], row[1]) for row in await look(core, "SELECT id,entries FROM journal ORDER BY id")]
