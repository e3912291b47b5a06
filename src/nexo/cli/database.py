"""The database of the commands that work on one directly, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nexo.config import Config, resolve_store_url
from nexo.errors import StartupError
from nexo.store.current import ensure_current
from nexo.store.database import Database
from nexo.store.failures import telling_failures


@asynccontextmanager
async def opened(config: Config, *, create: bool = False) -> AsyncIterator[Database]:
    """An open database of the newest schema. The embedded one is brought up to date on the way, and made
    only if `create` is set: a mistyped folder must not become an empty database."""
    url = resolve_store_url(config)
    if url.engine == "sqlite" and not create and not url.path.exists():
        raise StartupError(f"there is no database at {url.path}: is data.dir or store.url right?")
    database = Database(url, config)
    with telling_failures(url):
        await ensure_current(url, config)
        await database.open()
    try:
        yield database
    finally:
        await database.close()
