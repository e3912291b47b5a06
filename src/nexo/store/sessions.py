"""Sessions and their refresh tokens, as rows. A token is known by its hash only.

Tokens of a session are one family, whose hash the session keeps: a token of the family without a row of its own was
exchanged long ago, and using it ends the session, however many exchanges there were since.

Every change of a session or its tokens locks the session's row first (a change of password: the user's
row before it), so that exchange, reuse and revocation happen one after the other.
"""

from __future__ import annotations

from typing import Any

from nexo.core.accounts import EXTERNAL_AGE_MS, Issued, PasswordChanged, Reused, TokenHash
from nexo.core.model import Session, SessionOrigin
from nexo.errors import NexoError
from nexo.store import rows
from nexo.store.accounts import write_password
from nexo.store.engine import NOW, Script, do, proof
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

ADDRESS_MAX = 64
TOKENS_MAX = 64  # per session; each exchange makes one, and a stolen one could make many
_SWEEP_MAX = 500
_EXTERNAL = int(SessionOrigin.EXTERNAL)
_COLUMNS = ("sid", "user_id", "platform_id", "device_id", "version", "origin", "issued_after")
_SESSION = rows.columns(_COLUMNS)


def create_session(sql: Sql, session: Session, token_hash: TokenHash | None, ttl_ms: int) -> Script[Issued]:
    """Creates a session, and deletes the user's ended ones. Without `token_hash` it cannot be refreshed."""
    now_ms = yield NOW
    yield from sweep(sql, session.user_id, now_ms)
    yield from insert_session(sql, session, now_ms, ttl_ms, token_hash.family if token_hash else "")
    if token_hash is not None:
        yield from _insert_token(sql, session.sid, token_hash.token, now_ms, ttl_ms)
    return Issued(session, now_ms)


def insert_session(sql: Sql, session: Session, now_ms: int, ttl_ms: int, family_hash: str = "") -> Script[None]:
    columns = (*_COLUMNS, "created_at", "expires_at", "family_hash", "address", "last_seen_at")
    values = (*(getattr(session, name) for name in _COLUMNS), now_ms, now_ms + ttl_ms, family_hash)
    values = (*values, session.address[:ADDRESS_MAX], now_ms)
    yield do(sql.insert_ignore("sessions", columns, ("sid",)), *values)


def _session(row: Any) -> Session:
    sid, user_id, platform_id, device_id, version, origin, issued_after = row
    return Session(sid, user_id, platform_id, device_id, version, origin=origin, issued_after=issued_after)


def read_live(sid: str) -> Script[Session | None]:
    """Returns the session, if it is neither revoked nor of another version than its user."""
    found = yield query(
        f"SELECT {rows.columns(_COLUMNS, 's')} FROM sessions s JOIN users u ON u.user_id=s.user_id "
        "WHERE s.sid=? AND s.revoked_at=0 AND s.version=u.session_version",
        sid,
    )
    return _session(found[0]) if found else None


def changed_since(since_ms: int) -> Script[tuple[int, list[tuple[str, int]]]]:
    """Returns the time, and the users whose sessions have ended or changed since then, with a number that differs after
    every change."""
    now_ms = yield NOW
    found = yield query("SELECT user_id,changes FROM session_changes WHERE changed_at>=?", since_ms)
    return now_ms, [(row[0], row[1]) for row in found]


def _note_change(sql: Sql, user_id: str, now_ms: int) -> Script[None]:
    """Leaves a note for instances that are not notified. Always the last lock that a transaction takes."""
    if not (yield query(f"SELECT 1 FROM session_changes WHERE user_id=?{sql.for_update}", user_id)):
        yield do(sql.insert_ignore("session_changes", ("user_id",), ("user_id",)), user_id)
    yield do("UPDATE session_changes SET changes=changes+1,changed_at=? WHERE user_id=?", now_ms, user_id)


def revoke_session(sql: Sql, sid: str) -> Script[None]:
    now_ms = yield NOW
    yield do("UPDATE sessions SET revoked_at=? WHERE sid=? AND revoked_at=0", now_ms, sid)
    yield do("DELETE FROM refresh_tokens WHERE sid=?", sid)
    for row in (yield query("SELECT user_id FROM sessions WHERE sid=?", sid)):
        yield from _note_change(sql, row[0], now_ms)


