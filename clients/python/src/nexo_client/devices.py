"""The user's sessions on all devices (`client.devices`), and notifications on them while the user is away
(`client.push`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexo_client.http import Call, decode
from nexo_client.types import Device


class Devices:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def list(self) -> list[Device]:
        return decode((await self._call("GET", "/session/list", {}))["sessions"], list[Device])

    async def revoke(self, session_id: str) -> None:
        """Signs one out."""
        await self._call("POST", "/session/revoke", {"session_id": session_id})

    async def revoke_others(self) -> int:
        """Signs all out but this one; returns how many."""
        return int((await self._call("POST", "/session/revoke", {"others": True}))["revoked"])


class WebPushKey(Struct, frozen=True):
    """`public_key` is the `applicationServerKey` of browsers."""

    public_key: str


class PushConfig(Struct, frozen=True):
    """The kinds of push that the server sends."""

    kinds: list[str]
    web: WebPushKey | None = None


class Push:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def config(self) -> PushConfig:
        """Returns the kinds that the server sends, and the key for browsers."""
        return decode(await self._call("GET", "/push/config", {}), PushConfig)

    async def register(
        self,
        kind: str,
        device_id: str,
        *,
        token: str | None = None,
        subscription: Mapping[str, Any] | None = None,
        lang: str | None = None,
    ) -> None:
        """Registers this device; it ends with the session."""
        device = {"kind": kind, "device_id": device_id, "token": token, "subscription": subscription, "lang": lang}
        await self._call("POST", "/push/register", device)

    async def unregister(
        self,
        *,
        kind: str | None = None,
        device_id: str | None = None,
        token: str | None = None,
        subscription: Mapping[str, Any] | None = None,
    ) -> int:
        """Ends the registration of this session, or of the device that is named. Returns how many were removed."""
        device = {"kind": kind, "device_id": device_id, "token": token, "subscription": subscription}
        return decode((await self._call("POST", "/push/unregister", device))["removed"], int)
