"""Instances that use this database: one row each, renewed while the instance lives and removed when it stops.

An instance that is silent on the bus while its row is still renewed may commit messages: by its row the other instances
know that they must look for them in the database. Times are the database's.
"""

from __future__ import annotations

from nexo.errors import NexoError
from nexo.ports import InstanceRow, InstancesSeen
from nexo.store.database import Database
from nexo.store.engine import NOW, Conflict, Script, StoreError, do
from nexo.store.engine import rows as query

FORGET_S = 600  # rows of instances that were killed are removed after this time

_COLUMNS = "instance_id,place,is_worker,on_bus,secret_digest,started_at,seen_at"


def announce(own: InstanceRow) -> Script[InstancesSeen]:
    """Write the instance's own row; returns the rows of all other instances."""
    now_ms = yield NOW
    yield do("UPDATE instances SET on_bus=?,seen_at=? WHERE instance_id=?", int(own.on_bus), now_ms, own.instance_id)
    found = yield query(f"SELECT {_COLUMNS} FROM instances")
    started_at = now_ms
    others: list[InstanceRow] = []
    for instance_id, place, is_worker, on_bus, secret_digest, started, seen_at in found:
        if instance_id == own.instance_id:
            started_at = started
        else:
            age_ms = max(0, now_ms - seen_at)
            others.append(
                InstanceRow(instance_id, place, bool(is_worker), bool(on_bus), secret_digest, started, age_ms)
            )
    if len(others) == len(found):
        yield do(
            f"INSERT INTO instances ({_COLUMNS}) VALUES (?,?,?,?,?,?,?)",
            own.instance_id,
            own.place,
            int(own.is_worker),
            int(own.on_bus),
            own.secret_digest,
            started_at,
            now_ms,
        )
    if any(other.age_ms > FORGET_S * 1000 for other in others):
        yield do("DELETE FROM instances WHERE seen_at<?", now_ms - FORGET_S * 1000)
    return InstancesSeen(now_ms, started_at, others)


def leave(instance_id: str) -> Script[None]:
    yield do("DELETE FROM instances WHERE instance_id=?", instance_id)


class SqlInstances:
    """`ports.InstanceStore`. One attempt per call: the caller announces again soon, and waiting would hide that the
    database is unreachable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def committed_at(self) -> float:
        return self._database.engine.committed_at

    async def announce(self, own: InstanceRow) -> InstancesSeen:
        try:
            return await self._database.engine.write_once(lambda: announce(own))
        except Conflict:  # the same row twice: an attempt whose answer was lost
            raise NexoError("server_busy") from None
        except StoreError as error:
            raise NexoError("server_busy", str(error)) from error

    async def leave(self, instance_id: str) -> None:
        try:
            await self._database.engine.write_once(lambda: leave(instance_id))
        except StoreError as error:
            raise NexoError("server_busy", str(error)) from error
