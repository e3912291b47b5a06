"""The caller of a route: a user with a token, or a product's backend with a key, which acts for itself or for a user.

One rule for all routes: a route with `scopes` is for keys with one of these scopes (`moderate`: also for
administrators); every other route that needs a user takes a user's token, or a key that acts for a user. The key of a
bot acts as its own user. Any other key needs the scope `act` and names the user in `Nexo-User`.
"""

from __future__ import annotations

from nexo.api.authentication import Authentication
from nexo.api.middleware import Context
from nexo.api.route import NO_SESSION, Caller, Route, Services
from nexo.core.keys import ApiKey, is_key
from nexo.core.model import Session, SessionOrigin
from nexo.errors import NexoError
from nexo.ids import is_reserved, is_user_id
from nexo.service.accounts import Accounts
from nexo.service.limits import count_for_key

MODERATE = "moderate"


class Callers:
    def __init__(self, authentication: Authentication, services: Services) -> None:
        self._authentication = authentication
        self._accounts = services.accounts
        self._backend = services.backend
        self._limits = services.limits
        self._last_seen = services.people.last_seen

    async def caller_of(self, row: Route, context: Context) -> Caller:
        authorization = context.headers.get(b"authorization")
        key_text = _key_text(authorization)
        if key_text is not None:
            key = await self._key(key_text, context)
            count_for_key()
            context.user_id = f"key:{key.key_id}"
            if row.own_scope in key.scopes and b"nexo-user" not in context.headers:
                return Caller(NO_SESSION, context.address, key, context.path_id)
            if row.scopes:
                _check_scopes(key, row)
                return Caller(NO_SESSION, context.address, key, context.path_id)
            session = await self._act(row, key, context)
            return Caller(session, context.address, key, context.path_id)
        session = await self._session(authorization, context)
        context.user_id = session.user_id
        if row.scopes:
            await self._check_moderator(row, session)
        return Caller(session, context.address, None, context.path_id)

    async def _key(self, text: str, context: Context) -> ApiKey:
        try:
            return await self._backend.keys.authenticate(text)
        except NexoError:
            self._limits.request_from(context.address)
            raise

    async def _session(self, authorization: bytes | None, context: Context) -> Session:
        """Returns the session of a request that counts: for its user, or without a valid token for its address."""
        try:
            session = await self._authentication.session_of(authorization)
        except NexoError:
            self._limits.request_from(context.address)
            raise
        self._limits.request_of(session.user_id)
        self._last_seen.note(session, context.address, always=False)
        return session

    async def _act(self, row: Route, key: ApiKey, context: Context) -> Session:
        """Returns the session in which a key acts for a user."""
        named = context.headers.get(b"nexo-user", b"").decode("latin-1")
        if not row.by_key:
            raise NexoError("scope_missing", f"{row.method} {row.path} is for users themselves: no key opens it")
        if key.user_id is not None:
            if named and named != key.user_id:
                raise NexoError("identity_mismatch", f"This key acts as {key.user_id} only")
            named = key.user_id
        else:
            key.check_scope("act")
            if not named:
                raise NexoError("missing_user", "Name the user for whom the key acts in the header Nexo-User")
        if not is_user_id(named) or is_reserved(named):
            raise NexoError("bad_user", "The header Nexo-User is not a user id")
        context.user_id = f"{named} (key:{key.key_id})"
        await self._backend.accounts.check_may_act(named)
        return Session(f"key:{key.key_id}", named, 0, "", 0, origin=SessionOrigin.KEY)

    async def _check_moderator(self, row: Route, session: Session) -> None:
        if MODERATE in row.scopes and await is_administrator(self._accounts, session):
            return
        if row.path.startswith("/admin/"):
            raise NexoError("no_permission", "Only for administrators, and keys with the scope moderate")
        raise _scope_missing(row)


async def is_administrator(accounts: Accounts, session: Session) -> bool:
    """Returns whether the session has an administrator's rights: not one that a backend or a product has opened."""
    return session.may_administer and (await accounts.info(session.user_id)).is_admin


def _check_scopes(key: ApiKey, row: Route) -> None:
    if not set(row.scopes) & set(key.scopes):
        raise _scope_missing(row)


def _scope_missing(row: Route) -> NexoError:
    return NexoError("scope_missing", f"This call needs a key with the scope {' or '.join(row.scopes)}")


def _key_text(authorization: bytes | None) -> str | None:
    """Returns the key of an `Authorization` header, if it holds one."""
    scheme, _, token = (authorization or b"").partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    text = token.strip().decode("latin-1")
    return text if is_key(text) else None
