"""Keys of backends as rows: a key is known by its hash only."""

from __future__ import annotations

from typing import Any

from nexo.core.keys import ApiKey
from nexo.errors import NexoError
from nexo.store.database import Database
from nexo.store.engine import NOW, Conflict, Script, do
from nexo.store.engine import rows as query

_COLUMNS = "key_id,name,scopes,user_id,created_at,expires_at,revoked_at,last_used_at"


class SqlKeys:
    """Keys behind the port `service.keys.KeyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey, key_hash: str) -> ApiKey:
        try:
            return await self._database.change(lambda: _insert(key, key_hash))
        except Conflict:
            found = await self.find(key.name)
            if found is None or found.key_id != key.key_id:
                raise NexoError("bad_name", f"There is a key named {key.name} already") from None
            return found  # an earlier attempt of this call was committed

    async def by_hash(self, key_hash: str) -> ApiKey | None:
        return await self._database.look(lambda: _read("key_hash=?", key_hash))

    async def find(self, name_or_id: str) -> ApiKey | None:
        return await self._database.look(lambda: _read("(name=? OR key_id=?)", name_or_id, name_or_id))

    async def all(self) -> list[ApiKey]:
        return await self._database.look(_read_all)

    async def revoke(self, key_id: str) -> None:
        await self._database.change(lambda: _revoke(key_id))

    async def used(self, key_id: str) -> None:
        await self._database.change(lambda: _note_use(key_id))


def _insert(key: ApiKey, key_hash: str) -> Script[ApiKey]:
    now_ms = yield NOW
    if key.user_id is not None and not (yield query("SELECT 1 FROM users WHERE user_id=?", key.user_id)):
        raise NexoError("user_not_found", f"There is no user {key.user_id}")
    yield do(
        "INSERT INTO api_keys (key_id,name,key_hash,scopes,user_id,created_at,expires_at) VALUES (?,?,?,?,?,?,?)",
        key.key_id,
        key.name,
        key_hash,
        ",".join(key.scopes),
        key.user_id,
        now_ms,
        key.expires_at,
    )
    return ApiKey(key.key_id, key.name, key.scopes, key.user_id, now_ms, key.expires_at)


def _key(row: Any) -> ApiKey:
    key_id, name, scopes, *rest = row
    return ApiKey(key_id, name, tuple(filter(None, scopes.split(","))), *rest)


def _read(where: str, *params: Any) -> Script[ApiKey | None]:
    found = yield query(f"SELECT {_COLUMNS} FROM api_keys WHERE {where}", *params)
    return _key(found[0]) if found else None


def _read_all() -> Script[list[ApiKey]]:
    found = yield query(f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at,key_id")
    return [_key(row) for row in found]


def _revoke(key_id: str) -> Script[None]:
    yield do("UPDATE api_keys SET revoked_at=? WHERE key_id=? AND revoked_at=0", (yield NOW), key_id)


def _note_use(key_id: str) -> Script[None]:
    yield do("UPDATE api_keys SET last_used_at=? WHERE key_id=?", (yield NOW), key_id)
