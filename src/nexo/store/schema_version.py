"""Whether a database has the schema this version needs.

Usually it has. This module asks without SQLAlchemy and Alembic, which take as long to load as everything else
that a server needs; `store/migrate.py` and they are loaded only where there is something to do or to explain.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from nexo.config import Config, StoreUrl
from nexo.store import migrations
from nexo.store.engines.registry import engine_kind

_QUESTION = "SELECT version_num FROM alembic_version"


def newest() -> str:
    """Returns the revision this version of Nexo works with: migrations are numbered, and files named after them."""
    return max(path.name.partition("_")[0] for path in Path(migrations.__path__[0], "versions").glob("[0-9]*.py"))


async def ensure_current(url: StoreUrl, config: Config) -> None:
    """Migrate the embedded default; for a server database that was not migrated, raise a StartupError."""
    if await _is_current(url, config):
        return
    migrate = import_module("nexo.store.migrate")
    if url.is_embedded:
        await migrate.upgrade(url)
    else:
        await migrate.check_current(url)


async def read_version(url: StoreUrl, config: Config) -> str | None:
    """Returns the revision of a database that has one. Raises what its driver raises."""
    found = await engine_kind(url).read_once(url, config, _QUESTION)
    return found[0][0] if found else None


async def _is_current(url: StoreUrl, config: Config) -> bool:
    try:
        return await read_version(url, config) == newest()
    except Exception:  # migrate.py meets the same failure again and can explain it
        return False
