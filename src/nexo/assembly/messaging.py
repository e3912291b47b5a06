"""Delivery to connected clients on a core, on this instance and others: what `nexo serve` and `nexo worker` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Protocol

from msgspec import Struct

from nexo.assembly.core import Core
from nexo.assembly.files import Files, add_chores, make_files
from nexo.assembly.hooks import make_gate, make_hooks
from nexo.assembly.people import account_chore, versions_chore
from nexo.assembly.push import ConnectedUsers, Pushing, make_push
from nexo.assembly.search import make_search
from nexo.background import Background
from nexo.bus.local import LocalBus
from nexo.cluster.publisher import ClusterPublisher
from nexo.cluster.seq_reorder import SeqReorder
from nexo.cluster.tracing import ClusterTracing
from nexo.config import Config, resolve_redis_url
from nexo.delivery.delivery import Delivery
from nexo.hooks.hooks import Hooks
from nexo.journal.journal import Journal
from nexo.metrics.families import Sample
from nexo.ports import Bus, PresenceStore
from nexo.search.search import Search


class ClusterBus(Bus, Protocol):
    """A bus, and the presence that belongs to it."""

    @property
    def presence(self) -> PresenceStore: ...

    def samples(self) -> Iterable[Sample]: ...

    async def exchange(self, status: bytes) -> dict[str, bytes]: ...


def make_bus(config: Config, background: Background) -> ClusterBus:
    url = resolve_redis_url(config)
    if url is None:
        return LocalBus()
    # importing the client library takes a tenth of a second, which only servers with a Redis need
    bus: ClusterBus = import_module("nexo.bus.redis").RedisBus(config, url, background)
    return bus


class Troubles:
    """Reasons why this process is not ready, collected from its parts for /readyz."""

    def __init__(self) -> None:
        self.parts: list[Callable[[], str]] = []

    def __call__(self) -> list[str]:
        return [trouble for part in self.parts if (trouble := part())]


class Messaging(Struct, frozen=True):
    core: Core
    bus: ClusterBus
    background: Background
    delivery: Delivery
    journal: Journal
    hooks: Hooks
    search: Search
    tracing: ClusterTracing
    publisher: ClusterPublisher | None  # with several instances
    files: Files


def make_messaging(core: Core, bus: ClusterBus, background: Background, instance: str) -> Messaging:
    """Attach delivery and the journal to the publish seam of the store. The journal, webhooks and search are not
    started."""
    config, store = core.config, core.store
    publisher = None
    if bus.is_shared:
        publisher = ClusterPublisher(bus, bus.presence, config.bus.lookup_max_members, background)
    delivery = Delivery(
        config,
        messages=store.messages,
        conversations=store.conversations,
        groups=store.groups,
        acknowledging=core.acknowledging,
        sends=store.committer.meter,
        background=background,
        instance=instance,
        remote=publisher,
        reorder=SeqReorder() if bus.is_shared else None,
    )
    delivery.fanout.instance_id = bus.instance_id
    store.seam.attach(delivery)
    journal = Journal(store.journal, config, background, store.database.ids.holder)
    for chore in (versions_chore(config, store), account_chore(config, store)):
        journal.add_chore(chore)
    journal.erase(store.expiry)
    store.seam.attach(journal)
    files = make_files(config, store, core.words)
    add_chores(files, journal)
    hooks = make_hooks(config, store, journal, background)
    if config.hooks.before_send.url:
        core.sending.gate = hooks.gate = make_gate(config, core.sending)
    search = make_search(config, store, journal, background)
    tracing = ClusterTracing(bus, delivery)
    return Messaging(core, bus, background, delivery, journal, hooks, search, tracing, publisher, files)


async def make_pushing(messaging: Messaging) -> Pushing:
    """Returns push notifications, not started."""
    core, publisher = messaging.core, messaging.publisher
    presence = ConnectedUsers(messaging.delivery.hub, None if publisher is None else publisher.presence)
    return await make_push(core.config, core.store, messaging.journal, presence, messaging.background)
