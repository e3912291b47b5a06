"""The interface between the delivery of webhooks and the store."""

from __future__ import annotations

from typing import Protocol

from nexo.core.hooks import Hook


class HookStates(Protocol):
    async def all(self) -> list[Hook]: ...

    async def set_failing(self, hook: Hook, since: int) -> None:
        """Note since when a webhook fails; 0: it does not."""

    async def give_up(self, hook: Hook, reason: str) -> None:
        """Pause a webhook and note why."""
