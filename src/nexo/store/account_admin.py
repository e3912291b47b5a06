"""What backends and administrators do to accounts, as scripts: create many, disable, end sessions.

Each act and its line in the audit log are one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexo.core.accounts import Credentials, Issued, SessionRow, TokenHash, UserDraft
from nexo.core.model import Session, User
from nexo.errors import NexoError
from nexo.store import audit, sessions
from nexo.store.accounts import CREDENTIALS, read_credentials, read_users, search_key
from nexo.store.database import Database
from nexo.store.engine import NOW, Conflict, Script, do
from nexo.store.engine import rows as query
from nexo.store.files.uses import set_avatar
from nexo.store.journal import writing
from nexo.store.publish_seam import PublishSeam
from nexo.store.sql import Sql

NO_PASSWORD = "!"  # no password matches it


class SqlAccountAdmin:
    """Accounts behind the port `service.account_admin.AccountAdminStore`."""

    def __init__(self, database: Database, seam: PublishSeam | None = None) -> None:
        self._database = database
        self._sql = database.sql
        self._seam = seam or PublishSeam()

    async def put_users(self, users: Sequence[UserDraft]) -> list[User]:
        def publish(done: list[User]) -> None:
            for user in done:
                self._seam.account_changed(user.user_id)

        while True:
            try:
                return await self._database.change_and_publish(lambda: put_users(self._sql, users), publish)
            except Conflict:  # another call created one of them at the same moment: the second run finds it
                continue

    async def state(self, user_id: str) -> Credentials | None:
        return await self._database.look(lambda: read_credentials(user_id))

    async def create_session(self, session: Session, token_hash: TokenHash | None, ttl_ms: int) -> Issued:
        return await self._database.change(lambda: sessions.create_session(self._sql, session, token_hash, ttl_ms))

    async def revoke_sessions(self, user_id: str, device_id: str | None, actor: str) -> list[str]:
        return await self._database.change(lambda: _revoke(self._sql, user_id, device_id, actor))

    async def sessions(self, user_id: str) -> list[SessionRow]:
        return await self._database.look(lambda: _sessions(user_id))

    async def note_reset(self, user_id: str, actor: str) -> None:
        await self._database.change(lambda: audit.write(actor, "user.password_reset", user_id, {}))

    async def reset_password(self, user_id: str, old_hash: str, new_hash: str) -> list[str]:
        return await self._database.change(lambda: sessions.set_password(self._sql, user_id, new_hash, old_hash))

    async def disable(self, user_id: str, reason: str, actor: str) -> list[str]:
        return await self._database.change_and_publish(
            lambda: _disable(self._sql, user_id, reason, actor), lambda _: self._seam.account_changed(user_id)
        )

    async def enable(self, user_id: str, actor: str) -> None:
        await self._database.change_and_publish(
            lambda: _enable(self._sql, user_id, actor), lambda _: self._seam.account_changed(user_id)
        )


def locked_state(sql: Sql, user_id: str) -> Script[Credentials]:
    """Returns the state of an account that is not closed, and locks its row."""
    found = yield query(f"SELECT {CREDENTIALS} FROM users WHERE user_id=?{sql.for_update}", user_id)
    if not found:
        raise NexoError("user_not_found", f"There is no user {user_id}")
    state = Credentials(*found[0])
    if state.deleted_at:
        raise NexoError("user_deleted", f"The account {user_id} has been closed")
    return state


def put_users(sql: Sql, drafts: Sequence[UserDraft]) -> Script[list[User]]:
    """Inserts the users that do not exist and updates existing ones. Sorted to avoid deadlock."""
    now_ms = yield NOW
    known = yield from read_users(sql, [draft.user_id for draft in drafts])
    if closed := sorted(user_id for user_id, user in known.items() if user.deleted_at):
        raise NexoError("user_deleted", f"The account {closed[0]} has been closed", user_ids=closed)
    changes: list[tuple[str, str]] = []
    for draft in sorted(drafts, key=lambda draft: draft.user_id):
        given = {name: value for name, value in draft.given.items() if value is not None or name == "extra"}
        if "nickname" in given:
            given["nickname_key"] = search_key(given["nickname"] or "")
        if "avatar" in given:
            yield from set_avatar(sql, f"u:{draft.user_id}", draft.user_id, given["avatar"] or "")
        if draft.user_id in known:
            assignments = ",".join(f"{column}=?" for column in (*given, "updated_at"))
            yield do(f"UPDATE users SET {assignments} WHERE user_id=?", *given.values(), now_ms, draft.user_id)
            changes.append((draft.user_id, "updated"))
        else:
            values: dict[str, Any] = {"user_id": draft.user_id, "password_hash": NO_PASSWORD, **given}
            values |= {"created_at": now_ms, "updated_at": now_ms}
            marks = ",".join("?" * len(values))
            yield do(f"INSERT INTO users ({','.join(values)}) VALUES ({marks})", *values.values())
            changes.append((draft.user_id, "created"))
    yield from writing.note(now_ms, writing.users(changes))
    done = yield from read_users(sql, [draft.user_id for draft in drafts])
    return [done[draft.user_id] for draft in drafts]


def _revoke(sql: Sql, user_id: str, device_id: str | None, actor: str) -> Script[list[str]]:
    if not (yield query("SELECT 1 FROM users WHERE user_id=?", user_id)):
        raise NexoError("user_not_found", f"There is no user {user_id}")
    if device_id is None:
        ended = yield from sessions.revoke_others(sql, user_id, "")
    else:
        ended = yield from sessions.revoke_device(sql, user_id, device_id)
    yield from audit.write(actor, "session.revoke", user_id, {"device_id": device_id, "sessions": len(ended)})
    return ended


def _sessions(user_id: str) -> Script[list[SessionRow]]:
    if not (yield query("SELECT 1 FROM users WHERE user_id=?", user_id)):
        raise NexoError("user_not_found", f"There is no user {user_id}")
    found = yield query(
        "SELECT s.device_id,s.platform_id,s.created_at,s.expires_at FROM sessions s JOIN users u "
        "ON u.user_id=s.user_id WHERE s.user_id=? AND s.revoked_at=0 AND s.expires_at>? "
        "AND s.version=u.session_version ORDER BY s.created_at,s.sid",
        user_id,
        (yield NOW),
    )
    return [SessionRow(*row) for row in found]


def _disable(sql: Sql, user_id: str, reason: str, actor: str) -> Script[list[str]]:
    """Returns the sids of the sessions that end. Disabling again changes only the reason."""
    state = yield from locked_state(sql, user_id)
    now_ms = yield NOW
    yield do(
        "UPDATE users SET disabled_at=?,disabled_reason=?,session_version=session_version+1,updated_at=? "
        "WHERE user_id=?",
        state.disabled_at or now_ms,
        reason,
        now_ms,
        user_id,
    )
    ended = yield from sessions.revoke_others(sql, user_id, "")
    if not state.disabled_at:
        yield from writing.note(now_ms, writing.user(user_id, "disabled"))
    yield from audit.write(actor, "user.disable", user_id, {"reason": reason})
    return ended


def _enable(sql: Sql, user_id: str, actor: str) -> Script[None]:
    state = yield from locked_state(sql, user_id)
    if not state.disabled_at:
        return
    now_ms = yield NOW
    yield do("UPDATE users SET disabled_at=0,disabled_reason='',updated_at=? WHERE user_id=?", now_ms, user_id)
    yield from writing.note(now_ms, writing.user(user_id, "enabled"))
    yield from audit.write(actor, "user.enable", user_id, {})
