"""The audit log as rows: only added, in the transaction of the act where there is one, and read."""

from __future__ import annotations

from typing import Any

import msgspec

from nexo.core.audit import AuditEntry
from nexo.store.database import Database
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def write(actor: str, act: str, target: str, detail: dict[str, Any]) -> Script[None]:
    yield do(
        "INSERT INTO audit_log (at,actor,act,target,detail) VALUES (?,?,?,?,?)",
        (yield NOW),
        actor,
        act,
        target,
        _encode(detail).decode(),
    )


def read(before: int, limit: int, target: str) -> Script[list[AuditEntry]]:
    """Returns entries below an id, newest first (0: from the newest)."""
    where: dict[str, int | str] = {"id<?" if before else "id>?": before}
    if target:
        where["target=?"] = target
    found = yield query(
        f"SELECT id,at,actor,act,target,detail FROM audit_log WHERE {' AND '.join(where)} "
        f"ORDER BY id DESC LIMIT {int(limit)}",
        *where.values(),
    )
    return [AuditEntry(number, at, actor, act, about, _decode(text)) for number, at, actor, act, about, text in found]


class SqlAudit:
    """The audit log behind the port `service.backend.AuditStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, actor: str, act: str, target: str, detail: dict[str, Any]) -> None:
        await self._database.change(lambda: write(actor, act, target, detail))

    async def read(self, before: int, limit: int, target: str) -> list[AuditEntry]:
        return await self._database.look(lambda: read(before, limit, target))
