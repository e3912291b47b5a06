"""What a product's own backend does with its key: `NexoBackend`. docs/clients.md describes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

from nexo_client.acting_user import ActingUser
from nexo_client.backend_events import LIMIT, WAIT_S, BackendEvents
from nexo_client.errors import ClientError
from nexo_client.http import Call, Http, decode
from nexo_client.types import BackendUser, IssuedToken, User


class NexoBackend:
    """A Nexo server as the backend of a product uses it, with a key that `nexo key add` printed."""

    def __init__(self, url: str, key: str, *, timeout_ms: int = 10_000) -> None:
        self._http = Http(_checked_url(url), timeout_ms / 1000)
        self._key = _checked_key(key)
        self.users = BackendUsers(self.call)
        self.tokens = BackendTokens(self.call)
        self.sessions = BackendSessions(self.call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()

    async def call(self, method: str, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """Performs any call of the HTTP API by the key; returns `data` of the answer."""
        return await self._call(method, path, params)

    async def _call(self, method: str, path: str, params: Mapping[str, Any] | None, **how: Any) -> Any:
        return await self._http.call(method, path, params, token=self._key, **how)

    def act(self, user_id: str) -> ActingUser:
        """Returns the calls of a user, done by the key: it needs the scope `act`."""
        return ActingUser(user_id, self._call)

    def events(
        self, cursor: str | None = None, types: Sequence[str] = (), *, limit: int = LIMIT, wait_s: int = WAIT_S
    ) -> BackendEvents:
        """Returns what happens after `cursor`, for `async for`: from now on without one, with `begin` from the oldest
        that is kept. `types` are names such as `message.saved`; none are all."""
        return BackendEvents(self._call, cursor, types, limit, wait_s)


def _checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ClientError("bad_url", "Begin the address of the server with http:// or https://")
    return url.rstrip("/")


def _checked_key(key: str) -> str:
    """Returns the key without the line end of the file that it was read from. The error does not show the key."""
    key = key.strip()
    if not key or not all("!" <= letter <= "~" for letter in key):
        raise ClientError("bad_key", "Pass the key as `nexo key add` printed it: it is empty, or has other characters")
    return key


class BackendUsers:
    """`backend.users`: needs the scope `users`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def put(self, users: Iterable[Mapping[str, Any]]) -> list[User]:
        """Creates users, or changes those that exist: `{"user_id", "nickname"?, "avatar"?, "extra"?}` each, at most
        1000. They need no password."""
        data = await self._call("PUT", "/server/users", {"users": [dict(user) for user in users]})
        return decode(data["users"], list[User])

    async def get(self, user_id: str) -> BackendUser:
        return decode(await self._call("GET", _path(user_id), None), BackendUser)

    async def disable(self, user_id: str, reason: str = "") -> None:
        """Ends the user's connections and refuses new ones."""
        await self._call("POST", f"{_path(user_id)}/disable", {"reason": reason})

    async def enable(self, user_id: str) -> None:
        await self._call("POST", f"{_path(user_id)}/enable", {})


class BackendTokens:
    """`backend.tokens`: needs the scope `tokens`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def create(
        self,
        user_id: str,
        *,
        platform_id: int | None = None,
        device_id: str | None = None,
        ttl_s: int | None = None,
        refresh: bool = False,
    ) -> IssuedToken:
        """Returns an access token with which a client of the user signs in."""
        asked = {"user_id": user_id, "platform_id": platform_id, "device_id": device_id, "ttl_s": ttl_s}
        return decode(await self._call("POST", "/server/tokens", asked | {"refresh": refresh or None}), IssuedToken)


class BackendSessions:
    """`backend.sessions`: needs the scope `tokens`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def revoke(self, user_id: str, device_id: str | None = None) -> int:
        """Ends the sessions of a user, or those of one device; returns how many."""
        asked = {"user_id": user_id, "device_id": device_id}
        return int((await self._call("POST", "/server/sessions/revoke", asked))["revoked"])


def _path(user_id: str) -> str:
    return f"/server/users/{quote(user_id, safe='')}"
