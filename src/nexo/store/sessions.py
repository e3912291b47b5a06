"""Sessions and their refresh tokens, as rows. A token is known by its hash only.

Whatever changes a session or its tokens locks the session's row first (a change of password: the user's
row before it), so that exchange, reuse and revocation happen one after the other.
"""

from __future__ import annotations

from typing import Any

from nexo.core.accounts import Issued, PasswordChanged, Reused
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.store import rows
from nexo.store.accounts import write_password
from nexo.store.engine import NOW, Script, do, proof
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

TOKENS_MAX = 64  # per session; each exchange makes one, and a stolen one could make many
_SWEEP_MAX = 500
_COLUMNS = ("sid", "user_id", "platform_id", "device_id", "version")
_SESSION = rows.columns(_COLUMNS)


def create_session(sql: Sql, session: Session, token_hash: str, ttl_ms: int) -> Script[Issued]:
    """A new login; the user's sessions that are over are swept away with it."""
    now_ms = yield NOW
    yield from _sweep(sql, session.user_id, now_ms)
    columns = (*_COLUMNS, "created_at", "expires_at")
    values = (*(getattr(session, name) for name in _COLUMNS), now_ms, now_ms + ttl_ms)
    yield do(sql.insert_ignore("sessions", columns, ("sid",)), *values)
    yield from _insert_token(sql, session.sid, token_hash, now_ms, ttl_ms)
    return Issued(session, now_ms)


def read_live(sid: str) -> Script[Session | None]:
    """The session, if it is neither revoked nor of another version than its user."""
    found = yield query(
        f"SELECT {rows.columns(_COLUMNS, 's')} FROM sessions s JOIN users u ON u.user_id=s.user_id "
        "WHERE s.sid=? AND s.revoked_at=0 AND s.version=u.session_version",
        sid,
    )
    return Session(*found[0]) if found else None


def revoke_session(sid: str) -> Script[None]:
    now_ms = yield NOW
    yield do("UPDATE sessions SET revoked_at=? WHERE sid=? AND revoked_at=0", now_ms, sid)
    yield do("DELETE FROM refresh_tokens WHERE sid=?", sid)


def revoke_others(user_id: str, keep_sid: str) -> Script[list[str]]:
    """End all of a user's sessions but one ('' keeps none). Those that had ended before are named too:
    should this run twice, the second time knows no less."""
    now_ms = yield NOW
    yield do("UPDATE sessions SET revoked_at=? WHERE user_id=? AND sid<>? AND revoked_at=0", now_ms, user_id, keep_sid)
    yield do(
        "DELETE FROM refresh_tokens WHERE sid IN (SELECT sid FROM sessions WHERE user_id=? AND sid<>?)",
        user_id,
        keep_sid,
    )
    found = yield query("SELECT sid FROM sessions WHERE user_id=? AND sid<>?", user_id, keep_sid)
    return [row[0] for row in found]


def set_password(sql: Sql, user_id: str, new_hash: str) -> Script[list[str]]:
    """A new password by an administrator: every session ends."""
    yield from write_password(sql, user_id, new_hash, None)
    return (yield from revoke_others(user_id, ""))


def change_password(
    sql: Sql, session: Session, old_hash: str, new_hash: str, token_hash: str, ttl_ms: int
) -> Script[PasswordChanged]:
    """A new password by its owner: all other sessions end. This one goes on under the new version with
    nothing but the new token: who had copied an old one is out."""
    version = yield from write_password(sql, session.user_id, new_hash, old_hash)
    ended = yield from revoke_others(session.user_id, session.sid)
    kept = yield from _lock_session(sql, session.sid)
    if kept is None:
        raise NexoError("session_invalid")
    now_ms = yield NOW
    yield do("DELETE FROM refresh_tokens WHERE sid=?", kept.sid)
    yield do("UPDATE sessions SET version=?,expires_at=? WHERE sid=?", version, now_ms + ttl_ms, kept.sid)
    yield from _insert_token(sql, kept.sid, token_hash, now_ms, ttl_ms)
    kept.version = version
    return PasswordChanged(Issued(kept, now_ms), ended)