def revoke_others(sql: Sql, user_id: str, keep_sid: str) -> Script[list[str]]:
    """Ends all of a user's sessions but one ('' keeps none). Returns them, with those that had ended before: a second
    run of this script returns no fewer."""
    now_ms = yield NOW
    yield do("UPDATE sessions SET revoked_at=? WHERE user_id=? AND sid<>? AND revoked_at=0", now_ms, user_id, keep_sid)
    yield do(
        "DELETE FROM refresh_tokens WHERE sid IN (SELECT sid FROM sessions WHERE user_id=? AND sid<>?)",
        user_id,
        keep_sid,
    )
    found = yield query("SELECT sid FROM sessions WHERE user_id=? AND sid<>?", user_id, keep_sid)
    if not keep_sid:
        yield from _note_change(sql, user_id, now_ms)
    return [row[0] for row in found]


def revoke_device(sql: Sql, user_id: str, device_id: str) -> Script[list[str]]:
    """Ends a user's sessions of one device. Returns them, with those that had ended before."""
    found = yield query("SELECT sid FROM sessions WHERE user_id=? AND device_id=? ORDER BY sid", user_id, device_id)
    for (sid,) in found:
        yield from revoke_session(sql, sid)
    return [sid for (sid,) in found]


def set_password(sql: Sql, user_id: str, new_hash: str, old_hash: str | None = None) -> Script[list[str]]:
    """Sets a password as an administrator, only in place of `old_hash` if that is given: every session ends."""
    yield from write_password(sql, user_id, new_hash, old_hash)
    return (yield from revoke_others(sql, user_id, ""))


def change_password(
    sql: Sql, session: Session, old_hash: str, new_hash: str, token_hash: TokenHash, ttl_ms: int
) -> Script[PasswordChanged]:
    """Sets a password as its owner: all other sessions end. This one continues under the new version with
    only the new token, so that copies of older tokens are useless."""
    version = yield from write_password(sql, session.user_id, new_hash, old_hash)
    ended = yield from revoke_others(sql, session.user_id, session.sid)
    kept = yield from _lock_session(sql, session.sid)
    if kept is None:
        raise NexoError("session_invalid")
    now_ms = yield NOW
    yield do("DELETE FROM refresh_tokens WHERE sid=?", kept.sid)
    # of a new family: older tokens are useless, and none of them ends the session
    yield do(
        "UPDATE sessions SET version=?,expires_at=?,family_hash=? WHERE sid=?",
        version,
        now_ms + ttl_ms,
        token_hash.family,
        kept.sid,
    )
    yield from _insert_token(sql, kept.sid, token_hash.token, now_ms, ttl_ms)
    yield from _note_change(sql, kept.user_id, now_ms)
    kept.version = version
    return PasswordChanged(Issued(kept, now_ms), ended)


def rotate_token(
    sql: Sql, old_hash: TokenHash, new_hash: TokenHash, grace_ms: int, ttl_ms: int
) -> Script[Issued | Reused | None]:
    """Exchange a refresh token. None when it is unknown, has expired, or its session is over.

    An exchanged token yields another successor for `grace_ms`, for two tabs at once or a lost reply;
    after that it ends the session, which has to be committed and is therefore a result, not an error.
    """
    found = yield query("SELECT sid FROM refresh_tokens WHERE token_hash=?", old_hash.token)
    if not found and old_hash.family:
        found = yield query("SELECT sid FROM sessions WHERE family_hash=?", old_hash.family)
    session = (yield from _lock_session(sql, found[0][0])) if found else None
    if session is None:
        return None
    if (yield proof("SELECT 1 FROM refresh_tokens WHERE token_hash=?", new_hash.token)):
        return Issued(session, (yield NOW))
    # read again: another transaction may have exchanged or removed it before the lock was taken
    found = yield query(
        "SELECT s.family_hash,u.session_version,t.expires_at,t.rotated_at FROM sessions s "
        "JOIN users u ON u.user_id=s.user_id LEFT JOIN refresh_tokens t ON t.token_hash=? AND t.sid=s.sid "
        "WHERE s.sid=?",
        old_hash.token,
        session.sid,
    )
    now_ms = yield NOW
    if not found or found[0][1] != session.version:
        return None
    family_hash, _, expires_at, rotated_at = found[0]
    if expires_at is None:
        is_reused = bool(old_hash.family) and old_hash.family == family_hash
    else:
        is_reused = rotated_at > 0 and now_ms >= rotated_at + grace_ms
    if is_reused:
        yield from revoke_session(sql, session.sid)
        return Reused(session)
    if expires_at is None or expires_at <= now_ms:
        return None
    if not rotated_at:
        yield do("UPDATE refresh_tokens SET rotated_at=? WHERE token_hash=?", now_ms, old_hash.token)
    yield from _prune_tokens(sql, session.sid, old_hash.token, now_ms, grace_ms)
    yield do(
        "UPDATE sessions SET expires_at=?,family_hash=?,generation=generation+1 WHERE sid=?",
        now_ms + ttl_ms,
        new_hash.family,
        session.sid,
    )
    yield from _insert_token(sql, session.sid, new_hash.token, now_ms, ttl_ms)
    return Issued(session, now_ms)


