"""What OpenIM's clients need: notifications for the gateway, and their HTTP API."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from nexo.api.asgi import ASGIApp
from nexo.api.authentication import Authentication
from nexo.assembly.messaging import Messaging
from nexo.metrics.exposition import Metrics
from nexo.openim.directory import Directory
from nexo.openim.http import OpenimApi
from nexo.openim.lists import Lists
from nexo.openim.notices import OpenimNotices
from nexo.openim.request import Facade
from nexo.openim.tips import Tips
from nexo.service.actions import Actions
from nexo.service.backend import Backend
from nexo.store.openim.sql_openim import SqlOpenim
from nexo.store.store import DAY_MS


class OpenimParts(Struct, frozen=True):
    store: SqlOpenim
    directory: Directory
    lists: Lists
    notices: OpenimNotices


def make_openim(messaging: Messaging, actions: Actions, metrics: Metrics) -> OpenimParts | None:
    """Returns None where it is switched off."""
    if not messaging.core.config.openim.enabled:
        return None
    core, background = messaging.core, messaging.background
    store = SqlOpenim(core.store.database, core.config, core.config.retention.days * DAY_MS)
    directory = Directory(actions.accounts, background)
    lists = Lists(actions, store, directory)
    notices = OpenimNotices(
        store, Tips(actions, store, directory, lists), directory, messaging.delivery.hub, background
    )
    metrics.add(directory.samples)
    metrics.add(notices.samples)
    return OpenimParts(store, directory, lists, notices)


def make_openim_api(
    parts: OpenimParts, messaging: Messaging, actions: Actions, backend: Backend
) -> Callable[[Authentication], ASGIApp]:
    facade = Facade(
        messaging.core.config.openim,
        actions,
        backend,
        parts.store,
        parts.directory,
        parts.lists,
        parts.notices,
        messaging.delivery,
        messaging.files,
    )
    return lambda authentication: OpenimApi(facade, authentication)
