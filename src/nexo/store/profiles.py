"""What users see of their own sessions, and of the last time that others were connected, as scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from nexo.core.people import LastSeenFor, OwnSession, SeenSession
from nexo.errors import NexoError
from nexo.store import sessions
from nexo.store.contacts import hidden_from
from nexo.store.database import Database
from nexo.store.engine import NOW, Script, do, many
from nexo.store.engine import rows as query
from nexo.store.publish_seam import PublishSeam
from nexo.store.sql import Sql

_LIVE = (
    "FROM sessions s JOIN users u ON u.user_id=s.user_id WHERE s.user_id=? AND s.revoked_at=0 AND s.expires_at>? "
    "AND s.version=u.session_version"
)


class SqlProfiles:
    """Behind the ports `service.own_sessions.SessionStore` and `service.last_seen.SeenStore`."""

    def __init__(self, database: Database, seam: PublishSeam) -> None:
        self._database = database
        self._sql = database.sql
        self._seam = seam

    async def sessions(self, user_id: str) -> list[OwnSession]:
        return await self._database.look(lambda: _sessions(user_id))

    async def started_at(self, sid: str) -> tuple[int, int]:
        return await self._database.look(lambda: _started_at(sid))

    async def revoke(self, user_id: str, sid: str) -> None:
        await self._database.change(lambda: _revoke(self._sql, user_id, sid))

    async def revoke_others(self, user_id: str, keep_sid: str) -> list[str]:
        return await self._database.change(lambda: _revoke_others(self._sql, user_id, keep_sid))

    async def write_seen(self, seen: Sequence[SeenSession], clock_ms: int) -> None:
        await self._database.change(lambda: _write_seen(seen, clock_ms))

    async def last_seen(self, viewer_id: str, user_ids: Sequence[str]) -> dict[str, int]:
        return await self._database.look(lambda: _last_seen(self._sql, viewer_id, list(user_ids)))

    async def privacy(self, user_id: str) -> LastSeenFor:
        return await self._database.look(lambda: _privacy(user_id))

    async def set_privacy(self, user_id: str, last_seen: LastSeenFor) -> None:
        await self._database.change_and_publish(
            lambda: _set_privacy(user_id, last_seen), lambda _: self._seam.visibility_changed(user_id)
        )


def _sessions(user_id: str) -> Script[list[OwnSession]]:
    found = yield query(
        f"SELECT s.sid,s.device_id,s.platform_id,s.address,s.created_at,s.last_seen_at {_LIVE} "
        "ORDER BY s.created_at,s.sid",
        user_id,
        (yield NOW),
    )
    return [OwnSession(*row) for row in found]


class Started(NamedTuple):
    started_at: int
    now_ms: int


def _started_at(sid: str) -> Script[Started]:
    """Returns when a session was opened, and the time; 0 for a session that is not stored."""
    found = yield query("SELECT created_at FROM sessions WHERE sid=?", sid)
    return Started(found[0][0] if found else 0, (yield NOW))


def _revoke(sql: Sql, user_id: str, sid: str) -> Script[None]:
    if not (yield query(f"SELECT s.sid {_LIVE} AND s.sid=?", user_id, (yield NOW), sid)):
        raise NexoError("session_not_found")
    yield from sessions.revoke_session(sql, sid)


def _revoke_others(sql: Sql, user_id: str, keep_sid: str) -> Script[list[str]]:
    """Ends all sessions but one. Returns them, with those that had ended before. Session by session, in the order of
    ids, so that each leaves its note for other instances."""
    found = yield query(f"SELECT s.sid {_LIVE} AND s.sid<>? ORDER BY s.sid", user_id, (yield NOW), keep_sid)
    for (sid,) in found:
        yield from sessions.revoke_session(sql, sid)
    return [sid for (sid,) in found]


def _write_seen(seen: Sequence[SeenSession], clock_ms: int) -> Script[None]:
    """Writes times and addresses of sessions, and the times of their users. Sorted to avoid deadlock. The times are
    those of a clock that shows `clock_ms` now."""
    shift = (yield NOW) - clock_ms
    seen = [structs.replace(one, at=one.at + shift) for one in seen]
    times: dict[str, int] = {}
    for one in seen:
        times[one.user_id] = max(one.at, times.get(one.user_id, 0))
    users = [(at, user_id, at) for user_id, at in sorted(times.items())]
    yield many("UPDATE users SET last_seen_at=? WHERE user_id=? AND last_seen_at<? AND deleted_at=0", users)
    rows = [(one.at, one.address, one.sid, one.at) for one in sorted(seen, key=lambda one: one.sid)]
    yield many("UPDATE sessions SET last_seen_at=?,address=? WHERE sid=? AND last_seen_at<?", rows)


def _last_seen(sql: Sql, viewer_id: str, user_ids: list[str]) -> Script[dict[str, int]]:
    """Returns when users were connected last, as far as the viewer may see it; 0 if that is not known."""
    hidden = yield from hidden_from(sql, viewer_id, user_ids)
    shown = [user_id for user_id in user_ids if user_id not in hidden]
    if not shown:
        return {}
    chosen = sql.one_of("user_id", shown)
    found = yield query(
        f"SELECT user_id,last_seen_at FROM users WHERE {chosen.sql} AND deleted_at=0",
        *chosen.params,
    )
    return {row[0]: row[1] for row in found}


def _privacy(user_id: str) -> Script[LastSeenFor]:
    found = yield query("SELECT last_seen_for FROM users WHERE user_id=?", user_id)
    return LastSeenFor(found[0][0] if found else 0)


def _set_privacy(user_id: str, last_seen: LastSeenFor) -> Script[None]:
    yield do("UPDATE users SET last_seen_for=? WHERE user_id=?", int(last_seen), user_id)
