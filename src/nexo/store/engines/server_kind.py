"""What the kinds of database servers share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import msgspec

from nexo.config import Config, StoreUrl
from nexo.store.engine import Engine, Script, rows
from nexo.store.engines import advice
from nexo.store.engines.hosts import Place
from nexo.store.engines.kind import EngineKind
from nexo.store.engines.server import Driver, ServerEngine
from nexo.store.engines.transfer_connection import Row


class ServerKind(EngineKind):
    unreachable_advice = advice.UNREACHABLE
    # a statement before the first one of a transaction that SQLAlchemy has begun
    begin_snapshot = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    begin_repair = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

    @abstractmethod
    async def connect_plain(self, url: StoreUrl) -> Any:
        """Returns a connection of the driver to the host that is the primary, for SQLAlchemy."""

    @abstractmethod
    def make_driver(self, url: StoreUrl, pool_size: int, lock_timeout_ms: int) -> Driver: ...

    def make_engine(self, url: StoreUrl, config: Config) -> Engine:
        store = config.store
        driver = self.make_driver(url, store.pool_size, store.lock_timeout_ms)
        return ServerEngine(driver, store.lock_timeout_ms)

    def make_database(self, url: StoreUrl) -> None:
        pass

    async def read_once(self, url: StoreUrl, config: Config, sql: str) -> list[Row]:
        modest = msgspec.structs.replace(config, store=msgspec.structs.replace(config.store, pool_size=1))
        engine = self.make_engine(url, modest)

        def ask() -> Script[list[Row]]:
            return [tuple(row) for row in (yield rows(sql))]

        try:
            await engine.start()
            return await engine.read(ask)
        finally:
            await engine.stop()

    def sqlalchemy_target(self, url: StoreUrl) -> dict[str, Any]:
        return {
            "username": url.user or None,
            "password": url.password or None,
            "host": url.host or None,
            "port": url.port,
            "database": url.database,
            "query": url.params,
        }


def connect_options(url: StoreUrl) -> dict[str, Any]:
    """Returns what a driver is given to connect, besides a host; its own defaults hold for what the URL leaves out."""
    parts = {"user": url.user, "password": url.password, "database": url.database}
    return {name: value for name, value in parts.items() if value} | url.params


def place_options(place: Place) -> dict[str, Any]:
    """Returns the host for a driver; nothing where its socket file is among the options."""
    host, port = place
    return {"host": host, "port": port} if host else {"port": port}
