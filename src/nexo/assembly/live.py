"""The figures of the live page, from all instances that can be heard."""

from __future__ import annotations

from nexo.assembly.messaging import Messaging
from nexo.metrics.cluster import Cluster
from nexo.metrics.exposition import Metrics
from nexo.metrics.live import Collect, LiveStats
from nexo.metrics.siblings import Siblings


def make_live(instance: str, metrics: Metrics, siblings: Siblings | None, messaging: Messaging) -> LiveStats:
    live = LiveStats(_by_instance(instance, metrics, siblings, messaging))
    live.start()
    return live


def _by_instance(name: str, metrics: Metrics, siblings: Siblings | None, messaging: Messaging) -> Collect:
    """Returns the source of the live page: all instances that can be heard, otherwise the processes of this machine."""
    if messaging.bus.is_shared:
        cluster = Cluster(name, metrics.samples, messaging.bus.exchange)
        messaging.background.serve("cluster_status", cluster.run)
        return cluster.samples
    return siblings.by_process if siblings is not None else lambda: {name: metrics.samples()}
