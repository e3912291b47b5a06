"""The composition root: the only place that knows which implementation is used for what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from nexo.config import Config, resolve_store_url
from nexo.service.conversations import Conversations
from nexo.service.filter import FilterFile
from nexo.service.groups import Groups
from nexo.service.receipts import Acknowledging
from nexo.service.send import Sending
from nexo.store import migrate
from nexo.store.committer import BatchStats
from nexo.store.stores import Store


class Core(Struct, frozen=True):
    """The message core: everything Nexo does, before any socket."""

    config: Config
    store: Store
    sending: Sending
    acknowledging: Acknowledging
    conversations: Conversations
    groups: Groups


@asynccontextmanager
async def open_core(config: Config, observe_batches: Callable[[BatchStats], None] | None = None) -> AsyncIterator[Core]:
    """Open the store and the services on it. The embedded default brings its own schema up to date; a
    server database must have been migrated."""
    url = resolve_store_url(config)
    if url.engine == "sqlite":
        await migrate.upgrade(url)
    else:
        await migrate.check_current(url)
    words = FilterFile(Path(config.filter.file) if config.filter.file else None, config.filter.mode)
    store = Store(config, url, observe_batches)
    await store.open()
    try:
        groups = Groups(store.groups, config)
        yield Core(
            config=config,
            store=store,
            sending=Sending(store.messages, words),
            acknowledging=Acknowledging(store.messages, store.conversations),
            conversations=Conversations(store.messages, store.conversations, groups),
            groups=groups,
        )
    finally:
        await store.close()
