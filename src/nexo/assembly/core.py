"""The message core: the store and the services on it, before any socket."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from msgspec import Struct

from nexo.background import Background
from nexo.config import Config, StoreUrl, resolve_store_url
from nexo.delivery.reaction_events import ReactionEvents
from nexo.errors import Unavailable
from nexo.service.conversations import Conversations
from nexo.service.filter import FilterFile
from nexo.service.forwarding import Forwarding
from nexo.service.groups import Groups
from nexo.service.message_changes import MessageChanges
from nexo.service.receipts import Acknowledging
from nexo.service.send import Sending
from nexo.store.failures import startup_errors
from nexo.store.schema_version import ensure_current
from nexo.store.store import Store

log = structlog.get_logger()

LOG_AGAIN_S = 5.0
PAUSE_S = 0.5
ATTEMPT_S = 20.0  # a server that takes the connection and does not answer
READS_PER_THREAD = 8  # of SQLite; with one each, 1,000 clients that return cost 25 % more CPU time


class Core(Struct, frozen=True):
    config: Config
    store: Store
    words: FilterFile
    sending: Sending
    acknowledging: Acknowledging
    conversations: Conversations
    groups: Groups
    changes: MessageChanges
    forwarding: Forwarding
    reaction_events: ReactionEvents  # not started


@asynccontextmanager
async def open_core(
    config: Config, background: Background, *, awaits: Callable[[str], None] | None = None
) -> AsyncIterator[Core]:
    """Open the store and the services on it. The embedded default brings its own schema up to date; a server
    database must have been migrated. With `awaits`, a database server that is away is waited for, and the reason
    reported to it."""
    words = FilterFile(Path(config.filter.file) if config.filter.file else None, config.filter.mode)
    store = await (_open_when_there(config, background, awaits) if awaits else _open(config, background))
    try:
        groups = Groups(store.groups, config)
        sending = Sending(store.messages, words, config.send.deadline_ms / 1000, foreign_urls=config.files.foreign_urls)
        reaction_events = ReactionEvents(store.message_changes)
        store.message_changes.writer.on_reacted = reaction_events.note
        yield Core(
            config=config,
            store=store,
            words=words,
            sending=sending,
            acknowledging=Acknowledging(store.messages, store.conversations),
            conversations=Conversations(store.messages, store.conversations, groups, _reads_at_once(config, store.url)),
            groups=groups,
            changes=MessageChanges(store.messages, store.message_changes, sending),
            forwarding=Forwarding(store.message_changes, sending),
            reaction_events=reaction_events,
        )
    finally:
        await store.close()


async def _open(config: Config, background: Background) -> Store:
    url = resolve_store_url(config)
    with startup_errors(url):
        await ensure_current(url, config)
        store = Store(config, background, url)
        await store.open()
    return store


async def _open_when_there(config: Config, background: Background, awaits: Callable[[str], None]) -> Store:
    """Open the store, as soon as its database server answers. Raises Unavailable after `store.start_wait_s`, and
    StartupError at once for what does not pass by waiting."""
    url = resolve_store_url(config)
    if url.is_embedded:
        return await _open(config, background)
    started, logged_at = time.monotonic(), -math.inf
    while True:
        try:
            with startup_errors(url):
                async with asyncio.timeout(ATTEMPT_S):
                    store = await _open(config, background)
        except Unavailable as error:
            now = time.monotonic()
            awaits(f"The server starts, and waits for the database: {error}")
            if now - logged_at >= LOG_AGAIN_S:
                logged_at = now
                log.warning("database_awaited", reason=str(error), waited_s=round(now - started))
            if 0 < config.store.start_wait_s < now - started:
                raise
            await asyncio.sleep(PAUSE_S)
        else:
            if logged_at > 0:
                log.info("database_found", waited_s=round(time.monotonic() - started))
            return store


def _reads_at_once(config: Config, url: StoreUrl) -> int:
    """Returns how many pages are read at a time: a few for each thread that reads SQLite, so that none sleeps between
    two of them; for a server half of the connections."""
    return config.store.reader_threads * READS_PER_THREAD if url.is_embedded else max(1, config.store.pool_size // 2)
