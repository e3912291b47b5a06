"""Accounts: register, sign in and out, keep a session going, profiles, blocking.

A session is good while its row is neither revoked nor of another version than its user's, which a change
of password raises. The database decides; a cache of at most `auth.session_cache_s` saves asking it each
time. What ends here is forgotten here at once and told to `on_ended`, for sockets and other instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import structlog
from msgspec import UNSET, UnsetType, structs

from nexo.config import Config
from nexo.core.accounts import Issued, Reused
from nexo.core.content import EXTRA_MAX_BYTES, check_text, encode_json
from nexo.core.model import Session, User
from nexo.errors import NexoError
from nexo.ids import check_user_id, is_user_id, new_session_id, new_user_id, now_ms
from nexo.metrics.families import Sample
from nexo.service.account_store import AccountStore
from nexo.service.passwords import Passwords
from nexo.service.session_cache import SessionCache
from nexo.service.tokens import AccessTokens, SignedIn, hash_refresh_token, new_refresh_token

log = structlog.get_logger()

NICKNAME_MAX_CHARS = 128
AVATAR_MAX_CHARS = 512
DEVICE_ID_MAX_CHARS = 128
SEARCH_MAX = 100
PLATFORM_WEB = 5
_PLATFORMS = range(1, 11)


class Accounts:
    def __init__(
        self,
        store: AccountStore,
        config: Config,
        secret: str,
        on_ended: Callable[[list[str]], None] | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """`on_ended` is called with the sids of sessions that were ended here; `clock` (in milliseconds)
        says when access tokens have expired."""
        self._store = store
        self._may_search = config.user.search
        self._grace_ms = config.auth.refresh_grace_s * 1000
        self._refresh_ttl_ms = config.auth.refresh_ttl_s * 1000
        self._access = AccessTokens(secret, config.auth.access_ttl_s, clock)
        self._on_ended = on_ended
        self.passwords = Passwords(config)
        self.cache = SessionCache(config.auth.session_cache_s)

    def samples(self) -> Iterable[Sample]:
        yield from self.cache.samples()
        yield from self.passwords.samples()

    def close(self) -> None:
        self.passwords.close()

    # -- who one is ----------------------------------------------------------------------------------

    async def register(
        self,
        password: str,
        user_id: str | None = None,
        nickname: str = "",
        avatar: str = "",
        extra: Any = None,
        *,
        is_admin: bool = False,
    ) -> User:
        new_id = new_user_id() if user_id is None else user_id
        check_user_id(new_id)
        self.passwords.check_new(password)
        check_text(nickname, "nickname", NICKNAME_MAX_CHARS)
        check_text(avatar, "avatar", AVATAR_MAX_CHARS)
        extra_json = _extra_json(extra)
        password_hash = await self.passwords.hash(password)
        return await self._store.add_user(new_id, password_hash, nickname, avatar, extra_json, is_admin)

    async def login(
        self, user_id: str, password: str, platform_id: int = PLATFORM_WEB, device_id: str = ""
    ) -> SignedIn:
        if type(platform_id) is not int or platform_id not in _PLATFORMS:
            raise NexoError("bad_platform_id", "platform_id is a number from 1 to 10")
        check_text(device_id, "device_id", DEVICE_ID_MAX_CHARS)
        known = None
        if is_user_id(user_id):
            known = await self._store.credentials(user_id)
        if not await self.passwords.matches(password, known and known.password_hash) or known is None:
            raise NexoError("invalid_credentials")
        if self.passwords.is_outdated(known.password_hash):
            await self._rehash(user_id, password, known.password_hash)
        # of the version the password was read with: should it change meanwhile, this session never lives
        session = Session(new_session_id(), user_id, platform_id, device_id, known.session_version)
        token = new_refresh_token()
        token_hash = hash_refresh_token(token)
        issued = await self._store.create_session(session, token_hash, self._refresh_ttl_ms)
        return self._signed_in(issued, token)

    async def refresh(self, refresh_token: str) -> SignedIn:
        old_hash = hash_refresh_token(refresh_token)
        token = new_refresh_token()
        new_hash = hash_refresh_token(token)
        outcome = await self._store.rotate_token(old_hash, new_hash, self._grace_ms, self._refresh_ttl_ms)
        if isinstance(outcome, Issued):
            return self._signed_in(outcome, token)
        if isinstance(outcome, Reused):
            log.warning("refresh_token_reused", user_id=outcome.session.user_id, sid=outcome.session.sid)
            self._ended([outcome.session.sid])
        raise NexoError("session_invalid")

    async def logout(self, session: Session) -> None:
        await self._store.revoke_session(session.sid)
        self._ended([session.sid])

    async def change_password(self, session: Session, old_password: str, new_password: str) -> SignedIn:
        """Ends all other sessions of the user; this one goes on with the tokens that are returned."""
        self.passwords.check_new(new_password)
        known = await self._store.credentials(session.user_id)
        if not await self.passwords.matches(old_password, known and known.password_hash) or known is None:
            raise NexoError("invalid_credentials")
        new_hash = await self.passwords.hash(new_password)
        token = new_refresh_token()
        token_hash = hash_refresh_token(token)
        changed = await self._store.change_password(
            session, known.password_hash, new_hash, token_hash, self._refresh_ttl_ms
        )
        self.cache.forget_user(session.user_id)
        self._ended(changed.ended)
        log.info("password_changed", user_id=session.user_id, ended=len(changed.ended))
        return self._signed_in(changed.issued, token)

    async def set_password(self, user_id: str, password: str) -> None:
        """By an administrator: nobody is asked for the old one, and every session ends."""
        check_user_id(user_id)
        self.passwords.check_new(password)
        new_hash = await self.passwords.hash(password)
        ended = await self._store.set_password(user_id, new_hash)
        self.cache.forget_user(user_id)
        self._ended(ended)

    async def authenticate(self, token: str) -> Session:
        claims = self._access.read(token)
        session = self.cache.get(claims.sid)
        # A token newer than what is cached: the password was changed through another instance.
        if session is None or session.version < claims.sv:
            session = await self._load(claims.sid)
        if session is None or session.version != claims.sv or session.user_id != claims.user_id:
            raise NexoError("session_invalid")
        return structs.replace(session, expires_at=claims.exp * 1000)

    async def check_session(self, session: Session) -> None:
        """For a live socket: is its session still going on? A change of password through the session
        itself gave it a new version, which does not end its sockets."""
        if self.cache.get(session.sid) is None and await self._load(session.sid) is None:
            raise NexoError("session_invalid")

    def forget(self, sid: str) -> None:
        """Another instance says that this session has ended or changed: ask the database next time."""
        self.cache.forget(sid)

    def forget_user(self, user_id: str) -> None:
        self.cache.forget_user(user_id)

    def forget_all(self) -> None:
        """What other instances said may have been missed."""
        self.cache.forget_all()

    async def _rehash(self, user_id: str, password: str, old_hash: str) -> None:
        try:
            new_hash = await self.passwords.hash(password)
        except NexoError:  # too busy: it can wait for the next login
            return
        await self._store.replace_hash(user_id, old_hash, new_hash)

    async def _load(self, sid: str) -> Session | None:
        return await self.cache.load(sid, lambda: self._store.live_session(sid))

    def _ended(self, sids: list[str]) -> None:
        for sid in sids:
            self.cache.forget(sid)
        if sids and self._on_ended is not None:
            self._on_ended(sids)

    def _signed_in(self, issued: Issued, refresh_token: str) -> SignedIn:
        session = issued.session
        access_token, expires_at = self._access.sign(session, issued.now_ms)
        return SignedIn(
            session.user_id, access_token, refresh_token, expires_at, session.platform_id, session.device_id
        )

    # -- who others are ------------------------------------------------------------------------------

    async def info(self, user_id: str) -> User:
        check_user_id(user_id)
        return await self._store.user(user_id)

    async def users(self, user_ids: list[str]) -> list[User]:
        """Those that exist, in the order asked for, each once."""
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
            changes["avatar"] = check_text(avatar, "avatar", AVATAR_MAX_CHARS)
        if extra is not UNSET:
            changes["extra"] = _extra_json(extra)
        if not changes:
            return await self.info(user_id)
        return await self._store.update(user_id, changes)

    async def set_admin(self, user_id: str, is_admin: bool) -> User:
        check_user_id(user_id)
        return await self._store.set_admin(user_id, is_admin)

    async def block(self, user_id: str, other_id: str) -> list[str]:
        """Once this answers, nothing more of the other's is stored. The answer is who is blocked now."""
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


def _extra_json(extra: Any) -> str | None:
    return None if extra is None else encode_json(extra, "extra", EXTRA_MAX_BYTES)
