"""Users as rows: profiles, password hashes, and blocks. Sessions are in `sessions.py`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from nexo.core.accounts import Credentials
from nexo.core.filter import fold
from nexo.core.model import User
from nexo.errors import NexoError
from nexo.ids import single_conversation_id
from nexo.store import rows
from nexo.store.conversations import lock_conversation
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.files.uses import avatar_file, set_avatar
from nexo.store.journal import writing
from nexo.store.sql import Sql

USER = User.__struct_fields__
CREDENTIALS = rows.columns(Credentials._fields)
SEARCH_KEY_CHARS = 128
_USER = rows.columns(USER)
_AT_ONCE = 500
_LAST_CHARACTER = chr(0x10FFFF)  # every engine orders keys by code point: nothing sorts behind it


def search_key(text: str) -> str:
    """Returns the folded form of a nickname, by which it is searched, cut to the size of the column."""
    return fold(text)[:SEARCH_KEY_CHARS]


def _user(row: Any) -> User:
    user_id, nickname, avatar, extra, is_admin, created_at, deleted_at = row
    return User(user_id, nickname, avatar, extra, bool(is_admin), created_at, deleted_at)


def insert_user(
    user_id: str, password_hash: str, nickname: str, avatar: str, extra: str | None, is_admin: bool
) -> Script[User]:
    """Inserts a user. Raises Conflict when the id is taken, also by an earlier run of this script whose commit was not
    confirmed: the hash, whose salt is random, shows which call wrote the row."""
    now_ms = yield NOW
    if avatar_file(avatar):
        raise NexoError("file_not_found", "A new user has no file yet: upload one after signing in")
    yield do(
        "INSERT INTO users (user_id,password_hash,nickname,nickname_key,avatar,extra,is_admin,created_at,updated_at) "
        "VALUES (?,?,?,?,?,?,?,?,?)",
        user_id,
        password_hash,
        nickname,
        search_key(nickname),
        avatar,
        extra,
        int(is_admin),
        now_ms,
        now_ms,
    )
    yield from writing.note(now_ms, writing.user(user_id, "created"))
    return User(user_id, nickname, avatar, extra, is_admin, now_ms)


def read_users(sql: Sql, user_ids: Sequence[str]) -> Script[dict[str, User]]:
    """Returns the users that exist."""
    found: dict[str, User] = {}
    for start in range(0, len(user_ids), _AT_ONCE):
        chosen = sql.one_of("user_id", user_ids[start : start + _AT_ONCE])
        for row in (yield query(f"SELECT {_USER} FROM users WHERE {chosen.sql}", *chosen.params)):
            found[row[0]] = _user(row)
    return found


def search_users(prefix: str, limit: int) -> Script[list[User]]:
    """Returns users whose id or nickname begins with `prefix`, alternating, so that both kinds appear."""
    found = []
    for column, start in (("user_id", prefix), ("nickname_key", search_key(prefix))):
        found.append(
            (
                yield query(
                    f"SELECT {_USER} FROM users WHERE {column}>=? AND {column}<? AND deleted_at=0 "
                    f"ORDER BY {column} LIMIT {int(limit)}",
                    start,
                    start + _LAST_CHARACTER,
                )
            )
        )
    merged = {row[0]: row for pair in zip_longest(*found) for row in pair if row is not None}
    return [_user(row) for row in list(merged.values())[:limit]]


def list_users(after: str, limit: int) -> Script[list[User]]:
    """Returns a page in the order of ids; the next page starts after its last id."""
    found = yield query(f"SELECT {_USER} FROM users WHERE user_id>? ORDER BY user_id LIMIT {int(limit)}", after)
    return [_user(row) for row in found]


def update_user(sql: Sql, user_id: str, changes: dict[str, str | None]) -> Script[User]:
    """Updates columns of a profile by name. Returns the user."""
    values = dict(changes)
    if "avatar" in values:
        yield from set_avatar(sql, f"u:{user_id}", user_id, values["avatar"] or "")
    if "nickname" in values:
        values["nickname_key"] = search_key(values["nickname"] or "")
    now_ms = yield NOW
    assignments = ",".join(f"{column}=?" for column in (*values, "updated_at"))
    yield do(f"UPDATE users SET {assignments} WHERE user_id=?", *values.values(), now_ms, user_id)
    yield from writing.note(now_ms, writing.user(user_id, "updated"))
    return (yield from read_user(user_id))


def read_user(user_id: str) -> Script[User]:
    found = yield query(f"SELECT {_USER} FROM users WHERE user_id=?", user_id)
    if not found:
        raise NexoError("user_not_found", f"There is no user {user_id}")
    return _user(found[0])


def set_admin(user_id: str, is_admin: bool) -> Script[User]:
    yield do("UPDATE users SET is_admin=? WHERE user_id=?", int(is_admin), user_id)
    yield from writing.note((yield NOW), writing.user(user_id, "updated"))
    return (yield from read_user(user_id))


def read_credentials(user_id: str) -> Script[Credentials | None]:
    found = yield query(f"SELECT {CREDENTIALS} FROM users WHERE user_id=?", user_id)
    return Credentials(*found[0]) if found else None


def replace_hash(user_id: str, old_hash: str, new_hash: str) -> Script[None]:
    """Replaces the hash of the same password: no session ends, and a password that was changed meanwhile stays."""
    yield do("UPDATE users SET password_hash=? WHERE user_id=? AND password_hash=?", new_hash, user_id, old_hash)


def write_password(sql: Sql, user_id: str, new_hash: str, old_hash: str | None) -> Script[int]:
    """Sets a password, only in place of `old_hash` if that is given. Returns the version that sessions
    must have from now on; those of any other have ended."""
    found = yield query(
        f"SELECT password_hash,session_version FROM users WHERE user_id=?{sql.for_update}",
        user_id,
    )
    if not found:
        raise NexoError("user_not_found", f"There is no user {user_id}")
    present_hash, version = found[0]
    if present_hash == new_hash:  # hashes never repeat: an earlier run of this script was committed
        return int(version)
    if old_hash is not None and present_hash != old_hash:  # another change was faster
        raise NexoError("invalid_credentials")
    now_ms = yield NOW
    yield do(
        "UPDATE users SET password_hash=?,session_version=?,updated_at=? WHERE user_id=?",
        new_hash,
        version + 1,
        now_ms,
        user_id,
    )
    return int(version) + 1


def write_block(sql: Sql, user_id: str, other_id: str, on: bool) -> Script[bool]:
    """Block or unblock under the lock that sending takes too, so that no send is stored in between.

    The mark that senders meet is in the row of the blocked one in the single chat; `blocks` is the list
    that its owner sees. False, and nothing done, when that chat does not exist yet.
    """
    conversation = yield from lock_conversation(sql, single_conversation_id(user_id, other_id))
    if conversation is None:
        return False
    yield do("UPDATE members SET blocked=? WHERE conv=? AND user_id=?", int(on), conversation.id, other_id)
    if on:
        now_ms = yield NOW
        yield do("DELETE FROM contact_requests WHERE to_id=? AND from_id=?", user_id, other_id)
        columns = ("user_id", "blocked_id", "created_at")
        yield do(sql.insert_ignore("blocks", columns, columns[:2]), user_id, other_id, now_ms)
    else:
        yield do("DELETE FROM blocks WHERE user_id=? AND blocked_id=?", user_id, other_id)
    return True


def blockers(sql: Sql, user_id: str, among: Sequence[str]) -> Script[set[str]]:
    """Returns the users among these who have blocked `user_id`."""
    found: set[str] = set()
    for start in range(0, len(among), _AT_ONCE):
        chosen = sql.one_of("user_id", among[start : start + _AT_ONCE])
        statement = f"SELECT user_id FROM blocks WHERE blocked_id=? AND {chosen.sql}"
        found.update(row[0] for row in (yield query(statement, user_id, *chosen.params)))
    return found


def list_blocks(user_id: str) -> Script[list[str]]:
    found = yield query("SELECT blocked_id FROM blocks WHERE user_id=? ORDER BY blocked_id", user_id)
    return [row[0] for row in found]
