"""Every engine that Nexo knows."""

from __future__ import annotations

from importlib import import_module

from nexo.config import EngineName, StoreUrl
from nexo.store.engines.kind import EngineKind

_MODULES: dict[EngineName, str] = {
    "sqlite": "nexo.store.engines.sqlite.kind",
    "mysql": "nexo.store.engines.mysql.kind",
    "postgresql": "nexo.store.engines.postgres.kind",
}


def engine_kind(url: StoreUrl) -> EngineKind:
    """Returns the kind of engine that a database has. Its module is loaded by name when it is first asked for:
    asyncpg and asyncmy take a tenth of the time in which a server starts, and the embedded default needs neither."""
    kind: EngineKind = import_module(_MODULES[url.engine]).KIND
    return kind
