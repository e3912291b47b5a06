"""The session: signing in, its tokens in the storage, and one refresh for all concurrent callers. Tokens are those of
a login, or of the application's `get_token`."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from nexo_client.core.ids import now_ms
from nexo_client.errors import ClientError
from nexo_client.http import Http
from nexo_client.types import Session, Storage

_REFRESH_AT = 0.8  # of the lifetime of an access token
_OVER = ("session_invalid", "unauthorized", "reauth_uid_mismatch", "user_disabled", "user_deleted")
_LEAST_MS = 1000  # between two refreshes, also with a clock that is ahead of the server's
_NEVER_MS = 1 << 53  # of a token that does not show when it expires

GetToken = Callable[[], Awaitable[str | None]]


class Sessions:
    def __init__(
        self,
        http: Http,
        storage: Storage,
        platform_id: int,
        device_id: str | None,
        get_token: GetToken | None,
        changed: Callable[[Session | None], None],
    ) -> None:
        self.session: Session | None = None
        self._http = http
        self._storage = storage
        self._platform_id = platform_id
        self._device_id = device_id
        self._get_token = get_token
        self._changed = changed
        self._refreshing: asyncio.Task[Session] | None = None

    async def device_id(self) -> str:
        """Returns the id of this device, made once and stored."""
        if self._device_id is None:
            self._device_id = await self._storage.get("device")
        if self._device_id is None:
            self._device_id = f"py-{secrets.token_hex(8)}"
            await self._storage.set("device", self._device_id)
        return self._device_id

    async def login(self, user_id: str, password: str) -> Session:
        params = {"user_id": user_id, "password": password, "platform_id": self._platform_id}
        data = await self._http.call("POST", "/auth/login", params | {"device_id": await self.device_id()})
        return await self._adopt(data)

    @property
    def can_ask(self) -> bool:
        """Whether the application gives tokens."""
        return self._get_token is not None

    async def ask(self, user_id: str | None = None) -> Session:
        """Signs in with a token of the application, which must be one of `user_id` if that is given."""
        assert self._get_token is not None
        try:
            token = await self._get_token()
        except ClientError:
            raise
        except Exception as error:  # such as an unreachable backend of the product: tried again
            raise ClientError("network", f"get_token: {error}") from error
        if not token:
            raise ClientError("unauthorized", "get_token gave no token")
        found = str((await self._http.call("GET", "/user/info", token=token))["user_id"])
        if user_id is not None and found != user_id:
            raise ClientError("reauth_uid_mismatch", f"get_token gave a token of {found}, not of {user_id}")
        data = {"user_id": found, "access_token": token, "refresh_token": "", "expires_at": _expires_at(token)}
        return await self._adopt(data)

    async def change_password(self, old: str, new: str) -> Session:
        params = {"old_password": old, "new_password": new}
        token = await self.fresh_token()
        return await self._adopt(await self._http.call("POST", "/auth/password", params, token=token))

    async def restore(self, session: Session | None, expect_user: str | None = None) -> Session | None:
        """Returns the session, or the stored one. One that is of another user than expected is deleted."""
        if session is None:
            stored = await self._storage.get("session")
            session = None if stored is None else msgspec.convert(stored, Session)
        if session is not None and expect_user not in (None, session.user_id):
            await self._storage.delete("session")
            return None
        if session is not None:
            await self._store(session)
        return session

    async def forget(self) -> None:
        self.session = None
        self._changed(None)
        await self._storage.delete("session")

    async def fresh_token(self, *, renew: bool = False) -> str:
        """Returns a valid access token. Raises `session_invalid` when the server does not give one."""
        session = self.session
        if session is None:
            raise ClientError("unauthorized", "Sign in first")
        if renew or now_ms() >= session.refresh_at:
            try:
                session = await self.refresh()
            except ClientError as error:
                if renew or not error.is_transient or now_ms() >= session.expires_at:
                    raise
        return session.access_token

    async def refresh(self) -> Session:
        """Exchanges the tokens, once for all concurrent callers."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        return await asyncio.shield(self._refreshing)

    async def _refresh(self) -> Session:
        session = self.session
        if session is None:
            raise ClientError("unauthorized", "Sign in first")
        if session.refresh_token:
            try:
                params = {"refresh_token": session.refresh_token}
                return await self._adopt(await self._http.call("POST", "/auth/refresh", params))
            except ClientError as error:
                if not self.can_ask or not self.is_over(error):
                    raise
        if not self.can_ask:
            raise ClientError("session_invalid", "The access token cannot be refreshed")
        return await self.ask(session.user_id)

    async def _adopt(self, data: dict[str, Any]) -> Session:
        now = now_ms()
        session = Session(
            user_id=data["user_id"],
            access_token=data["access_token"],
            refresh_token=data["refresh_token"],
            expires_at=data["expires_at"],
            refresh_at=now + max(int((data["expires_at"] - now) * _REFRESH_AT), _LEAST_MS),
            platform_id=self._platform_id,
            device_id=await self.device_id(),
        )
        await self._store(session)
        return session

    async def _store(self, session: Session) -> None:
        # Stored before it is used: the old refresh token is valid for a moment only.
        await self._storage.set("session", msgspec.to_builtins(session))
        self.session = session
        self._changed(session)

    @staticmethod
    def is_over(error: ClientError) -> bool:
        return error.reason in _OVER


def _expires_at(token: str) -> int:
    """Returns when a JWT expires, in ms, without checking it: the server does that."""
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return int(claims["exp"]) * 1000
    except (IndexError, KeyError, TypeError, ValueError):
        return _NEVER_MS
