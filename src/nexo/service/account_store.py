"""The port that accounts need. As for all ports, a method may raise `server_busy` when the database cannot be reached,
and has then changed nothing; times are those of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nexo.core.accounts import Credentials, Issued, PasswordChanged, Reused, TokenHash
from nexo.core.model import Session, User


class AccountStore(Protocol):
    """Users, their passwords and sessions, and whom they blocked. Hashes are made by the caller; a password
    hash never repeats, because its salt is random."""

    async def add_user(
        self,
        user_id: str,
        password_hash: str,
        nickname: str,
        avatar: str,
        extra: str | None,
        is_admin: bool,
        code_hash: str | None = None,
    ) -> User:
        """Or `user_exists`. With `code_hash` one use of that code is taken, or `registration_closed` is raised; codes
        are counted exactly, however many register at once."""

    async def add_code(self, code_hash: str, uses: int, ttl_ms: int, actor: str) -> int:
        """Adds a code with so many uses, and its entry of the audit log. Returns when the code expires."""

    async def check_code(self, code_hash: str) -> None:
        """Raises `registration_closed` unless the code is known and has a use left."""

    async def user(self, user_id: str) -> User:
        """Or `user_not_found`."""

    async def users(self, user_ids: Sequence[str]) -> dict[str, User]:
        """Returns those of these users that exist."""

    async def search(self, prefix: str, limit: int) -> list[User]:
        """Whose id, or nickname as `fold` writes it, begins so."""

    async def list_users(self, after: str, limit: int) -> list[User]:
        """Returns users in the order of their ids."""

    async def update(self, user_id: str, changes: dict[str, str | None]) -> User:
        """`changes` has some of nickname, avatar and extra."""

    async def set_admin(self, user_id: str, is_admin: bool) -> User: ...

    async def credentials(self, user_id: str) -> Credentials | None: ...

    async def replace_hash(self, user_id: str, old_hash: str, new_hash: str) -> None:
        """The same password hashed anew: no session ends, and a password changed meanwhile stays."""

    async def create_session(self, session: Session, token_hash: TokenHash, ttl_ms: int) -> Issued:
        """A session of the version in `session`: if that is no longer its user's, it never lives."""

    async def live_session(self, sid: str) -> Session | None:
        """Neither revoked nor of another version than its user; one statement."""

    async def revoke_session(self, sid: str) -> None: ...

    async def sessions_changed(self, since_ms: int) -> tuple[int, list[tuple[str, int]]]:
        """Returns the time, and the users of whom sessions have ended or changed since then, through any instance or
        command, each with a number that differs after every change."""

    async def rotate_token(
        self, old_hash: TokenHash, new_hash: TokenHash, grace_ms: int, ttl_ms: int
    ) -> Issued | Reused | None:
        """Exchange a refresh token; for `grace_ms` afterwards the old one yields another successor.
        `Reused` after that, for any earlier token of the family, with the session ended; None when the token or its
        session is unknown or over.
        Exchanges in one session happen one after the other."""

    async def change_password(
        self, session: Session, old_hash: str, new_hash: str, token_hash: TokenHash, ttl_ms: int
    ) -> PasswordChanged:
        """All at once: a new password and version, the end of all other sessions and of this one's old
        tokens, and this session's new token. `invalid_credentials` when the hash is `old_hash` no longer,
        `session_invalid` when this session has ended."""

    async def set_password(self, user_id: str, new_hash: str) -> list[str]:
        """A new password, and the end of every session; their sids."""

    async def block(self, user_id: str, other_id: str) -> None:
        """Under the lock that sending takes: afterwards nothing of the other's is stored. `user_not_found`."""

    async def unblock(self, user_id: str, other_id: str) -> None: ...

    async def blocks(self, user_id: str) -> list[str]: ...
