"""Users and sessions as the rest of Nexo knows them: each method one script on one database."""

from __future__ import annotations

from collections.abc import Sequence

from nexo.core.accounts import Credentials, Issued, PasswordChanged, Reused
from nexo.core.model import Session, User
from nexo.errors import NexoError
from nexo.ids import single_conversation_id
from nexo.store import accounts, sessions
from nexo.store.conversations import create_singles
from nexo.store.database import Database
from nexo.store.engine import Conflict


class SqlAccounts:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql

    async def add_user(
        self, user_id: str, password_hash: str, nickname: str, avatar: str, extra: str | None, is_admin: bool
    ) -> User:
        try:
            return await self._database.change(
                lambda: accounts.insert_user(user_id, password_hash, nickname, avatar, extra, is_admin)
            )
        except Conflict:
            found = await self.credentials(user_id)
            if found is None or found.password_hash != password_hash:
                raise NexoError("user_exists", f"The user id {user_id} is taken") from None
            return await self.user(user_id)  # ours: an attempt that seemed to fail had been committed

    async def user(self, user_id: str) -> User:
        return await self._database.look(lambda: accounts.read_user(user_id))

    async def users(self, user_ids: Sequence[str]) -> dict[str, User]:
        return await self._database.look(lambda: accounts.read_users(self._sql, user_ids))

    async def search(self, prefix: str, limit: int) -> list[User]:
        return await self._database.look(lambda: accounts.search_users(prefix, limit))

    async def list_users(self, after: str, limit: int) -> list[User]:
        return await self._database.look(lambda: accounts.list_users(after, limit))

    async def update(self, user_id: str, changes: dict[str, str | None]) -> User:
        return await self._database.change(lambda: accounts.update_user(user_id, changes))

    async def set_admin(self, user_id: str, is_admin: bool) -> User:
        return await self._database.change(lambda: accounts.set_admin(user_id, is_admin))

    async def credentials(self, user_id: str) -> Credentials | None:
        return await self._database.look(lambda: accounts.read_credentials(user_id))

    async def replace_hash(self, user_id: str, old_hash: str, new_hash: str) -> None:
        await self._database.change(lambda: accounts.replace_hash(user_id, old_hash, new_hash))

    async def create_session(self, session: Session, token_hash: str, ttl_ms: int) -> Issued:
        return await self._database.change(lambda: sessions.create_session(self._sql, session, token_hash, ttl_ms))

    async def live_session(self, sid: str) -> Session | None:
        return await self._database.look(lambda: sessions.read_live(sid))

    async def revoke_session(self, sid: str) -> None:
        await self._database.change(lambda: sessions.revoke_session(sid))

    async def rotate_token(self, old_hash: str, new_hash: str, grace_ms: int, ttl_ms: int) -> Issued | Reused | None:
        return await self._database.change(
            lambda: sessions.rotate_token(self._sql, old_hash, new_hash, grace_ms, ttl_ms)
        )

    async def change_password(
        self, session: Session, old_hash: str, new_hash: str, token_hash: str, ttl_ms: int
    ) -> PasswordChanged:
        return await self._database.change(
            lambda: sessions.change_password(self._sql, session, old_hash, new_hash, token_hash, ttl_ms)
        )

    async def set_password(self, user_id: str, new_hash: str) -> list[str]:
        return await self._database.change(lambda: sessions.set_password(self._sql, user_id, new_hash))

    async def block(self, user_id: str, other_id: str) -> None:
        if not await self._write_block(user_id, other_id, True):
            chat = single_conversation_id(user_id, other_id)
            await self._database.change(lambda: create_singles(self._sql, [chat]))
            await self._write_block(user_id, other_id, True)

    async def unblock(self, user_id: str, other_id: str) -> None:
        if not await self._write_block(user_id, other_id, False):
            await self.user(other_id)  # without a chat there was no block, but perhaps no such user either

    async def blocks(self, user_id: str) -> list[str]:
        return await self._database.look(lambda: accounts.list_blocks(user_id))

    async def _write_block(self, user_id: str, other_id: str, on: bool) -> bool:
        return await self._database.change(lambda: accounts.write_block(self._sql, user_id, other_id, on))
