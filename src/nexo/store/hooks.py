"""Webhooks as rows; the place of each in the journal is a row of `journal_consumers`. Every act is in the audit log, in
the same transaction."""

from __future__ import annotations

from typing import Any

import msgspec

from nexo.core.hooks import Hook, HookSecret, HookStatus
from nexo.core.journal import Place
from nexo.errors import NexoError
from nexo.store import audit
from nexo.store.database import Database
from nexo.store.engine import NOW, Conflict, Script, do
from nexo.store.engine import rows as query
from nexo.store.journal import consumers
from nexo.store.journal.sql_journal import SqlJournal
from nexo.store.sql import Sql

_COLUMNS = "hook_id,name,url,types,conversations,secrets,status,reason,failing_since,revision,created_at,updated_at"

_encode = msgspec.json.Encoder().encode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_secrets = msgspec.json.Decoder(tuple[HookSecret, ...]).decode


class SqlHooks:
    """Webhooks behind the ports `service.hooks.HookStore` and `hooks.ports.HookStates`."""

    def __init__(self, database: Database, journal: SqlJournal) -> None:
        self._database = database
        self._journal = journal

    async def add(self, hook: Hook, max_hooks: int, actor: str) -> Hook:
        place = await self._journal.now()
        try:
            return await self._database.change(lambda: _insert(self._database.sql, hook, place, max_hooks, actor))
        except Conflict:
            found = await self.find(hook.name)
            if found is None or found.hook_id != hook.hook_id:
                raise NexoError("bad_name", f"There is a webhook named {hook.name} already") from None
            return found  # an earlier attempt of this call was committed

    async def find(self, name_or_id: str) -> Hook | None:
        found = await self._database.look(lambda: _read("WHERE name=? OR hook_id=?", name_or_id, name_or_id))
        return found[0] if found else None

    async def all(self) -> list[Hook]:
        return await self._database.look(lambda: _read("ORDER BY created_at,hook_id"))

    async def set_status(self, hook: Hook, status: HookStatus, actor: str) -> Hook:
        act = "hook.pause" if status is HookStatus.PAUSED else "hook.resume"
        values = {"status": int(status), "reason": "", "failing_since": 0}
        return await self._update(hook, values, actor, act, {})

    async def set_secrets(self, hook: Hook, secrets: tuple[HookSecret, ...], actor: str) -> Hook:
        return await self._update(hook, {"secrets": _encode(secrets).decode()}, actor, "hook.rotate", {})

    async def replay(self, hook: Hook, start: str | int, actor: str) -> Hook:
        is_time = isinstance(start, int)
        place = await (self._journal.place_at(start) if is_time else self._journal.place_of(str(start)))  # type: ignore[arg-type]
        if not is_time:
            await self._journal.page(place, 1)  # or cursor_expired
        return await self._update(hook, {"failing_since": 0}, actor, "hook.replay", {"from": start}, place)

    async def _update(
        self,
        hook: Hook,
        values: dict[str, Any],
        actor: str,
        act: str,
        detail: dict[str, Any],
        place: Place | None = None,
    ) -> Hook:
        sql = self._database.sql
        return await self._database.change(lambda: _update(sql, hook, values, actor, act, detail, place))

    async def remove(self, hook: Hook, actor: str) -> None:
        await self._database.change(lambda: _remove(hook, actor))

    async def set_failing(self, hook: Hook, since: int) -> None:
        """Note since when a webhook fails; 0: it does not. Its delivery continues."""
        await self._database.change(lambda: _set_failing(hook, since))

    async def give_up(self, hook: Hook, reason: str) -> None:
        values = {"status": int(HookStatus.GIVEN_UP), "reason": reason[:500]}
        await self._update(hook, values, "server", "hook.give_up", {"reason": reason[:500]})


def _insert(sql: Sql, hook: Hook, place: Place, max_hooks: int, actor: str) -> Script[Hook]:
    now_ms = yield NOW
    ((count,),) = yield query("SELECT COUNT(*) FROM hooks")
    if count >= max_hooks:
        raise NexoError("too_many_hooks", f"There are {count} webhooks; hooks.max_hooks allows no more")
    yield do(
        f"INSERT INTO hooks ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        hook.hook_id,
        hook.name,
        hook.url,
        _encode(hook.types).decode(),
        _encode(hook.conversations).decode(),
        _encode(hook.secrets).decode(),
        int(hook.status),
        "",
        0,
        1,
        now_ms,
        now_ms,
    )
    yield from consumers.add(sql, hook.consumer, place)
    yield from audit.write(actor, "hook.add", hook.name, {"hook_id": hook.hook_id, "url": hook.url})
    return msgspec.structs.replace(hook, created_at=now_ms, updated_at=now_ms)


def _hook(row: Any) -> Hook:
    hook_id, name, url, types, conversations, secrets, status, *rest = row
    return Hook(
        hook_id,
        name,
        url,
        _decode_texts(types),
        _decode_texts(conversations),
        _decode_secrets(secrets),
        HookStatus(status),
        *rest,
    )


def _read(rest: str, *params: Any) -> Script[list[Hook]]:
    return [_hook(row) for row in (yield query(f"SELECT {_COLUMNS} FROM hooks {rest}", *params))]


def _update(
    sql: Sql, hook: Hook, values: dict[str, Any], actor: str, act: str, detail: dict[str, Any], place: Place | None
) -> Script[Hook]:
    now_ms = yield NOW
    found = yield from _read(f"WHERE hook_id=?{sql.for_update}", hook.hook_id)
    if not found:
        raise NexoError("hook_not_found", f"There is no webhook {hook.name}")
    columns = ",".join(f"{name}=?" for name in (*values, "revision", "updated_at"))
    revision = found[0].revision + 1
    yield do(f"UPDATE hooks SET {columns} WHERE hook_id=?", *values.values(), revision, now_ms, hook.hook_id)
    if place is not None:  # under a new epoch: the instance that delivers cannot move the place any more
        yield do(
            "UPDATE journal_consumers SET position=?,part=?,owner='',epoch=epoch+1,expires_at=0 WHERE name=?",
            *place,
            hook.consumer,
        )
    yield from audit.write(actor, act, hook.name, {"hook_id": hook.hook_id, **detail})
    ((changed,),) = ((yield from _read("WHERE hook_id=?", hook.hook_id)),)
    return changed


def _remove(hook: Hook, actor: str) -> Script[None]:
    yield do("DELETE FROM hooks WHERE hook_id=?", hook.hook_id)
    yield from consumers.remove(hook.consumer)
    yield from audit.write(actor, "hook.remove", hook.name, {"hook_id": hook.hook_id, "url": hook.url})


def _set_failing(hook: Hook, since: int) -> Script[None]:
    yield do("UPDATE hooks SET failing_since=? WHERE hook_id=?", since, hook.hook_id)
