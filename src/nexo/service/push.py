"""Devices that are registered for push: what a client may register, and how it ends that."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from nexo.core.model import Session
from nexo.core.push import KINDS, language_of
from nexo.errors import NexoError

TOKEN_MAX_CHARS = 4096
DEVICE_MAX_CHARS = 128
LANG_MAX_CHARS = 35
_APNS_TOKEN = re.compile("[0-9A-Fa-f]{16,400}")

CheckSubscription = Callable[[object], str]


class TargetStore(Protocol):
    async def register(
        self, user_id: str, sid: str, kind: str, address: str, device_id: str, lang: str, max_per_user: int
    ) -> None:
        """Registers a device in one transaction; the same address leaves the session it had. Repeating is harmless."""

    async def unregister(
        self, user_id: str, sid: str, kind: str | None, address: str | None, device_id: str | None
    ) -> int: ...


class RegisteredDevice(NamedTuple):
    kind: str
    device_id: str
    lang: str


class PushDevices:
    """`check_subscription` returns the subscription of a browser as it is kept, or raises `bad_subscription`."""

    def __init__(
        self,
        store: TargetStore,
        kinds: Collection[str],
        public_key: str | None,
        check_subscription: CheckSubscription,
        max_per_user: int,
        changed: Callable[[], None],
    ) -> None:
        self._store = store
        self.kinds = [kind for kind in KINDS if kind in kinds]
        self.public_key = public_key
        self._check_subscription = check_subscription
        self._max_per_user = max_per_user
        self._changed = changed

    async def register(
        self,
        session: Session,
        kind: str,
        token: str | None,
        subscription: object | None,
        device_id: str,
        lang: str,
    ) -> RegisteredDevice:
        self._check_kind(kind)
        if kind not in self.kinds:
            raise NexoError(
                "bad_kind", f"This server does not send notifications of the kind {kind}; see GET /push/config"
            )
        address = self._address(kind, token, subscription)
        if address is None:
            raise NexoError("missing_subscription" if kind == "web" else "missing_token")
        _check_device(device_id)
        if len(lang) > LANG_MAX_CHARS:
            raise NexoError("bad_request", f"lang has at most {LANG_MAX_CHARS} characters")
        made = RegisteredDevice(kind, device_id, language_of(lang))
        await self._store.register(
            session.user_id, session.sid, kind, address, device_id, made.lang, self._max_per_user
        )
        self._changed()
        return made

    async def unregister(
        self,
        session: Session,
        kind: str | None,
        token: str | None,
        subscription: object | None,
        device_id: str | None,
    ) -> int:
        """Returns how many devices were removed."""
        address: str | None = None
        if kind is not None:
            self._check_kind(kind)
        if token is not None or subscription is not None:
            address = self._address(kind or ("web" if subscription is not None else ""), token, subscription)
        if device_id is not None:
            _check_device(device_id)
        return await self._store.unregister(session.user_id, session.sid, kind, address, device_id)

    def _check_kind(self, kind: str) -> None:
        if kind not in KINDS:
            raise NexoError("bad_kind", f"A kind is one of {', '.join(KINDS)}")

    def _address(self, kind: str, token: str | None, subscription: object | None) -> str | None:
        if kind == "web":
            return None if subscription is None else self._check_subscription(subscription)
        if token is None:
            return None
        is_text = token.isprintable() and 0 < len(token) <= TOKEN_MAX_CHARS
        if not is_text or (kind == "apns" and not _APNS_TOKEN.fullmatch(token)):
            raise NexoError("bad_token", "The token is not one of this kind")
        return token.lower() if kind == "apns" else token


def _check_device(device_id: str) -> None:
    if not device_id or len(device_id) > DEVICE_MAX_CHARS:
        raise NexoError("bad_device_id", f"A device_id has 1 to {DEVICE_MAX_CHARS} characters")
