"""Whether a database has the schema this version needs.

Usually it has. That is found out here without SQLAlchemy and Alembic, which take as long to load as everything
else that a server needs; `store/migrate.py` and they come in only where there is something to do or to explain.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path

import msgspec

from nexo.config import Config, StoreUrl
from nexo.store import migrations
from nexo.store.database import make_engine
from nexo.store.engine import Script, rows

_QUESTION = "SELECT version_num FROM alembic_version"


def newest() -> str:
    """The revision this version of Nexo works with: migrations are numbered, and files named after them."""
    return max(path.name.partition("_")[0] for path in Path(migrations.__path__[0], "versions").glob("[0-9]*.py"))


async def ensure_current(url: StoreUrl, config: Config) -> None:
    """The embedded default is brought up to date; a server database must have been, or StartupError says how."""
    if await _is_current(url, config):
        return
    migrate = import_module("nexo.store.migrate")
    if url.engine == "sqlite":
        await migrate.upgrade(url)
    else:
        await migrate.check_current(url)


async def _is_current(url: StoreUrl, config: Config) -> bool:
    try:
        if url.engine == "sqlite":
            found = await asyncio.to_thread(_look_into_file, url.path)
        else:
            found = await _ask_server(url, config)
    except Exception:  # whatever it is, the long way meets it again and can tell
        return False
    return found == [newest()]


def _look_into_file(path: Path) -> list[str]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return [revision for (revision,) in connection.execute(_QUESTION)]


async def _ask_server(url: StoreUrl, config: Config) -> list[str]:
    modest = msgspec.structs.replace(config, store=msgspec.structs.replace(config.store, pool_size=1))
    engine = make_engine(url, modest)

    def ask() -> Script[list[str]]:
        return [row[0] for row in (yield rows(_QUESTION))]

    try:
        await engine.start()
        return await engine.read(ask)
    finally:
        await engine.stop()
