"""A process that consumes the journal: `python journal_reader.py URL`.

It says READY when its store is open, and `SAW conversation_id seq server_msg_id` for every message and event that it is
given, a page in one piece, before it returns from the page.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

import uvloop

from nexo.background import Background
from nexo.config import load
from nexo.core.journal import JournalEntry
from nexo.core.model import Message
from nexo.journal.consumer import Consumer
from nexo.journal.journal import Journal
from nexo.store.store import Store

NAME = "reader"


async def note(entries: Sequence[JournalEntry]) -> None:
    lines = [
        f"SAW {entry.data.conversation_id} {entry.data.seq} {entry.data.server_msg_id}\n"
        for entry in entries
        if isinstance(entry.data, Message)
    ]
    os.write(1, "".join(lines).encode())


async def main(url: str) -> None:
    config = load(env={}, flags={"store.url": url, "journal.takeover_s": 1, "journal.poll_ms": 20})
    background = Background()
    store = Store(config, background)
    await store.open()
    journal = Journal(store.journal, config, background, f"reader{os.getpid()}")
    journal.add(Consumer(NAME, note, from_now=False))
    os.write(1, b"READY\n")
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
