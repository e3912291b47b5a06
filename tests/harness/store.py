"""An open database for a test, with the settings it names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nexo.background import Background
from nexo.config import Config, load, resolve_store_url
from nexo.store import migrate
from nexo.store.database import Database

# A password costs microseconds instead of the tens of milliseconds it must cost in earnest.
CHEAP_PASSWORDS = {"auth.argon2_memory_kib": 8, "auth.argon2_time_cost": 1}


def make_config(store_url: str = "", **settings: object) -> Config:
    """`make_config(url, auth__refresh_grace_s=0)` sets auth.refresh_grace_s; nothing comes from outside."""
    flags = CHEAP_PASSWORDS | {name.replace("__", "."): value for name, value in settings.items()}
    return load(env={}, flags={"store.url": store_url or None, **flags})


@asynccontextmanager
async def open_database(store_url: str, **settings: object) -> AsyncIterator[Database]:
    """A database of the newest schema, closed at the end."""
    config = make_config(store_url, **settings)
    url = resolve_store_url(config)
    await migrate.upgrade(url)
    database = Database(url, config, Background())
    await database.open()
    try:
        yield database
    finally:
        await database.close()
