"""Signing in and staying signed in: the tokens, kept in the storage and refreshed before they expire."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from nexo.client.failures import ClientError
from nexo.client.http import Http
from nexo.client.model import Session
from nexo.client.storage import Storage
from nexo.ids import now_ms

_USED_UP = 0.8  # of its time, and a token is exchanged
_OVER = ("session_invalid", "unauthorized")


class Sessions:
    def __init__(
        self,
        http: Http,
        storage: Storage,
        platform_id: int,
        device_id: str | None,
        changed: Callable[[Session | None], None],
    ) -> None:
        self.session: Session | None = None
        self._http = http
        self._storage = storage
        self._platform_id = platform_id
        self._device_id = device_id
        self._changed = changed
        self._refreshing: asyncio.Task[Session] | None = None

    async def device_id(self) -> str:
        """Made once and kept."""
        if self._device_id is None:
            self._device_id = await self._storage.get("device")
        if self._device_id is None:
            self._device_id = f"py-{secrets.token_hex(8)}"
            await self._storage.set("device", self._device_id)
        return self._device_id

    async def login(self, user_id: str, password: str) -> Session:
        asked = {"user_id": user_id, "password": password, "platform_id": self._platform_id}
        data = await self._http.call("POST", "/auth/login", asked | {"device_id": await self.device_id()})
        return await self._take(data)

    async def change_password(self, old: str, new: str) -> Session:
        asked = {"old_password": old, "new_password": new}
        return await self._take(await self._http.call("POST", "/auth/password", asked, token=await self.fresh_token()))

    async def restore(self, session: Session | None) -> Session | None:
        if session is None:
            kept = await self._storage.get("session")
            session = None if kept is None else msgspec.convert(kept, Session)
        if session is not None:
            await self._keep(session)
        return session

    async def forget(self) -> None:
        self.session = None
        await self._storage.delete("session")
        self._changed(None)

    async def fresh_token(self, *, renew: bool = False) -> str:
        """One that can be shown now. Raises `session_invalid` when there is none to be had."""
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
        """One exchange serves all who wait for it."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        return await asyncio.shield(self._refreshing)

    async def _refresh(self) -> Session:
        session = self.session
        if session is None:
            raise ClientError("unauthorized", "Sign in first")
        asked = {"refresh_token": session.refresh_token}
        return await self._take(await self._http.call("POST", "/auth/refresh", asked))

    async def _take(self, data: dict[str, Any]) -> Session:
        now = now_ms()
        session = Session(
            user_id=data["user_id"],
            access_token=data["access_token"],
            refresh_token=data["refresh_token"],
            expires_at=data["expires_at"],
            refresh_at=now + int((data["expires_at"] - now) * _USED_UP),
            platform_id=self._platform_id,
            device_id=await self.device_id(),
        )
        await self._keep(session)
        return session

    async def _keep(self, session: Session) -> None:
        # kept before it is used: the old refresh token is good for a moment only
        await self._storage.set("session", msgspec.to_builtins(session))
        self.session = session
        self._changed(session)

    @staticmethod
    def is_over(error: ClientError) -> bool:
        return error.reason in _OVER
