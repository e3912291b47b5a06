"""The database of the commands that work on one directly, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nexo.background import Background
from nexo.config import Config, resolve_store_url
from nexo.store.data_folder import check_database_exists
from nexo.store.database import Database
from nexo.store.failures import startup_errors
from nexo.store.schema_version import ensure_current


@asynccontextmanager
async def opened(config: Config, *, create: bool = False) -> AsyncIterator[Database]:
    """Yields an open database of the newest schema. The embedded one is migrated first, and made only if `create`
    is set."""
    url = resolve_store_url(config)
    if not create:
        check_database_exists(url)
    database = Database(url, config, Background())
    with startup_errors(url):
        await ensure_current(url, config)
        await database.open()
    try:
        yield database
    finally:
        await database.close()
