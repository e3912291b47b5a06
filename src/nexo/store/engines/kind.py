"""What the store needs of an engine. Each engine implements it in its own package.

Code outside this folder asks for a capability and never for an engine's name; a test looks for comparisons.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nexo.config import Config, StoreUrl
from nexo.store.batch import HotSql
from nexo.store.engine import Engine
from nexo.store.engines.database_files import DatabaseFiles, DumpCommands
from nexo.store.engines.index_file import IndexFile
from nexo.store.engines.transfer_connection import Row, TransferConnection
from nexo.store.sql import Sql


class EngineKind(ABC):
    """One kind of database: how Nexo opens it, talks to it, migrates it, checks it and explains its failures."""

    sql: Sql
    driver_errors: tuple[type[Exception], ...]  # besides OSError
    unreachable_advice: str  # what to do when the operating system refuses the connection or the file

    # for cold work through SQLAlchemy
    sqlalchemy_driver: str
    sqlalchemy_options: Mapping[str, Any] = MappingProxyType({})  # for its driver's connect
    migration_lock: str  # a statement: processes that start together migrate one after the other
    begin_snapshot: str  # a statement: what follows on this connection is read as it is now
    begin_repair: str  # a statement: what follows sees what was committed before each lock was taken
    needs_analyze: bool  # plans of `nexo check` are slow by orders of magnitude until tables were analyzed

    files: DatabaseFiles | None = None  # of a database that is a file

    commits_visible_early = False  # readers may see a commit before it is on the disk

    @abstractmethod
    def make_engine(self, url: StoreUrl, config: Config) -> Engine:
        """Returns an engine that is not started yet."""

    @abstractmethod
    def make_hot_sql(self) -> HotSql: ...

    @abstractmethod
    def make_database(self, url: StoreUrl) -> None:
        """Create what the database needs to be opened. That of a server is created by its administrator."""

    @abstractmethod
    async def read_once(self, url: StoreUrl, config: Config, sql: str) -> list[Row]:
        """Returns the rows of one query, and changes nothing: no file is made, no pool stays open."""

    @abstractmethod
    def sqlalchemy_target(self, url: StoreUrl) -> dict[str, Any]:
        """Returns the database as the parts of a SQLAlchemy URL."""

    @abstractmethod
    def advice_on(self, error: BaseException, url: StoreUrl) -> str:
        """Returns the next step after an error of the driver, for the operator; empty when none is known."""

    @abstractmethod
    def is_passing(self, error: BaseException) -> bool:
        """Whether an error of the driver may be gone at the next attempt."""

    @abstractmethod
    async def connect_source(self, url: StoreUrl) -> TransferConnection:
        """Returns a connection for reading everything, in no transaction yet."""

    @abstractmethod
    async def connect_target(self, url: StoreUrl) -> TransferConnection:
        """Returns a connection for writing everything, in no transaction yet."""

    def make_index_file(self, url: StoreUrl) -> IndexFile | None:
        """Returns the index of search in a file beside the database, not open; None where it is in the database."""
        return None

    def dump_commands(self, url: StoreUrl) -> DumpCommands | None:
        """Returns how a server's own tools back a database up; None for one that is a file."""
        return None
