"""Decides from what an instance can reach: poll the database, report itself not ready, send its clients away.

Pure. The rules, in order:
- Another instance renews its row and is not heard on the bus: it may commit messages, so poll the database.
- This instance cannot commit while others do: not ready, and its clients are sent there. If no instance commits, or
  there is no other one, clients stay: another instance could not do more for them.
- This instance cannot reach the bus while others are on it: the same. If no instance is on it (Redis is down for all),
  clients stay and every instance polls the database.
- Neither can be reached: clients are sent away if there were other instances when something was last received.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nexo.ports import InstanceRow

LEASE_S = 15.0  # an instance whose row is older has ended: rows are renewed at least once a second
STAY_S = 1.5  # a Redis that fails for all is noticed by all within this time

BUS_LOST = "Redis cannot be reached from this instance, and others are connected through it: its clients are sent there"
STORE_LOST = "The database takes nothing from this instance, and takes from others: its clients are sent there"
STORE_SILENT = "The database takes nothing from this instance"
BOTH_LOST = "Neither Redis nor the database can be reached from this instance: its clients are sent to others"
NO_BUS = (
    "Another instance uses this database, and redis.url is not set here: users of the two do not get each other's "
    "messages until they reconnect. Set redis.url on both, or stop one"
)


class ClusterView(Struct, frozen=True):
    """The state of the cluster as one instance sees it; ages count from now."""

    detect_s: float
    is_shared: bool  # redis.url is set
    bus_down_s: float | None  # None: it is on the bus
    commit_age_s: float  # of the last commit here
    own_age_ms: int  # since this instance announced itself
    rows: Sequence[InstanceRow]  # of other instances, as last read
    rows_age_s: float
    missed: frozenset[str]  # instances among them that are not heard on the bus
    peer_commit_ages_s: Sequence[float]  # of instances with clients on the bus
    had_peers: bool  # other instances with clients, when they were last heard of


class ClusterVerdict(Struct, frozen=True):
    watches: bool = False
    reason: str = ""  # why this instance is not ready
    drains: bool = False


def fresh_s(detect_s: float) -> float:
    """Returns the age of the last commit up to which a peer counts as committing. Above the pause between two commits
    and the time until they are known here; below the time after which this instance counts its own database as lost,
    less that pause, so that a database that fails for all is never taken for a failure of this instance."""
    return 0.65 * detect_s


def judge(view: ClusterView) -> ClusterVerdict:
    alive = [row for row in view.rows if row.age_ms / 1000 + view.rows_age_s <= LEASE_S]
    watches = any(row.instance_id in view.missed for row in alive)
    is_store_lost = view.commit_age_s > view.detect_s
    bus_down_s = view.bus_down_s
    if not view.is_shared:
        return ClusterVerdict(reason=NO_BUS if any(_takes_clients(row, view) for row in alive) else "")
    if is_store_lost and bus_down_s is None:
        is_better_elsewhere = any(age_s <= fresh_s(view.detect_s) for age_s in view.peer_commit_ages_s)
        return ClusterVerdict(watches, STORE_LOST if is_better_elsewhere else STORE_SILENT, is_better_elsewhere)
    if bus_down_s is not None and is_store_lost:
        is_lost = view.had_peers and bus_down_s >= view.detect_s / 2
        return ClusterVerdict(watches, BOTH_LOST if is_lost else STORE_SILENT, is_lost)
    are_others_on_bus = any(row.on_bus and _takes_clients(row, view) for row in alive)
    if bus_down_s is not None and bus_down_s >= view.detect_s and are_others_on_bus:
        return ClusterVerdict(watches, BUS_LOST, bus_down_s >= view.detect_s + STAY_S)
    return ClusterVerdict(watches)


def _takes_clients(row: InstanceRow, view: ClusterView) -> bool:
    """Returns whether an instance with clients is surely running: its row was renewed a moment ago, and after this
    instance started."""
    return not row.is_worker and row.age_ms <= min(view.own_age_ms, view.detect_s * 1000)