def _lock_session(sql: Sql, sid: str) -> Script[Session | None]:
    found = yield query(f"SELECT {_SESSION} FROM sessions WHERE sid=? AND revoked_at=0{sql.for_update}", sid)
    return _session(found[0]) if found else None


def _insert_token(sql: Sql, sid: str, token_hash: str, now_ms: int, ttl_ms: int) -> Script[None]:
    columns = ("token_hash", "sid", "created_at", "expires_at", "generation")
    ((exchanges,),) = yield query("SELECT generation FROM sessions WHERE sid=?", sid)
    values = (token_hash, sid, now_ms, now_ms + ttl_ms, exchanges + 1)
    yield do(sql.insert_ignore("refresh_tokens", columns, ("token_hash",)), *values)


def _prune_tokens(sql: Sql, sid: str, keep_hash: str, now_ms: int, grace_ms: int) -> Script[None]:
    """Makes room for one more token: deletes exchanged ones, which are recognised by their family, and then the
    oldest. Exchanged tokens without a family are kept as long as there is room: only a known one is
    found reused."""
    found = yield query("SELECT token_hash,generation,rotated_at,created_at FROM refresh_tokens WHERE sid=?", sid)

    def is_spent(row: Any) -> bool:
        _, generation, rotated_at, _ = row
        return bool(generation > 0 and 0 < rotated_at <= now_ms - grace_ms)

    def oldest_first(row: Any) -> tuple[bool, int, str]:
        token_hash, _, rotated_at, created_at = row
        return rotated_at == 0, rotated_at or created_at, token_hash

    kept = sorted((row for row in found if row[0] != keep_hash and not is_spent(row)), key=oldest_first)
    spare = {row[0] for row in kept[max(0, len(kept) - (TOKENS_MAX - 2)) :]}
    doomed = [row[0] for row in found if row[0] not in spare and row[0] != keep_hash]
    if doomed:
        chosen = sql.one_of("token_hash", doomed)
        yield do(f"DELETE FROM refresh_tokens WHERE {chosen.sql}", *chosen.params)


def sweep(sql: Sql, user_id: str, now_ms: int) -> Script[None]:
    """Deletes ended sessions. They are looked up first, so that most logins lock only their own row. Sessions of a
    product's tokens are kept after their end as long as an older token could open them again."""
    found = yield query(
        f"SELECT sid FROM sessions WHERE user_id=? AND ((origin<>{_EXTERNAL} AND (revoked_at>0 OR expires_at<=?)) "
        f"OR (origin={_EXTERNAL} AND expires_at<=? AND revoked_at<=?)) ORDER BY sid LIMIT {_SWEEP_MAX}",
        user_id,
        now_ms,
        now_ms,
        now_ms - EXTERNAL_AGE_MS,
    )
    if found:
        chosen = sql.one_of("sid", [row[0] for row in found])
        yield do(f"DELETE FROM sessions WHERE {chosen.sql}", *chosen.params)
        yield do(f"DELETE FROM refresh_tokens WHERE {chosen.sql}", *chosen.params)
