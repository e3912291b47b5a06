"""Listening to other instances, and their health."""

from __future__ import annotations

from nexo.assembly.messaging import Messaging
from nexo.cluster.database_watch import DatabaseWatch
from nexo.cluster.health import ClusterHealth
from nexo.cluster.listener import ClusterListener, SessionEvents
from nexo.cluster.session_policy import SessionPolicy


async def start_listening(
    messaging: Messaging,
    health: ClusterHealth | None,
    sessions: SessionEvents | None = None,
    policy: SessionPolicy | None = None,
) -> None:
    """Start to listen to other instances. `sessions` and `policy` are None in a process without clients."""
    if messaging.publisher is not None:
        delivery, store, background = messaging.delivery, messaging.core.store, messaging.background
        watch = DatabaseWatch(
            store.conversations, delivery.hub, delivery.fanout, delivery.receipts.last_seq, background
        )
        listener = ClusterListener(delivery, watch, background, messaging.tracing, sessions, policy)
        if health is not None:
            listener.on_change = health.bus_changed
            health.watch = lambda is_needed: watch.need("instance_missed", is_needed)
        await messaging.bus.start(listener)
    if health is not None:
        health.start()


def make_health(messaging: Messaging, instance: str, *, is_worker: bool) -> ClusterHealth | None:
    """Returns the health of this instance; None with the embedded database, which belongs to one process."""
    core = messaging.core
    if core.store.url.is_embedded:
        return None
    return ClusterHealth(
        core.store.instances,
        messaging.bus,
        messaging.background,
        place=instance,
        is_worker=is_worker,
        detect_s=core.config.bus.detect_s,
    )
