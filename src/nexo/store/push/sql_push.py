"""Push behind `push.ports.PushStore` and `service.push.TargetStore`: each method runs one script."""

from __future__ import annotations

from collections.abc import Sequence

from nexo.core.journal import Place
from nexo.core.push import Composed, Marking, Note, NoteResult, PushPage, PushTarget
from nexo.store.batch import HotSql
from nexo.store.database import Database
from nexo.store.engine import Conflict, MakeScript, Script, T, do
from nexo.store.engine import rows as query
from nexo.store.journal.sql_journal import SqlJournal
from nexo.store.push import composing, feed, notes, targets

VAPID = "vapid"


class SqlPush:
    def __init__(self, database: Database, hot_sql: HotSql, journal: SqlJournal) -> None:
        self._database = database
        self._sql = database.sql
        self._hot_sql = hot_sql
        self._journal = journal

    async def _change(self, make: MakeScript[T]) -> T:
        return await self._database.change(lambda: self._hot_sql.beside(make()))

    # -- devices -----------------------------------------------------------------------------------------

    async def register(
        self, user_id: str, sid: str, kind: str, address: str, device_id: str, lang: str, max_per_user: int
    ) -> None:
        new = targets.NewTarget(user_id, sid, kind, address, device_id, lang)
        try:
            await self._change(lambda: targets.register(self._sql, new, max_per_user))
        except Conflict:  # another request has registered the same address at the same moment
            await self._change(lambda: targets.register(self._sql, new, max_per_user))

    async def unregister(
        self, user_id: str, sid: str, kind: str | None, address: str | None, device_id: str | None
    ) -> int:
        return await self._change(lambda: targets.unregister(self._sql, user_id, sid, kind, address, device_id))

    async def targets_of(self, user_ids: Sequence[str]) -> list[PushTarget]:
        return await self._database.look(lambda: targets.of_users(self._sql, list(user_ids)))

    async def name_of(self, user_id: str) -> str:
        return await self._database.look(lambda: targets.name_of(user_id))

    async def is_ringing(self, call_id: int) -> bool:
        return await self._database.look(lambda: targets.is_ringing(call_id))

    async def has_targets(self) -> bool:
        return await self._database.look(targets.is_any)

    async def remove(self, push_id: int) -> None:
        await self._change(lambda: targets.remove(self._sql, [push_id]))

    async def sweep(self, keep_ms: int) -> int:
        return await self._change(lambda: targets.sweep(self._sql, keep_ms))

    # -- notes -------------------------------------------------------------------------------------------

    async def page(self, place: Place, limit: int) -> tuple[PushPage, Place, bool, bool]:
        found = await self._journal.read_parts(place, limit, feed.references_of, in_memory=False)
        return found.resolved.page, found.place, found.has_more, found.is_waiting

    async def away(self, wanted: Sequence[Marking]) -> set[int]:
        return await self._database.look(lambda: notes.away(wanted))

    async def recalled_in(self, wanted: Sequence[Marking]) -> set[int]:
        return await self._database.look(lambda: notes.recalled_in(wanted))

    async def mark(self, wanted: Sequence[Marking]) -> list[Marking]:
        return await self._change(lambda: notes.mark(self._sql, wanted))

    async def look_again(self, convs: Sequence[int], reads: Sequence[tuple[int, str]]) -> int:
        return await self._change(lambda: notes.look_again(self._sql, convs, reads))

    async def next_due(self, kind: str) -> tuple[int | None, int]:
        return await self._database.look(lambda: notes.next_due(kind))

    async def claim(self, kind: str, limit: int) -> list[Note]:
        return await self._change(lambda: notes.claim(kind, limit))

    async def release_all(self, kind: str) -> None:
        await self._change(lambda: notes.release_all(kind))

    async def compose(self, claimed: Sequence[Note]) -> list[Composed]:
        return await self._database.look(lambda: composing.compose(self._sql, claimed))

    async def finish(self, results: Sequence[NoteResult]) -> None:
        await self._change(lambda: notes.finish(self._sql, results))

    # -- keys --------------------------------------------------------------------------------------------

    async def keep_key(self, made: str) -> str:
        """Returns the key that all instances share: the one that was kept first."""
        return await self._database.change(lambda: _keep_key(self._database, made))


def _keep_key(database: Database, made: str) -> Script[str]:
    yield do(database.sql.insert_ignore("push_keys", ("name", "value"), ("name",)), VAPID, made)
    ((kept,),) = yield query("SELECT value FROM push_keys WHERE name=?", VAPID)
    return str(kept)
