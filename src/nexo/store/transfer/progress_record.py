"""How far a transfer got, kept in the target itself and committed together with the rows of each batch.

During a transfer the target has a schema revision that no server accepts, so that no client is served
from half a store. A target is accepted only if it is empty or holds the unfinished beginning of the same transfer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.ids import now_ms
from nexo.store import migrate, schema
from nexo.store.engines.transfer_connection import Row, TransferConnection
from nexo.store.schema_version import newest
from nexo.store.transfer.connections import open_source, transaction

TABLE = "nexo_transfer"
_CREATE = (
    f"CREATE TABLE {TABLE} (id INTEGER NOT NULL PRIMARY KEY, kind VARCHAR(32) NOT NULL, source VARCHAR(1000) NOT NULL, "
    "fingerprint VARCHAR(64) NOT NULL, revision VARCHAR(32) NOT NULL, stage VARCHAR(64) NOT NULL, "
    "position VARCHAR(1000) NOT NULL, started_at BIGINT NOT NULL)"
)
SEARCH = ("search_state", "search_docs", "search_terms", "search_units", "search_media")  # built again by a server
NOT_COPIED = {
    "journal",
    "journal_consumers",
    "journal_state",
    "instances",
    "exports",
    "export_parts",
    "openim_versions",
    *SEARCH,
}
# what a server leaves that had nothing to do
_UNIMPORTANT = ("node_leases", "journal_consumers", "journal_state", "instances", *SEARCH)
_FIELDS = ("id", "kind", "source", "fingerprint", "revision", "stage", "position", "started_at")


class TransferRefused(Exception):
    """A transfer that must not be made; the text has the reason and the next step."""


class TransferRecord:
    """The position of one transfer. `stage` is where it is, `position` how far within that."""

    def __init__(self, connection: TransferConnection, url: StoreUrl, kind: str, source: str) -> None:
        self._connection = connection
        self._url = url
        self._kind = kind
        self._source = source
        self.stage = ""
        self.position: list[Any] | None = None
        self.resumed = False

    async def open(self, fingerprint: str, *, restart: bool = False) -> None:
        """Take the target, or raise TransferRefused. `fingerprint` is that of the source in its present state."""
        await self.lock()
        if await self._connection.columns(TABLE):
            found = await self._connection.read(f"SELECT {','.join(_FIELDS[1:7])} FROM {TABLE}")
            if found and restart:
                await self._empty()
            elif found:
                self._resume(found[0], fingerprint)
                return
            else:
                await self._connection.do(f"DROP TABLE {TABLE}")
        await self._check_free()
        await self._begin(fingerprint)

    async def lock(self) -> None:
        """Refuse a second transfer to the same target while this connection is open."""
        if not await self._connection.lock_transfers():
            raise TransferRefused(f"another transfer is writing to {self._url.redacted()}: wait for its end")

    def _resume(self, found: Sequence[Any], fingerprint: str) -> None:
        kind, source, old_fingerprint, revision, stage, position = found
        name = self._url.redacted()
        if kind != self._kind or source != self._source:
            raise TransferRefused(
                f"the database {name} holds an unfinished {kind} from {source}: finish that with its own command, "
                "or add --restart to empty it and begin this one"
            )
        if revision != newest():
            raise TransferRefused(
                f"the transfer to {name} was begun by another version of Nexo (schema {revision}): finish it with "
                "that version, or begin anew with an empty database"
            )
        if old_fingerprint != fingerprint:
            raise TransferRefused(
                f"the source {source} has changed since the transfer to {name} began, so what is there no longer "
                "fits: add --restart to empty the target and begin again, and keep servers off the source"
            )
        self.stage = stage
        self.position = json.loads(position) if position else None
        self.resumed = True

    async def _check_free(self) -> None:
        if not await self._connection.columns("alembic_version"):
            if any([await self._connection.columns(name) for name in schema.metadata.tables]):
                raise TransferRefused(
                    f"the database {self._url.redacted()} has tables that Nexo did not make: use an empty database"
                )
            await migrate.upgrade(self._url)
        await migrate.check_current(self._url)
        for name in schema.metadata.tables:
            if name not in _UNIMPORTANT and await self._connection.read(f"SELECT 1 FROM {name} LIMIT 1"):
                raise TransferRefused(
                    f"the database {self._url.redacted()} is not empty (there are rows in {name}) and no unfinished "
                    f"{self._kind} from {self._source}: use an empty database"
                )

    async def _begin(self, fingerprint: str) -> None:
        await self._connection.do(_CREATE)
        async with transaction(self._connection):
            values = (1, self._kind, self._source, fingerprint, newest(), "", "", now_ms())
            await self._connection.insert(TABLE, _FIELDS, [values])
            for name in _UNIMPORTANT:
                await self._connection.do(f"DELETE FROM {name}")
            await self._connection.do("UPDATE alembic_version SET version_num=?", migrate.HALF_DONE)

    async def _empty(self) -> None:
        """Delete what an unfinished transfer left. Its record is deleted last, and fits no source from now on: after a
        kill in between only another --restart continues."""
        await self._connection.do(f"UPDATE {TABLE} SET fingerprint=''")
        for name in schema.metadata.tables:
            await self._connection.empty(name)
        await self._restore_revision()
        await self._connection.do(f"DROP TABLE {TABLE}")

    async def _restore_revision(self) -> None:
        ((revision,),) = await self._connection.read(f"SELECT revision FROM {TABLE}")
        await self._connection.do("UPDATE alembic_version SET version_num=?", revision)

    async def write(self, stage: str, position: Sequence[Any] | None) -> None:
        """Note how far the transfer is, inside the transaction that writes those rows."""
        self.stage, self.position = stage, None if position is None else list(position)
        text = "" if position is None else json.dumps(self.position)
        await self._connection.do(f"UPDATE {TABLE} SET stage=?,position=?", stage, text)

    async def close(self) -> None:
        """Release the target after the transfer is complete and compared: servers may use it now."""
        async with transaction(self._connection):
            await self._restore_revision()
            await self._connection.do(f"DELETE FROM {TABLE}")
        await self._connection.do(f"DROP TABLE {TABLE}")


async def read_leases(connection: TransferConnection, url: StoreUrl) -> list[Row]:
    """Returns the leases of the store's servers. Raises TransferRefused while one of them runs: what it writes after
    its table was copied would be missing."""
    found = await connection.read("SELECT node,holder,expires_at,last_ms FROM node_leases ORDER BY node")
    ((now,),) = await connection.read(f"SELECT {connection.sql.clock_ms}")
    live = [expires_at - now for _, _, expires_at, _ in found if expires_at > now]
    if live:
        raise TransferRefused(
            f"{url.redacted()} is in use (servers: {len(live)}): stop every server first "
            f"(after a crash its lease ends by itself, in {max(live) // 1000 + 1} s)"
        )
    return found


async def check_source_unused(url: StoreUrl, before: list[Row]) -> None:
    """Raise TransferRefused if a server has used the source meanwhile: a look outside the snapshot."""
    async with open_source(url) as connection:
        if await read_leases(connection, url) != before:
            raise TransferRefused(
                f"a server ran on {url.redacted()} while it was copied, and what it wrote is missing: stop every "
                "server and run the same command with --restart"
            )


async def check_schema(url: StoreUrl, connection: TransferConnection) -> None:
    """Raise StartupError unless the source is a store of this version; `migrate.current` would open it for writing."""
    name = url.redacted()
    found: list[Any] = []
    if await connection.columns("alembic_version"):
        found = await connection.read("SELECT version_num FROM alembic_version")
    revision = found[0][0] if found else None
    if revision is None:
        raise StartupError(f"the database {name} is no Nexo store: it has no schema")
    migrate.check_known(url, revision)
    if revision != newest():
        raise StartupError(
            f"the database {name} is at revision {revision}, this version of Nexo needs {newest()}: "
            "run `nexo migrate` on it first (with store.url, or NEXO_STORE__URL, set to it)"
        )
