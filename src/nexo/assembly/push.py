"""Push notifications on an open store."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import NamedTuple

from nexo.background import Background
from nexo.config import Config
from nexo.delivery.hub import Hub
from nexo.errors import NexoError, StartupError
from nexo.journal.housekeeping import Chore
from nexo.journal.journal import Journal
from nexo.ports import PresenceStore
from nexo.push.apns import Apns
from nexo.push.fcm import Fcm
from nexo.push.ports import OnlineUsers, Provider
from nexo.push.push import PushService
from nexo.push.vapid import KeepKey, load_vapid
from nexo.push.web import WebPush, check_subscription
from nexo.push.webhook import PushHook
from nexo.service.push import PushDevices
from nexo.store.store import Store

HOUR_MS = 3_600_000


class Pushing(NamedTuple):
    push: PushService
    devices: PushDevices


class ConnectedUsers:
    """Which users are connected: to this instance by its hub, to other instances by the shared presence."""

    def __init__(self, hub: Hub, others: PresenceStore | None) -> None:
        self._hub = hub
        self._others = others

    async def online(self, user_ids: Collection[str]) -> set[str]:
        found = {user_id for user_id in user_ids if user_id in self._hub.connections}
        if self._others is not None:
            found |= (await self._others.on_other_instances(user_ids)).keys()
        return found


async def make_providers(config: Config, keep: KeepKey) -> list[Provider]:
    """Returns the push services that are configured. Raises StartupError."""
    settings = config.push
    timeout_s = float(settings.timeout_s)
    made: list[Provider] = []
    if settings.web.enabled:
        key = await load_vapid(config, keep)
        made.append(WebPush(key, settings.web.subject, timeout_s, allow_private=config.hooks.allow_private))
    try:
        if settings.apns.key_file:
            made.append(Apns(settings.apns, timeout_s))
        if settings.fcm.service_account_file:
            made.append(Fcm(settings.fcm, timeout_s))
    except NexoError as error:
        raise StartupError(f"an address of push.apns or push.fcm cannot be used: {error.detail}") from error
    if settings.hook.url:
        made.append(PushHook(settings.hook, timeout_s))
    return made


async def make_push(
    config: Config, store: Store, journal: Journal, presence: OnlineUsers, background: Background
) -> Pushing:
    """Returns push, not started, and the registrations of devices; the journal wakes it."""
    providers = await make_providers(config, store.push.keep_key)
    push = PushService(store.push, store.journal, providers, presence, config, background, store.database.ids.holder)
    journal.followers.append(push.woken)
    journal.add_chore(Chore("push", partial(store.push.sweep, config.journal.retention_h * HOUR_MS)))
    public_key = next((one.public_key for one in providers if isinstance(one, WebPush)), None)
    check = partial(check_subscription, allow_private=config.hooks.allow_private)
    limit = config.push.max_per_user
    return Pushing(push, PushDevices(store.push, push.kinds, public_key, check, limit, push.registered))
