"""Owners of the shards of accepted messages: the instance that saves each.

An owner holds a shard by a lease that it renews. The epoch is the fence: it grows with every change of owner, and a
save names the epoch under which its message was taken, so an owner that was paused and has lost the shard cannot store
anything (`batch.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql


def free(shards: int) -> Script[list[int]]:
    """Returns the shards without an owner."""
    now_ms = yield NOW
    found = yield query("SELECT shard,expires_at FROM stream_owners")
    held = {shard for shard, expires_at in found if expires_at > now_ms}
    return [shard for shard in range(shards) if shard not in held]


def take(sql: Sql, owner: str, shards: Collection[int], ttl_ms: int, at_most: int) -> Script[dict[int, int]]:
    """Takes shards without an owner. Returns them with their new epochs: `at_most` of them, and all that have had no
    owner for longer than `ttl_ms`."""
    now_ms = yield NOW
    found = yield query(f"SELECT shard,expires_at,epoch FROM stream_owners ORDER BY shard{sql.for_update}")
    known = {row[0]: (row[1], row[2]) for row in found}
    taken: dict[int, int] = {}
    for shard in sorted(shards):
        expires_at, epoch = known.get(shard, (0, 0))
        if expires_at > now_ms or (len(taken) >= at_most and now_ms - expires_at <= ttl_ms):
            continue
        taken[shard] = epoch + 1
        if shard in known:
            yield do(
                "UPDATE stream_owners SET owner=?,epoch=?,expires_at=? WHERE shard=?",
                owner,
                epoch + 1,
                now_ms + ttl_ms,
                shard,
            )
        else:
            yield do(
                "INSERT INTO stream_owners (shard,owner,epoch,expires_at) VALUES (?,?,?,?)",
                shard,
                owner,
                epoch + 1,
                now_ms + ttl_ms,
            )
    return taken


def renew(sql: Sql, owner: str, held: Mapping[int, int], ttl_ms: int) -> Script[set[int]]:
    """Extends the leases of an owner. Returns the shards that it still holds."""
    now_ms = yield NOW
    found = yield query(f"SELECT shard,epoch FROM stream_owners WHERE owner=? ORDER BY shard{sql.for_update}", owner)
    kept = {shard for shard, epoch in found if held.get(shard) == epoch}
    for shard in sorted(kept):
        yield do("UPDATE stream_owners SET expires_at=? WHERE shard=?", now_ms + ttl_ms, shard)
    return kept


def release(owner: str, held: Mapping[int, int]) -> Script[None]:
    now_ms = yield NOW
    for shard, epoch in sorted(held.items()):
        yield do(
            "UPDATE stream_owners SET expires_at=? WHERE shard=? AND owner=? AND epoch=?", now_ms, shard, owner, epoch
        )
