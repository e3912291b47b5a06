"""Consumers as rows: the place of each, and which instance runs it.

An instance holds a consumer by a lease that it renews. The epoch is the fence: it grows with every change of owner,
and a place is written only under the current epoch, so an instance that was paused and has lost the lease cannot move
the place.
"""

from __future__ import annotations

from nexo.core.journal import ConsumerLease, ConsumerState, JournalState, Place
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.journal.reading import newest, trimmed_to
from nexo.store.sql import Sql

ROLES = "nexo."  # prefix of leases that read nothing, such as housekeeping


def exists(name: str) -> Script[bool]:
    return bool((yield query("SELECT 1 FROM journal_consumers WHERE name=?", name)))


def add(sql: Sql, name: str, place: Place) -> Script[None]:
    now_ms = yield NOW
    insert = sql.insert_ignore("journal_consumers", ("name", "position", "part", "updated_at"), ("name",))
    yield do(insert, name, *place, now_ms)


def take(sql: Sql, name: str, owner: str, ttl_ms: int) -> Script[ConsumerLease | None]:
    """Returns the lease of a consumer; None while another owner holds it."""
    now_ms = yield NOW
    found = yield query(
        f"SELECT position,part,owner,epoch,expires_at FROM journal_consumers WHERE name=?{sql.for_update}", name
    )
    if not found:
        return None
    position, part, old_owner, epoch, expires_at = found[0]
    if expires_at > now_ms and old_owner != owner:
        return None
    yield do(
        "UPDATE journal_consumers SET owner=?,epoch=?,expires_at=? WHERE name=?",
        owner,
        epoch + 1,
        now_ms + ttl_ms,
        name,
    )
    return ConsumerLease(name, owner, epoch + 1, Place(position, part))


def renew(sql: Sql, lease: ConsumerLease, ttl_ms: int) -> Script[bool]:
    """Extends a lease. Returns False if another owner has taken it."""
    if not (yield from _is_held(sql, lease)):
        return False
    now_ms = yield NOW
    yield do("UPDATE journal_consumers SET expires_at=? WHERE name=?", now_ms + ttl_ms, lease.name)
    return True


def save(sql: Sql, lease: ConsumerLease, place: Place) -> Script[bool]:
    """Saves the place of a consumer. Returns False, and writes nothing, if another owner has taken it."""
    if not (yield from _is_held(sql, lease)):
        return False
    now_ms = yield NOW
    yield do("UPDATE journal_consumers SET position=?,part=?,updated_at=? WHERE name=?", *place, now_ms, lease.name)
    return True


def release(sql: Sql, lease: ConsumerLease) -> Script[None]:
    if (yield from _is_held(sql, lease)):
        yield do("UPDATE journal_consumers SET owner='',expires_at=0 WHERE name=?", lease.name)


def remove(name: str) -> Script[None]:
    yield do("DELETE FROM journal_consumers WHERE name=?", name)


def _is_held(sql: Sql, lease: ConsumerLease) -> Script[bool]:
    found = yield query(f"SELECT epoch FROM journal_consumers WHERE name=?{sql.for_update}", lease.name)
    return bool(found) and found[0][0] == lease.epoch


def state() -> Script[JournalState]:
    """Returns how much is kept, and the place of every consumer."""
    now_ms = yield NOW
    trimmed = yield from trimmed_to()
    last = yield from newest()
    newest_at = yield from _at(last - 1)
    oldest_at = yield from _at(trimmed)
    found = yield query(
        "SELECT name,position,part,owner,expires_at,updated_at FROM journal_consumers WHERE NOT name LIKE ? "
        "ORDER BY name",
        f"{ROLES}%",
    )
    consumers = []
    for name, position, part, owner, expires_at, updated_at in found:
        first_at = yield from _at(position)
        lag_ms = max(0, now_ms - first_at) if first_at else 0
        held_by = owner if expires_at > now_ms else ""
        lag_rows = max(0, last - position)
        consumers.append(ConsumerState(name, Place(position, part), held_by, updated_at, lag_rows, lag_ms))
    return JournalState(last, newest_at, oldest_at, trimmed, now_ms, consumers)


def _at(position: int) -> Script[int]:
    """Returns the time of the first row after this position; 0 if there is none."""
    found = yield query("SELECT at FROM journal WHERE id>? ORDER BY id LIMIT 1", position)
    return int(found[0][0]) if found else 0
