"""Accounts: register, sign in and out, keep a session going, profiles, blocking.

A session is valid while its row is neither revoked nor of another version than its user's, which a change
of password raises. The database decides; a cache of at most `auth.session_cache_s` saves asking it each
time. A session that ends here leaves the cache at once and is reported to `on_ended`, for sockets and other instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import structlog
from msgspec import UNSET, UnsetType, structs

from nexo.config import Config
from nexo.core.accounts import Issued, RegistrationCode, Reused
from nexo.core.content import check_avatar, check_text, encode_extra
from nexo.core.model import Session, User
from nexo.errors import NexoError
from nexo.ids import check_new_user_id, check_user_id, is_user_id, new_session_id, new_user_id, now_ms
from nexo.metrics.families import Sample
from nexo.service.account_store import AccountStore
from nexo.service.passwords import Passwords
from nexo.service.session_cache import SessionCache
from nexo.service.tokens import (
    AccessTokens,
    TokenSession,
    hash_code,
    hash_refresh_token,
    new_code,
    new_refresh_token,
)

log = structlog.get_logger()

NICKNAME_MAX_CHARS = 128
AVATAR_MAX_CHARS = 512
DEVICE_ID_MAX_CHARS = 128
CODE_MAX_CHARS = 64
SEARCH_MAX = 100
PLATFORM_WEB = 5
_PLATFORMS = range(1, 11)


class OtherTokens(Protocol):
    """Tokens that this server has not signed."""

    async def authenticate(self, token: str, cache: SessionCache) -> Session:
        """Returns the session of a token, or raises the reason why it has none."""


class Accounts:
    def __init__(
        self,
        store: AccountStore,
        config: Config,
        secret: str,
        on_ended: Callable[[list[str], str], None] | None = None,
        clock: Callable[[], int] = now_ms,
        on_renewed: Callable[[Session], None] | None = None,
        external: OtherTokens | None = None,
    ) -> None:
        """`on_ended` is called with the sids of sessions that were ended here and the error that their sockets get,
        `on_renewed` with one that has a new version: its older tokens are no longer valid. `clock` (in milliseconds)
        decides when access tokens have expired. `external` takes a product's own tokens."""
        self._external = external
        self._has_passwords = config.auth.passwords
        self._store = store
        self._may_search = config.user.search
        self._registration = config.auth.registration
        self._grace_ms = config.auth.refresh_grace_s * 1000
        self.refresh_ttl_ms = config.auth.refresh_ttl_s * 1000
        self.access_ttl_s = config.auth.access_ttl_s
        self._access = AccessTokens(secret, config.auth.access_ttl_s, clock)
        self._on_ended = on_ended
        self._on_renewed = on_renewed
        self.passwords = Passwords(config)
        self.cache = SessionCache(config.auth.session_cache_s)

    def samples(self) -> Iterable[Sample]:
        yield from self.cache.samples()
        yield from self.passwords.samples()

    def close(self) -> None:
        self.passwords.close()

    # -- who one is ----------------------------------------------------------------------------------

    async def sign_up(
        self,
        password: str,
        user_id: str | None = None,
        nickname: str = "",
        avatar: str = "",
        extra: Any = None,
        *,
        code: str = "",
        address: str = "",
    ) -> User:
        """Registers a user by their own request, as far as `auth.registration` allows."""
        self.check_passwords()
        if self._registration == "open":
            code_hash = None
        elif self._registration == "invite" and code and len(code) <= CODE_MAX_CHARS:
            code_hash = hash_code(code)
            await self._store.check_code(code_hash)  # before a password is hashed for it
        else:
            raise NexoError("registration_closed")
        return await self.register(password, user_id, nickname, avatar, extra, address=address, code_hash=code_hash)

    async def new_code(self, uses: int, ttl_ms: int, actor: str = "command line") -> RegistrationCode:
        """Returns a new code, which allows so many users to register until it expires."""
        code = new_code()
        expires_at = await self._store.add_code(hash_code(code), uses, ttl_ms, actor)
        return RegistrationCode(code, expires_at, uses)

    async def register(
        self,
        password: str,
        user_id: str | None = None,
        nickname: str = "",
        avatar: str = "",
        extra: Any = None,
        *,
        is_admin: bool = False,
        address: str = "",
        code_hash: str | None = None,
    ) -> User:
        """`address` is the caller's: addresses take turns at hashing. A use of the code is taken with the user."""
        new_id = new_user_id() if user_id is None else user_id
        check_new_user_id(new_id)
        self.passwords.check_new(password)
        check_text(nickname, "nickname", NICKNAME_MAX_CHARS)
        check_avatar(avatar, AVATAR_MAX_CHARS)
        extra_json = encode_extra(extra)
        password_hash = await self.passwords.hash(password, address)
        return await self._store.add_user(new_id, password_hash, nickname, avatar, extra_json, is_admin, code_hash)

    def check_passwords(self) -> None:
        """Raises where users have no passwords."""
        if not self._has_passwords:
            raise NexoError("passwords_off")

    async def hash_new(self, password: str, address: str) -> str:
        self.passwords.check_new(password)
        return await self.passwords.hash(password, address)

    async def login(
        self, user_id: str, password: str, platform_id: int = PLATFORM_WEB, device_id: str = "", address: str = ""
    ) -> TokenSession:
        self.check_passwords()
        if type(platform_id) is not int or platform_id not in _PLATFORMS:
            raise NexoError("bad_platform_id", "platform_id is a number from 1 to 10")
        check_text(device_id, "device_id", DEVICE_ID_MAX_CHARS)
        known = None
        if is_user_id(user_id):
            known = await self._store.credentials(user_id)
        if not await self.passwords.matches(password, known and known.password_hash, address) or known is None:
            if known is not None and known.deleted_at:  # no password opens it any more
                raise NexoError("user_deleted")
            raise NexoError("invalid_credentials")
        known.check_open()
        if self.passwords.is_outdated(known.password_hash):
            await self._rehash(user_id, password, known.password_hash, address)
        # of the version the password was read with: should it change meanwhile, this session never lives
        session = Session(new_session_id(), user_id, platform_id, device_id, known.session_version, address=address)
        token = new_refresh_token()
        token_hash = hash_refresh_token(token)
        issued = await self._store.create_session(session, token_hash, self.refresh_ttl_ms)
        return self.sign(issued, token)

    async def refresh(self, refresh_token: str) -> TokenSession:
        old_hash = hash_refresh_token(refresh_token)
        token = new_refresh_token(refresh_token)
        new_hash = hash_refresh_token(token)
        outcome = await self._store.rotate_token(old_hash, new_hash, self._grace_ms, self.refresh_ttl_ms)
        if isinstance(outcome, Issued):
            return self.sign(outcome, token)
        if isinstance(outcome, Reused):
            log.warning("refresh_token_reused", user_id=outcome.session.user_id, sid=outcome.session.sid)
            self._ended([outcome.session.sid])
        raise NexoError("session_invalid")

    async def logout(self, session: Session) -> None:
        await self._store.revoke_session(session.sid)
        self._ended([session.sid])

    async def check_password(self, user_id: str, password: str, address: str = "") -> None:
        """Raises `invalid_credentials` unless this is the user's password."""
        self.check_passwords()
        known = await self._store.credentials(user_id)
        if not await self.passwords.matches(password, known and known.password_hash, address) or known is None:
            raise NexoError("invalid_credentials")

    async def change_password(
        self, session: Session, old_password: str, new_password: str, address: str = ""
    ) -> TokenSession:
        """Ends all other sessions of the user; this one continues with the returned tokens."""
        self.check_passwords()
        self.passwords.check_new(new_password)
        known = await self._store.credentials(session.user_id)
        if not await self.passwords.matches(old_password, known and known.password_hash, address) or known is None:
            raise NexoError("invalid_credentials")
        new_hash = await self.passwords.hash(new_password, address)
        token = new_refresh_token()
        token_hash = hash_refresh_token(token)
        changed = await self._store.change_password(
            session, known.password_hash, new_hash, token_hash, self.refresh_ttl_ms
        )
        self.cache.forget_user(session.user_id)
        self._ended(changed.ended)
        if self._on_renewed is not None:
            self._on_renewed(changed.issued.session)
        log.info("password_changed", user_id=session.user_id, ended=len(changed.ended))
        return self.sign(changed.issued, token)

    async def set_password(self, user_id: str, password: str) -> None:
        """Sets a password as an administrator: the old one is not needed, and every session ends."""
        check_user_id(user_id)
        self.passwords.check_new(password)
        new_hash = await self.passwords.hash(password)
        ended = await self._store.set_password(user_id, new_hash)
        self.cache.forget_user(user_id)
        self._ended(ended)

    async def authenticate(self, token: str) -> Session:
        try:
            claims = self._access.read(token)
        except NexoError as error:
            if self._external is None or error.name != "unauthorized":
                raise
            return await self._external.authenticate(token, self.cache)
        session = self.cache.get(claims.sid)
        # A token newer than what is cached: the password was changed through another instance.
        if session is None or session.version < claims.sv:
            session = await self._load(claims.sid)
        if session is None or session.version != claims.sv or session.user_id != claims.user_id:
            raise await self._why_over(claims.user_id)
        return structs.replace(session, expires_at=claims.exp * 1000)

    async def _why_over(self, user_id: str) -> NexoError:
        """Returns the error for the bearer of a session that has ended."""
        known = await self._store.credentials(user_id)
        try:
            if known is not None:
                known.check_open()
        except NexoError as error:
            return error
        return NexoError("session_invalid")

    async def check_session(self, session: Session) -> Session:
        """Returns the session of a live socket as it is now, with a newer version if the password was changed through
        it; or raises."""
        known = self.cache.get(session.sid)
        if known is None:
            known = await self._load(session.sid)
        if known is None:
            raise await self._why_over(session.user_id)
        if known.issued_after > session.issued_after:  # it ended, and a newer token of a product opened it again
            raise NexoError("session_invalid")
        return known

    async def changed_since(self, since_ms: int) -> tuple[int, list[tuple[str, int]]]:
        """See `AccountStore.sessions_changed`."""
        return await self._store.sessions_changed(since_ms)

    def forget(self, sid: str) -> None:
        """Drops a session that another instance reported as ended or changed: the database is asked next time."""
        self.cache.forget(sid)

    def forget_user(self, user_id: str) -> None:
        self.cache.forget_user(user_id)

    def forget_all(self) -> None:
        """Drops all sessions, because reports of other instances may have been lost."""
        self.cache.forget_all()

    async def _rehash(self, user_id: str, password: str, old_hash: str, address: str) -> None:
        try:
            new_hash = await self.passwords.hash(password, address)
        except NexoError:  # too busy: it can wait for the next login
            return
        await self._store.replace_hash(user_id, old_hash, new_hash)

    async def _load(self, sid: str) -> Session | None:
        return await self.cache.load(sid, lambda: self._store.live_session(sid))

    def end_sessions(self, user_id: str, sids: list[str], reason: str = "session_invalid") -> None:
        """Closes the sockets of sessions that have ended in the database, with this error."""
        self.cache.forget_user(user_id)
        self._ended(sids, reason)

    def _ended(self, sids: list[str], reason: str = "session_invalid") -> None:
        for sid in sids:
            self.cache.forget(sid)
        if sids and self._on_ended is not None:
            self._on_ended(sids, reason)

    def sign(self, issued: Issued, refresh_token: str, ttl_s: int | None = None) -> TokenSession:
        """Returns the tokens of a session; its access token lives `auth.access_ttl_s` unless another time is given."""
        session = issued.session
        access_token, expires_at = self._access.sign(session, issued.now_ms, ttl_s)
        return TokenSession(
            session.user_id, access_token, refresh_token, expires_at, session.platform_id, session.device_id
        )

    # -- who others are ------------------------------------------------------------------------------

    async def info(self, user_id: str) -> User:
        check_user_id(user_id)
        return await self._store.user(user_id)

    async def users(self, user_ids: list[str]) -> list[User]:
        """Returns the users that exist, in the order asked for, each once."""
        wanted = [user_id for user_id in dict.fromkeys(user_ids) if is_user_id(user_id)]
        found = await self._store.users(wanted)
        return [found[user_id] for user_id in wanted if user_id in found]

    async def page(self, after: str = "", limit: int = 500) -> list[User]:
        """All users, in the order of their ids; for administrators."""
        return await self._store.list_users(after, limit)

    async def search(self, prefix: str, limit: int = 20) -> list[User]:
        if not self._may_search:
            raise NexoError("no_permission", "Looking for users is switched off on this server")
        if not prefix:
            raise NexoError("missing_query")
        check_text(prefix, "query", NICKNAME_MAX_CHARS)
        if not 1 <= limit <= SEARCH_MAX:
            raise NexoError("bad_limit", f"limit is a number from 1 to {SEARCH_MAX}")
        return await self._store.search(prefix, limit)

    async def update(
        self,
        user_id: str,
        nickname: str | UnsetType = UNSET,
        avatar: str | UnsetType = UNSET,
        extra: Any = UNSET,
    ) -> User:
        """Change what is given and nothing else; `extra=None` empties it."""
        changes: dict[str, str | None] = {}
        if nickname is not UNSET:
            changes["nickname"] = check_text(nickname, "nickname", NICKNAME_MAX_CHARS)
        if avatar is not UNSET:
            changes["avatar"] = check_avatar(avatar, AVATAR_MAX_CHARS)
        if extra is not UNSET:
            changes["extra"] = encode_extra(extra)
        if not changes:
            return await self.info(user_id)
        return await self._store.update(user_id, changes)

    async def set_admin(self, user_id: str, is_admin: bool) -> User:
        check_user_id(user_id)
        return await self._store.set_admin(user_id, is_admin)

    async def block(self, user_id: str, other_id: str) -> list[str]:
        """Block a user: once this returns, sends of that user to this user are refused. Returns all blocked users."""
        _check_other(user_id, other_id)
        await self._store.block(user_id, other_id)
        return await self.blocks(user_id)

    async def unblock(self, user_id: str, other_id: str) -> list[str]:
        _check_other(user_id, other_id)
        await self._store.unblock(user_id, other_id)
        return await self.blocks(user_id)

    async def blocks(self, user_id: str) -> list[str]:
        return await self._store.blocks(user_id)


def _check_other(user_id: str, other_id: str) -> None:
    check_user_id(other_id)
    if other_id == user_id:
        raise NexoError("bad_user_id", "You cannot block or unblock yourself")
