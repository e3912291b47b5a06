"""How far a transfer got, kept in the target itself and written with the rows it tells of.

While a transfer is under way the target has a schema revision that no server accepts: nobody can be served
from half a store. A target is taken only if it is empty or holds the unfinished beginning of the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.ids import now_ms
from nexo.store import migrate, schema
from nexo.store.current import newest
from nexo.store.transfer.links import Link, Row, source_link, transaction

TABLE = "nexo_transfer"
_CREATE = (
    f"CREATE TABLE {TABLE} (id INTEGER NOT NULL PRIMARY KEY, kind VARCHAR(32) NOT NULL, source VARCHAR(1000) NOT NULL, "
    "fingerprint VARCHAR(64) NOT NULL, revision VARCHAR(32) NOT NULL, stage VARCHAR(64) NOT NULL, "
    "position VARCHAR(1000) NOT NULL, started_at BIGINT NOT NULL)"
)
_FIELDS = ("id", "kind", "source", "fingerprint", "revision", "stage", "position", "started_at")

_LOCKS = {
    "mysql": "SELECT GET_LOCK(CONCAT('nexo_transfer ',DATABASE()),0)",
    "postgresql": "SELECT pg_try_advisory_lock(1852143732)",
}


class Refused(Exception):
    """The command was understood, and the answer is no; the text says why and what to do."""


class Record:
    """The position of one transfer. `stage` is where it is, `position` how far within that."""

    def __init__(self, link: Link, url: StoreUrl, kind: str, source: str) -> None:
        self._link = link
        self._url = url
        self._kind = kind
        self._source = source
        self.stage = ""
        self.position: list[Any] | None = None
        self.resumed = False

    async def open(self, fingerprint: str, *, restart: bool = False) -> None:
        """Take the target, or refuse it. `fingerprint` tells one source, in one state, from all others."""
        await self.lock()
        if await self._link.columns(TABLE):
            found = await self._link.read(f"SELECT {','.join(_FIELDS[1:7])} FROM {TABLE}")
            if found and restart:
                await self._empty()
            elif found:
                self._resume(found[0], fingerprint)
                return
            else:
                await self._link.do(f"DROP TABLE {TABLE}")
        await self._check_free()
        await self._begin(fingerprint)

    async def lock(self) -> None:
        """One transfer at a time, while this connection lives; the folder of an embedded database is locked."""
        statement = _LOCKS.get(self._link.engine)
        if statement is not None and not (await self._link.read(statement))[0][0]:
            raise Refused(f"another transfer is writing to {self._url.redacted()}: wait for its end")

    def _resume(self, found: Sequence[Any], fingerprint: str) -> None:
        kind, source, old_fingerprint, revision, stage, position = found
        name = self._url.redacted()
        if kind != self._kind or source != self._source:
            raise Refused(
                f"the database {name} holds an unfinished {kind} from {source}: finish that with its own command, "
                "or add --restart to empty it and begin this one"
            )
        if revision != newest():
            raise Refused(
                f"the transfer to {name} was begun by another version of Nexo (schema {revision}): finish it with "
                "that version, or begin anew with an empty database"
            )
        if old_fingerprint != fingerprint:
            raise Refused(
                f"the source {source} has changed since the transfer to {name} began, so what is there no longer "
                "fits: add --restart to empty the target and begin again, and keep servers off the source"
            )
        self.stage = stage
        self.position = json.loads(position) if position else None
        self.resumed = True

    async def _check_free(self) -> None:
        if not await self._link.columns("alembic_version"):
            if any([await self._link.columns(name) for name in schema.metadata.tables]):
                raise Refused(
                    f"the database {self._url.redacted()} has tables that Nexo did not make: use an empty database"
                )
            await migrate.upgrade(self._url)
        await migrate.check_current(self._url)
        for name in schema.metadata.tables:
            if name != "node_leases" and await self._link.read(f"SELECT 1 FROM {name} LIMIT 1"):
                raise Refused(
                    f"the database {self._url.redacted()} is not empty (there are rows in {name}) and no unfinished "
                    f"{self._kind} from {self._source}: use an empty database"
                )

    async def _begin(self, fingerprint: str) -> None:
        await self._link.do(_CREATE)
        async with transaction(self._link):
            values = (1, self._kind, self._source, fingerprint, newest(), "", "", now_ms())
            await self._link.insert(TABLE, _FIELDS, [values])
            await self._link.do("DELETE FROM node_leases")
            await self._link.do("UPDATE alembic_version SET version_num=?", migrate.HALF_DONE)

    async def _empty(self) -> None:
        """What an unfinished transfer left. Its record goes last, and fits no source from now on: killed here,
        only another --restart goes on."""
        await self._link.do(f"UPDATE {TABLE} SET fingerprint=''")
        for name in schema.metadata.tables:
            await self._link.do(f"DELETE FROM {name}" if self._link.engine == "sqlite" else f"TRUNCATE TABLE {name}")
        await self._restore_revision()
        await self._link.do(f"DROP TABLE {TABLE}")

    async def _restore_revision(self) -> None:
        ((revision,),) = await self._link.read(f"SELECT revision FROM {TABLE}")
        await self._link.do("UPDATE alembic_version SET version_num=?", revision)

    async def write(self, stage: str, position: Sequence[Any] | None) -> None:
        """Inside the transaction that writes what it tells of."""
        self.stage, self.position = stage, None if position is None else list(position)
        text = "" if position is None else json.dumps(self.position)
        await self._link.do(f"UPDATE {TABLE} SET stage=?,position=?", stage, text)

    async def close(self) -> None:
        """The transfer is complete and proven: from here on the target is a store like any other."""
        async with transaction(self._link):
            await self._restore_revision()
            await self._link.do(f"DELETE FROM {TABLE}")
        await self._link.do(f"DROP TABLE {TABLE}")


async def read_leases(link: Link, url: StoreUrl) -> list[Row]:
    """Who used the store last. No server may be writing: what changes after it was copied would be missing."""
    found = await link.read("SELECT node,holder,expires_at,last_ms FROM node_leases ORDER BY node")
    ((now,),) = await link.read(f"SELECT {link.clock_ms}")
    live = [expires_at - now for _, _, expires_at, _ in found if expires_at > now]
    if live:
        raise Refused(
            f"{url.redacted()} is in use (servers: {len(live)}): stop every server first "
            f"(after a crash its lease ends by itself, in {max(live) // 1000 + 1} s)"
        )
    return found


async def check_source_unused(url: StoreUrl, before: list[Row]) -> None:
    """Nobody has served from it since: a look outside the snapshot."""
    async with source_link(url) as link:
        if await read_leases(link, url) != before:
            raise Refused(
                f"a server ran on {url.redacted()} while it was copied, and what it wrote is missing: stop every "
                "server and run the same command with --restart"
            )


async def check_schema(url: StoreUrl, link: Link) -> None:
    """The source must be a store of this version; `migrate.current` would open it for writing."""
    name = url.redacted()
    found: list[Any] = []
    if await link.columns("alembic_version"):
        found = await link.read("SELECT version_num FROM alembic_version")
    revision = found[0][0] if found else None
    if revision is None:
        raise StartupError(f"the database {name} is no Nexo store: it has no schema")
    migrate.check_known(url, revision)
    if revision != newest():
        raise StartupError(
            f"the database {name} is at revision {revision}, this version of Nexo needs {newest()}: "
            "run `nexo migrate` on it first (with store.url, or NEXO_STORE__URL, set to it)"
        )
