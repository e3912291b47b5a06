"""Sessions that a product's own tokens open, as scripts.

Such a session keeps its row when it ends, with the time of its end: a token that was issued later opens it again, one
that was issued before does not. Ended ones are deleted when tokens of that time have become too old to be accepted.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from nexo.core.accounts import Credentials, UserDraft
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.store.account_admin import put_users
from nexo.store.accounts import CREDENTIALS, read_credentials
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sessions import insert_session, sweep
from nexo.store.sql import Sql


class Opened(NamedTuple):
    session: Session
    is_new_user: bool


def look_up(session: Session, issued_at: int, ttl_ms: int) -> Script[Session | None]:
    """Returns the session if it is valid and its row needs no change, as for most tokens."""
    found = yield query(
        "SELECT s.version,s.issued_after,s.expires_at FROM sessions s JOIN users u ON u.user_id=s.user_id "
        "WHERE s.sid=? AND s.revoked_at=0 AND s.version=u.session_version",
        session.sid,
    )
    if not found:
        return None
    version, issued_after, expires_at = found[0]
    _check(issued_at, issued_after)
    if expires_at - (yield NOW) < ttl_ms // 2:
        return None
    return structs.replace(session, version=version, issued_after=issued_after)


def open_external(sql: Sql, session: Session, issued_at: int, ttl_ms: int, create_user: bool) -> Script[Opened]:
    """Makes the session, extends it, or opens it again after its end."""
    is_new = (yield from read_credentials(session.user_id)) is None
    if is_new:
        if not create_user:
            raise NexoError("user_not_found", f"There is no user {session.user_id}")
        yield from put_users(sql, [UserDraft(session.user_id, {})])
    ((*row,),) = yield query(f"SELECT {CREDENTIALS} FROM users WHERE user_id=?{sql.for_update}", session.user_id)
    state = Credentials(*row)
    state.check_open()
    now_ms = yield NOW
    found = yield query(
        f"SELECT version,revoked_at,issued_after FROM sessions WHERE sid=?{sql.for_update}", session.sid
    )
    opened = structs.replace(session, version=state.session_version)
    if not found:
        yield from sweep(sql, session.user_id, now_ms)
        yield from insert_session(sql, opened, now_ms, ttl_ms)
        return Opened(opened, is_new)
    _, revoked_at, issued_after = found[0]
    opened.issued_after = max(revoked_at, issued_after)
    _check(issued_at, opened.issued_after)
    yield do(
        "UPDATE sessions SET version=?,revoked_at=0,issued_after=?,expires_at=? WHERE sid=?",
        opened.version,
        opened.issued_after,
        now_ms + ttl_ms,
        session.sid,
    )
    return Opened(opened, is_new)


def _check(issued_at: int, issued_after: int) -> None:
    if issued_at <= issued_after:
        raise NexoError("session_invalid", "The token was issued before its session was ended")
