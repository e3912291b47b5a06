"""The canary's two users and its heartbeat: a write that is committed, and nothing that grows."""

from __future__ import annotations

from nexo.ids import CANARY_IDS
from nexo.store.engine import NOW, Script, do
from nexo.store.sql import Sql

NO_PASSWORD = "!"  # no hash looks like this: nobody can sign in


def beat(sql: Sql) -> Script[None]:
    now_ms = yield NOW
    insert = sql.insert_ignore("users", ("user_id", "password_hash", "created_at", "updated_at"), ("user_id",))
    for user_id in CANARY_IDS:
        yield do(insert, user_id, NO_PASSWORD, now_ms, now_ms)
    yield do("UPDATE users SET updated_at=? WHERE user_id=?", now_ms, CANARY_IDS[0])
