"""What a product's backend can do, behind the routes under `/server`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from msgspec import Struct

from nexo.core.audit import AuditEntry
from nexo.core.journal import EventsPage
from nexo.service.account_admin import AccountAdmin
from nexo.service.hooks import HookAdmin
from nexo.service.keys import Keys
from nexo.service.moderation import Moderation
from nexo.service.password_resets import PasswordResets
from nexo.service.tracing import Tracing


class AuditStore(Protocol):
    async def write(self, actor: str, act: str, target: str, detail: dict[str, Any]) -> None: ...

    async def read(self, before: int, limit: int, target: str) -> list[AuditEntry]:
        """Entries below an id (0: from the newest), newest first; of one target, or of all ('')."""


class EventSource(Protocol):
    async def poll(self, cursor: str | None, types: Collection[str] | None, limit: int, wait_s: float) -> EventsPage:
        """Returns the entries after a cursor (None: from now on; `begin`: the oldest), as soon as there are some; none
        after `wait_s`. Raises `bad_cursor`, `cursor_expired`, and `too_many_requests` when too many callers wait."""


class Backend(Struct, frozen=True):
    keys: Keys
    accounts: AccountAdmin
    audit: AuditStore
    events: EventSource
    hooks: HookAdmin
    moderation: Moderation
    resets: PasswordResets
    tracing: Tracing
