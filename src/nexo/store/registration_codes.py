"""Codes that allow to register, as rows. A code is known by its hash only."""

from __future__ import annotations

from nexo.errors import NexoError
from nexo.store import audit
from nexo.store.engine import NOW, Script, do, proof
from nexo.store.engine import rows as query
from nexo.store.sql import Sql


def add_code(sql: Sql, code_hash: str, uses: int, ttl_ms: int, actor: str) -> Script[int]:
    """Adds a code, and deletes codes that have expired or are used up. Returns when it expires."""
    now_ms: int = yield NOW
    expires_at = now_ms + ttl_ms
    yield do("DELETE FROM registration_codes WHERE expires_at<=? OR uses_left=0", now_ms)
    columns = ("code_hash", "uses_left", "created_at", "expires_at")
    yield do(sql.insert_ignore("registration_codes", columns, ("code_hash",)), code_hash, uses, now_ms, expires_at)
    yield from audit.write(actor, "registration.invite", "", {"uses": uses, "expires_at": expires_at})
    return expires_at


def check_code(code_hash: str, lock: str = "") -> Script[None]:
    """Raises unless the code is known, has not expired and has a use left."""
    now_ms = yield NOW
    found = yield query(f"SELECT uses_left,expires_at FROM registration_codes WHERE code_hash=?{lock}", code_hash)
    if not found or found[0][0] < 1 or found[0][1] <= now_ms:
        raise NexoError("registration_closed")


def take_use(sql: Sql, code_hash: str, user_id: str, password_hash: str) -> Script[None]:
    """Takes one use, unless an earlier attempt of this transaction was committed: then the user exists with this very
    hash, and the insert that follows raises Conflict."""
    if (yield proof("SELECT 1 FROM users WHERE user_id=? AND password_hash=?", user_id, password_hash)):
        return
    yield from check_code(code_hash, sql.for_update)
    yield do("UPDATE registration_codes SET uses_left=uses_left-1 WHERE code_hash=?", code_hash)
