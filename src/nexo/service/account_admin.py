"""What a product's backend and administrators do to accounts: create many, hand out tokens, end sessions, disable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import structlog
from msgspec import UNSET, UnsetType

from nexo.core.accounts import Credentials, Issued, RegistrationCode, SessionRow, TokenHash, UserDraft
from nexo.core.content import check_avatar, check_text, encode_extra
from nexo.core.model import Session, SessionOrigin, User
from nexo.errors import NexoError
from nexo.ids import check_new_user_id, check_user_id, new_session_id
from nexo.service.accounts import AVATAR_MAX_CHARS, DEVICE_ID_MAX_CHARS, NICKNAME_MAX_CHARS, PLATFORM_WEB, Accounts
from nexo.service.tokens import TokenSession, hash_refresh_token, new_refresh_token

log = structlog.get_logger()

USERS_MAX = 1000
REASON_MAX_CHARS = 255
TTL_MAX_S = 30 * 86_400
CODE_USES_MAX = 1_000_000
CODE_DAYS_MAX = 3650
_DAY_MS = 86_400_000


class AccountAdminStore(Protocol):
    """As for all ports: `server_busy` when the database cannot be reached. Each act writes its line of the audit log in
    its own transaction."""

    async def put_users(self, users: Sequence[UserDraft]) -> list[User]:
        """Create or update all of them, or none; in the order given."""

    async def state(self, user_id: str) -> Credentials | None: ...

    async def create_session(self, session: Session, token_hash: TokenHash | None, ttl_ms: int) -> Issued: ...

    async def revoke_sessions(self, user_id: str, device_id: str | None, actor: str) -> list[str]:
        """The sids of the sessions that have ended, of one device or of all; or `user_not_found`."""

    async def sessions(self, user_id: str) -> list[SessionRow]:
        """Sessions that have not ended, oldest first; or `user_not_found`."""

    async def disable(self, user_id: str, reason: str, actor: str) -> list[str]:
        """The sids of the sessions that have ended; or `user_not_found`, `user_deleted`."""

    async def enable(self, user_id: str, actor: str) -> None:
        """Or `user_not_found`, `user_deleted`."""


class AccountAdmin:
    def __init__(self, store: AccountAdminStore, accounts: Accounts) -> None:
        self._store = store
        self._accounts = accounts

    async def put_users(self, users: Sequence[tuple[str, Any, Any, Any]]) -> list[User]:
        """Creates or updates users given as id, nickname, avatar and extra; what is UNSET stays as it is."""
        if not users:
            raise NexoError("missing_user", "users is a list of at least one user")
        if len(users) > USERS_MAX:
            raise NexoError("bad_user", f"At most {USERS_MAX} users can be written at once")
        drafts = [_draft(*user) for user in users]
        if len({draft.user_id for draft in drafts}) < len(drafts):
            raise NexoError("bad_user", "A user is in the list twice")
        return await self._store.put_users(drafts)

    async def state(self, user_id: str) -> Credentials:
        check_user_id(user_id)
        state = await self._store.state(user_id)
        if state is None:
            raise NexoError("user_not_found", f"There is no user {user_id}")
        return state

    async def check_may_act(self, user_id: str) -> Credentials:
        """Returns the state of an account that is open."""
        state = await self.state(user_id)
        state.check_open()
        return state

    async def issue_tokens(
        self,
        user_id: str,
        platform_id: int = PLATFORM_WEB,
        device_id: str = "",
        ttl_s: int | None = None,
        *,
        refresh: bool = False,
    ) -> TokenSession:
        """Returns tokens of a new session; without `refresh` its refresh token is empty."""
        check_new_user_id(user_id)  # the server's own accounts are not for clients
        state = await self.check_may_act(user_id)
        if not 1 <= platform_id <= 10:
            raise NexoError("bad_platform_id", "platform_id is a number from 1 to 10")
        check_text(device_id, "device_id", DEVICE_ID_MAX_CHARS)
        if ttl_s is not None and not 1 <= ttl_s <= TTL_MAX_S:
            raise NexoError("bad_ttl", f"ttl_s is a number of seconds from 1 to {TTL_MAX_S}")
        session = Session(
            new_session_id(), user_id, platform_id, device_id, state.session_version, origin=SessionOrigin.KEY
        )
        token = new_refresh_token() if refresh else ""
        token_hash = hash_refresh_token(token) if refresh else None
        lives_ms = self._accounts.refresh_ttl_ms if refresh else (ttl_s or self._accounts.access_ttl_s) * 1000
        issued = await self._store.create_session(session, token_hash, lives_ms)
        return self._accounts.sign(issued, token, ttl_s)

    async def new_code(self, uses: int, days: int, actor: str) -> RegistrationCode:
        """Returns a new code by which so many users may register where `auth.registration` is `invite`."""
        if not 1 <= uses <= CODE_USES_MAX:
            raise NexoError("bad_request", f"uses is a number from 1 to {CODE_USES_MAX}")
        if not 1 <= days <= CODE_DAYS_MAX:
            raise NexoError("bad_request", f"days is a number from 1 to {CODE_DAYS_MAX}")
        return await self._accounts.new_code(uses, days * _DAY_MS, actor)

    async def sessions(self, user_id: str) -> list[SessionRow]:
        check_user_id(user_id)
        return await self._store.sessions(user_id)

    async def revoke_sessions(self, user_id: str, device_id: str | None, actor: str) -> int:
        check_user_id(user_id)
        ended = await self._store.revoke_sessions(user_id, device_id, actor)
        self._accounts.end_sessions(user_id, ended)
        return len(ended)

    async def disable(self, user_id: str, reason: str, actor: str) -> None:
        check_new_user_id(user_id)  # the server needs its own accounts
        check_text(reason, "reason", REASON_MAX_CHARS)
        ended = await self._store.disable(user_id, reason, actor)
        self._accounts.end_sessions(user_id, ended, "user_disabled")
        log.info("user_disabled", user_id=user_id, actor=actor, sessions=len(ended))

    async def enable(self, user_id: str, actor: str) -> None:
        check_user_id(user_id)
        await self._store.enable(user_id, actor)
        log.info("user_enabled", user_id=user_id, actor=actor)


def _draft(
    user_id: str, nickname: str | UnsetType = UNSET, avatar: str | UnsetType = UNSET, extra: Any = UNSET
) -> UserDraft:
    check_new_user_id(user_id)
    given: dict[str, str | None] = {}
    if nickname is not UNSET:
        given["nickname"] = check_text(nickname, "nickname", NICKNAME_MAX_CHARS)
    if avatar is not UNSET:
        given["avatar"] = check_avatar(avatar, AVATAR_MAX_CHARS)
    if extra is not UNSET:
        given["extra"] = encode_extra(extra)
    return UserDraft(user_id, given)
