"""Users and sessions behind the ports: each method runs one script on one database."""

from __future__ import annotations

from collections.abc import Sequence

from nexo.core.accounts import Credentials, Issued, PasswordChanged, Reused, TokenHash
from nexo.core.model import Session, User
from nexo.errors import NexoError
from nexo.ids import single_conversation_id
from nexo.store import accounts, external_sessions, sessions
from nexo.store import registration_codes as codes
from nexo.store.conversations import create_singles
from nexo.store.database import Database
from nexo.store.engine import Conflict, Script
from nexo.store.publish_seam import PublishSeam


class SqlAccounts:
    def __init__(self, database: Database, seam: PublishSeam | None = None) -> None:
        """Without a `seam` changes are not reported: no server runs in this process."""
        self._database = database
        self._sql = database.sql
        self._seam = seam or PublishSeam()

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
        def script() -> Script[User]:
            if code_hash is not None:
                yield from codes.take_use(self._sql, code_hash, user_id, password_hash)
            return (yield from accounts.insert_user(user_id, password_hash, nickname, avatar, extra, is_admin))

        try:
            return await self._database.change_and_publish(script, self._changed)
        except Conflict:
            found = await self.credentials(user_id)
            if found is None or found.password_hash != password_hash:
                raise NexoError("user_exists", f"The user id {user_id} is taken") from None
            return await self.user(user_id)  # an earlier attempt of this call was committed

    async def add_code(self, code_hash: str, uses: int, ttl_ms: int, actor: str) -> int:
        return await self._database.change(lambda: codes.add_code(self._sql, code_hash, uses, ttl_ms, actor))

    async def check_code(self, code_hash: str) -> None:
        await self._database.look(lambda: codes.check_code(code_hash))

    def _changed(self, user: User) -> None:
        self._seam.account_changed(user.user_id)

    async def user(self, user_id: str) -> User:
        return await self._database.look(lambda: accounts.read_user(user_id))

    async def users(self, user_ids: Sequence[str]) -> dict[str, User]:
        return await self._database.look(lambda: accounts.read_users(self._sql, user_ids))

    async def search(self, prefix: str, limit: int) -> list[User]:
        return await self._database.look(lambda: accounts.search_users(prefix, limit))

    async def list_users(self, after: str, limit: int) -> list[User]:
        return await self._database.look(lambda: accounts.list_users(after, limit))

    async def update(self, user_id: str, changes: dict[str, str | None]) -> User:
        return await self._database.change_and_publish(
            lambda: accounts.update_user(self._sql, user_id, changes), self._changed
        )

    async def set_admin(self, user_id: str, is_admin: bool) -> User:
        return await self._database.change_and_publish(lambda: accounts.set_admin(user_id, is_admin), self._changed)

    async def open_external(self, session: Session, issued_at: int, ttl_ms: int, *, create_user: bool) -> Session:
        known = await self._database.look(lambda: external_sessions.look_up(session, issued_at, ttl_ms))
        if known is not None:
            return known

        def publish(opened: external_sessions.Opened) -> None:
            if opened.is_new_user:
                self._seam.account_changed(session.user_id)

        while True:
            try:
                opened = await self._database.change_and_publish(
                    lambda: external_sessions.open_external(self._sql, session, issued_at, ttl_ms, create_user), publish
                )
            except Conflict:  # another token created the user or the session at the same moment
                continue
            return opened.session

    async def credentials(self, user_id: str) -> Credentials | None:
        return await self._database.look(lambda: accounts.read_credentials(user_id))

    async def replace_hash(self, user_id: str, old_hash: str, new_hash: str) -> None:
        await self._database.change(lambda: accounts.replace_hash(user_id, old_hash, new_hash))

    async def create_session(self, session: Session, token_hash: TokenHash, ttl_ms: int) -> Issued:
        return await self._database.change(lambda: sessions.create_session(self._sql, session, token_hash, ttl_ms))

    async def live_session(self, sid: str) -> Session | None:
        return await self._database.look(lambda: sessions.read_live(sid))

    async def revoke_session(self, sid: str) -> None:
        await self._database.change(lambda: sessions.revoke_session(self._sql, sid))

    async def sessions_changed(self, since_ms: int) -> tuple[int, list[tuple[str, int]]]:
        return await self._database.look(lambda: sessions.changed_since(since_ms))

    async def rotate_token(
        self, old_hash: TokenHash, new_hash: TokenHash, grace_ms: int, ttl_ms: int
    ) -> Issued | Reused | None:
        return await self._database.change(
            lambda: sessions.rotate_token(self._sql, old_hash, new_hash, grace_ms, ttl_ms)
        )

    async def change_password(
        self, session: Session, old_hash: str, new_hash: str, token_hash: TokenHash, ttl_ms: int
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
        def publish(is_done: bool) -> None:
            if is_done:
                self._seam.audience_changed(single_conversation_id(user_id, other_id))

        return await self._database.change_and_publish(
            lambda: accounts.write_block(self._sql, user_id, other_id, on), publish
        )
