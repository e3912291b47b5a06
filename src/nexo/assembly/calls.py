"""Calls on an open store, with the presence of all instances."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from nexo.assembly.core import Core
from nexo.background import Background
from nexo.calls.calls import Calls
from nexo.delivery.delivery import Delivery
from nexo.delivery.hub import Hub
from nexo.gateway.call_handlers import CallHandlers
from nexo.ports import Bus, PresenceStore
from nexo.ports.ringing import Ringer
from nexo.service.limits import Limits
from nexo.store.sql_calls import SqlCalls


class CallPresence:
    """The port `calls.ports.Connected` over the connections of this instance and the presence of other instances."""

    def __init__(self, hub: Hub, bus: Bus, presence: PresenceStore) -> None:
        self._hub = hub
        self._bus = bus
        self._presence = presence

    async def among(self, user_ids: Collection[str]) -> set[str] | None:
        here = self._hub.online_users()
        found = {user_id for user_id in user_ids if user_id in here}
        others = [user_id for user_id in user_ids if user_id not in found]
        if not others or not self._bus.is_shared:
            return found
        if not self._bus.is_up:
            return None
        return found | (await self._presence.on_other_instances(others)).keys()


class CallParts(NamedTuple):
    calls: Calls
    handlers: CallHandlers  # for connections


def make_calls(
    core: Core,
    bus: Bus,
    presence: PresenceStore,
    delivery: Delivery,
    background: Background,
    limits: Limits,
    ringer: Ringer,
) -> CallParts:
    """Returns calls; the watch over those that have not ended is started."""
    config, store = core.config, core.store
    calls = Calls(
        config.calls,
        SqlCalls(store.database, store.seam, config),
        CallPresence(delivery.hub, bus, presence),
        ringer,
        limits,
        delivery,
        is_alone=not bus.is_shared,
    )
    if config.calls.enabled:
        calls.watch.start(background)
        delivery.on_loss = calls.watch.lost
    return CallParts(calls, CallHandlers(calls, bus.instance_id))
