"""Node numbers for the message id generator, leased in SQL.

A row remembers the last millisecond its holder may use, by the holder's clock, so the next holder starts after it
however their clocks differ. A process that was paused past its lease makes no ids until it has one again.
"""

from __future__ import annotations

from nexo.errors import StartupError
from nexo.ids import MAX_NODES, Lease
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

LEASE_S = 60
RENEW_S = 20
RETRY_S = 1


def take_node(sql: Sql, holder: str, clock_ms: int) -> Script[Lease]:
    """Returns a lease of a free node number, for a holder whose clock shows `clock_ms`."""
    now_ms = yield NOW
    found = yield query(f"SELECT node,expires_at,last_ms FROM node_leases ORDER BY node{sql.for_update}")
    taken = {row[0] for row in found}
    expires_at = now_ms + LEASE_S * 1000
    until_ms = max(expires_at, clock_ms + LEASE_S * 1000)
    for node, old_expiry, last_ms in found:
        if old_expiry < now_ms:
            until_ms = max(last_ms + LEASE_S * 1000, until_ms)
            yield do(
                "UPDATE node_leases SET holder=?,expires_at=?,last_ms=? WHERE node=?",
                holder,
                expires_at,
                until_ms,
                node,
            )
            return Lease(node, last_ms, until_ms)
    for node in range(MAX_NODES):
        if node not in taken:
            yield do(
                "INSERT INTO node_leases (node,holder,expires_at,last_ms) VALUES (?,?,?,?)",
                node,
                holder,
                expires_at,
                until_ms,
            )
            return Lease(node, 0, until_ms)
    raise StartupError(f"all {MAX_NODES} node numbers are leased: are so many instances running?")


def renew_node(sql: Sql, node: int, holder: str, clock_ms: int) -> Script[Lease | None]:
    """Extends a lease. Returns None when another holder has the number. `clock_ms` is not below any used one."""
    now_ms = yield NOW
    found = yield query(f"SELECT last_ms FROM node_leases WHERE node=? AND holder=?{sql.for_update}", node, holder)
    if not found:
        return None
    expires_at = now_ms + LEASE_S * 1000
    until_ms = max(found[0][0], expires_at, clock_ms + LEASE_S * 1000)
    yield do(
        "UPDATE node_leases SET expires_at=?,last_ms=? WHERE node=? AND holder=?", expires_at, until_ms, node, holder
    )
    return Lease(node, found[0][0], until_ms)


def release_node(node: int, holder: str, last_used_ms: int) -> Script[None]:
    yield do("UPDATE node_leases SET expires_at=0,last_ms=? WHERE node=? AND holder=?", last_used_ms, node, holder)
