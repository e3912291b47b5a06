"""Node numbers for the message id generator, leased in SQL.

A row remembers the last millisecond its holder may have used, so the next holder starts after it even if
a clock was set back. A process that was paused past its lease takes a new number before it goes on.
"""

from __future__ import annotations

from nexo.errors import StartupError
from nexo.ids import MAX_NODES
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

LEASE_S = 60
RENEW_S = 20


def take_node(sql: Sql, holder: str) -> Script[tuple[int, int]]:
    """A free node number and the last millisecond in which it may have been used."""
    now_ms = yield NOW
    found = yield query(f"SELECT node,expires_at,last_ms FROM node_leases ORDER BY node{sql.for_update}")
    taken = {row[0] for row in found}
    expires_at = now_ms + LEASE_S * 1000
    for node, old_expiry, last_ms in found:
        if old_expiry < now_ms:
            yield do(
                "UPDATE node_leases SET holder=?,expires_at=?,last_ms=? WHERE node=?",
                holder,
                expires_at,
                max(last_ms, expires_at),
                node,
            )
            return node, last_ms
    for node in range(MAX_NODES):
        if node not in taken:
            yield do(
                "INSERT INTO node_leases (node,holder,expires_at,last_ms) VALUES (?,?,?,?)",
                node,
                holder,
                expires_at,
                expires_at,
            )
            return node, 0
    raise StartupError(f"all {MAX_NODES} node numbers are leased: are so many instances running?")


def renew_node(sql: Sql, node: int, holder: str, last_used_ms: int) -> Script[bool]:
    """Extend a lease; False when somebody else has it by now."""
    now_ms = yield NOW
    found = yield query(f"SELECT last_ms FROM node_leases WHERE node=? AND holder=?{sql.for_update}", node, holder)
    if not found:
        return False
    expires_at = now_ms + LEASE_S * 1000
    yield do(
        "UPDATE node_leases SET expires_at=?,last_ms=? WHERE node=? AND holder=?",
        expires_at,
        max(found[0][0], last_used_ms, expires_at),
        node,
        holder,
    )
    return True


def release_node(node: int, holder: str, last_used_ms: int) -> Script[None]:
    yield do("UPDATE node_leases SET expires_at=0,last_ms=? WHERE node=? AND holder=?", last_used_ms, node, holder)
