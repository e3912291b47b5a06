"""Webhooks on an open store: their deliveries, their administration, and the question before a send."""

from __future__ import annotations

from nexo.background import Background
from nexo.config import Config
from nexo.errors import NexoError, StartupError
from nexo.hooks.before_send import BeforeSend
from nexo.hooks.hooks import Hooks
from nexo.hooks.posting import HookTesting
from nexo.journal.journal import Journal
from nexo.service.hooks import HookAdmin
from nexo.service.send import Sending
from nexo.store.hooks import SqlHooks
from nexo.store.store import Store


def make_hook_admin(config: Config, store: Store, hooks: Hooks) -> HookAdmin:
    states = SqlHooks(store.database, store.journal)
    return HookAdmin(states, HookTesting(config.hooks), config.hooks, changed=hooks.look)


def make_hooks(config: Config, store: Store, journal: Journal, background: Background) -> Hooks:
    """Returns the deliveries of webhooks, not started; the journal wakes them."""
    states = SqlHooks(store.database, store.journal)
    hooks = Hooks(store.journal, states, config, background, store.database.ids.holder)
    journal.followers.append(hooks.woken)
    return hooks


def make_gate(config: Config, sending: Sending) -> BeforeSend:
    """Returns the question before a send."""
    settings = config.hooks.before_send
    try:
        return BeforeSend(settings, sending.is_taken, sending.hand_on, sending.replace_content)
    except NexoError as error:
        raise StartupError(f"hooks.before_send cannot be used: {error.detail}") from error
