"""All webhooks on this instance: follows the table of webhooks, and runs a delivery for each that is active."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import structlog

from nexo.background import Background, Running
from nexo.config import Config
from nexo.core.hooks import Hook, HookStatus
from nexo.errors import NexoError
from nexo.hooks.before_send import BeforeSend
from nexo.hooks.delivery import HookDelivery
from nexo.hooks.ports import HookStates
from nexo.hooks.window import EVENTS_MAX
from nexo.journal.ports import JournalStore
from nexo.metrics import families as f
from nexo.metrics.families import Sample

log = structlog.get_logger()

LOOK_EVERY_S = 2.0  # a change by a command, or on another instance, takes effect within this time and a lease


class _RunningHook(NamedTuple):
    delivery: HookDelivery
    running: Running


class Hooks:
    """`owner` names this instance among all that share the database."""

    def __init__(
        self, store: JournalStore, states: HookStates, config: Config, background: Background, owner: str
    ) -> None:
        self._store = store
        self._states = states
        self._config = config
        self._background = background
        self._owner = owner
        self._changed = asyncio.Event()
        self._hooks: dict[str, _RunningHook] = {}
        self.woken: dict[str, asyncio.Event] = {}  # of each delivery, for the journal
        self._by_status: Counter[HookStatus] = Counter()
        self._following: Running | None = None
        self.gate: BeforeSend | None = None  # the question before a send, for its metrics

    def start(self) -> None:
        if self._config.hooks.deliver:
            self._following = self._background.serve("hooks", self._follow)

    def look(self) -> None:
        """Look at the table of webhooks now: it was changed here."""
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            self._changed.clear()
            try:
                await self._apply(await self._states.all())
            except NexoError as error:
                log.warning("hooks_not_read", error=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._changed.wait()

    async def _apply(self, found: list[Hook]) -> None:
        self._by_status = Counter(hook.status for hook in found)
        active = {hook.hook_id: hook for hook in found if hook.status is HookStatus.ACTIVE}
        for hook_id, one in list(self._hooks.items()):
            wanted = active.get(hook_id)
            if wanted is None or wanted.revision != one.delivery.hook.revision:
                del self._hooks[hook_id], self.woken[hook_id]
                await one.running.stop()
        for hook_id, hook in active.items():
            if hook_id not in self._hooks:
                settings = self._config.journal
                delivery = HookDelivery(
                    hook,
                    self._store,
                    self._states,
                    self._config.hooks,
                    self._owner,
                    settings.takeover_s,
                    settings.poll_ms / 1000,
                )
                running = self._background.serve(f"hook_{hook_id}", delivery.run)
                self._hooks[hook_id] = _RunningHook(delivery, running)
                self.woken[hook_id] = delivery.woken

    async def stop(self) -> None:
        """Stop all deliveries and release their leases, so that other instances take them at once."""
        if self._following is not None:
            await self._following.stop()
        self.woken.clear()
        while self._hooks:
            _, one = self._hooks.popitem()
            await one.running.stop()

    def samples(self) -> Iterable[Sample]:
        if self.gate is not None:
            yield from self.gate.samples()
        for status in HookStatus:
            yield f.HOOKS(self._by_status[status], status.word)
        for one in self._hooks.values():
            delivery = one.delivery
            name = delivery.hook.name
            yield f.HOOK_EVENTS(delivery.events, name)
            yield f.HOOK_LOST(delivery.lost_rows, name)
            for result, count in delivery.attempts.items():
                yield f.HOOK_REQUESTS(count, name, result)
            if delivery.is_held:
                yield f.HOOK_LAG(delivery.lag_s, name)
                yield f.HOOK_WAITING(delivery.waiting, name)
                yield f.HOOK_WAITING_LIMIT(EVENTS_MAX, name)
