"""The canary's two users and its heartbeat: a write that is committed, and nothing that grows."""

from __future__ import annotations

from nexo.ids import CANARY_IDS
from nexo.store.accounts import write_block
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sessions import set_password
from nexo.store.sql import Sql

NO_PASSWORD = "!"  # no hash looks like this: no password matches


def beat(sql: Sql) -> Script[None]:
    now_ms = yield NOW
    insert = sql.insert_ignore("users", ("user_id", "password_hash", "created_at", "updated_at"), ("user_id",))
    for user_id in CANARY_IDS:
        yield do(insert, user_id, NO_PASSWORD, now_ms, now_ms)
    yield do("UPDATE users SET updated_at=? WHERE user_id=?", now_ms, CANARY_IDS[0])


def claim(sql: Sql) -> Script[list[str]]:
    """Make the canary's users, or take them from a client that has registered them before their ids were reserved: no
    password opens them, and their sessions end. Returns the users that were taken."""
    yield from beat(sql)
    found = yield query(
        "SELECT user_id FROM users WHERE user_id IN (?,?) AND password_hash<>? ORDER BY user_id",
        *CANARY_IDS,
        NO_PASSWORD,
    )
    for row in found:
        yield from set_password(sql, row[0], NO_PASSWORD)
    return [row[0] for row in found]


def unblock(sql: Sql) -> Script[None]:
    """Remove what the former owner of a canary user may have put in the way of its message."""
    for user_id, other_id in (CANARY_IDS, CANARY_IDS[::-1]):
        yield from write_block(sql, user_id, other_id, False)