def rotate_token(sql: Sql, old_hash: str, new_hash: str, grace_ms: int, ttl_ms: int) -> Script[Issued | Reused | None]:
    """Exchange a refresh token. None when it is unknown, has expired, or its session is over.

    An exchanged token yields another successor for `grace_ms`, for two tabs at once or a lost reply;
    after that it ends the session, which has to be committed and is therefore a result, not an error.
    """
    found = yield query("SELECT sid FROM refresh_tokens WHERE token_hash=?", old_hash)
    session = (yield from _lock_session(sql, found[0][0])) if found else None
    if session is None:
        return None
    if (yield proof("SELECT 1 FROM refresh_tokens WHERE token_hash=?", new_hash)):
        return Issued(session, (yield NOW))
    # read again: before the lock was ours, somebody else may have exchanged or removed it
    found = yield query(
        "SELECT t.expires_at,t.rotated_at,u.session_version FROM refresh_tokens t JOIN users u ON u.user_id=? "
        "WHERE t.token_hash=?",
        session.user_id,
        old_hash,
    )
    now_ms = yield NOW
    if not found or found[0][0] <= now_ms or found[0][2] != session.version:
        return None
    rotated_at = found[0][1]
    if rotated_at and now_ms >= rotated_at + grace_ms:
        yield from revoke_session(session.sid)
        return Reused(session)
    if not rotated_at:
        yield do("UPDATE refresh_tokens SET rotated_at=? WHERE token_hash=?", now_ms, old_hash)
    yield from _prune_tokens(sql, session.sid, old_hash, now_ms)
    yield from _insert_token(sql, session.sid, new_hash, now_ms, ttl_ms)
    yield do("UPDATE sessions SET expires_at=? WHERE sid=?", now_ms + ttl_ms, session.sid)
    return Issued(session, now_ms)


def _lock_session(sql: Sql, sid: str) -> Script[Session | None]:
    found = yield query(f"SELECT {_SESSION} FROM sessions WHERE sid=? AND revoked_at=0{sql.for_update}", sid)
    return Session(*found[0]) if found else None


def _insert_token(sql: Sql, sid: str, token_hash: str, now_ms: int, ttl_ms: int) -> Script[None]:
    columns = ("token_hash", "sid", "created_at", "expires_at")
    yield do(sql.insert_ignore("refresh_tokens", columns, ("token_hash",)), token_hash, sid, now_ms, now_ms + ttl_ms)


def _prune_tokens(sql: Sql, sid: str, keep_hash: str, now_ms: int) -> Script[None]:
    """Make room for one more: expired tokens go, then the oldest, exchanged ones first. An exchanged
    token is kept as long as there is room, because only a known one can be found reused."""
    found = yield query("SELECT token_hash,expires_at,rotated_at,created_at FROM refresh_tokens WHERE sid=?", sid)

    def oldest_first(row: Any) -> tuple[bool, int, str]:
        token_hash, _, rotated_at, created_at = row
        return rotated_at == 0, rotated_at or created_at, token_hash

    kept = sorted((row for row in found if row[1] > now_ms and row[0] != keep_hash), key=oldest_first)
    spare = {row[0] for row in kept[max(0, len(kept) - (TOKENS_MAX - 2)) :]}
    doomed = [row[0] for row in found if row[0] not in spare and row[0] != keep_hash]
    if doomed:
        chosen = sql.one_of("token_hash", doomed)
        yield do(f"DELETE FROM refresh_tokens WHERE {chosen.sql}", *chosen.params)


def _sweep(sql: Sql, user_id: str, now_ms: int) -> Script[None]:
    """Looked up first, so that a login usually locks no row but its own."""
    found = yield query(
        f"SELECT sid FROM sessions WHERE user_id=? AND (revoked_at>0 OR expires_at<=?) ORDER BY sid LIMIT {_SWEEP_MAX}",
        user_id,
        now_ms,
    )
    if found:
        chosen = sql.one_of("sid", [row[0] for row in found])
        yield do(f"DELETE FROM sessions WHERE {chosen.sql}", *chosen.params)
        yield do(f"DELETE FROM refresh_tokens WHERE {chosen.sql}", *chosen.params)
