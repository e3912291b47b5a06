"""Counts the connections to the port, per address and in total, from the first byte of TCP to the last.

A plain HTTP connection and a WebSocket count alike: both cost a descriptor and buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nexo.config import Config
from nexo.core.addresses import client_address, is_trusted, limit_key, parse_networks
from nexo.metrics import families as f
from nexo.metrics.families import Sample

PER_ADDRESS, TOTAL = "connections_per_ip", "connections_total"
# Plain connections beyond the total, so that health checks are answered by an instance that is full of WebSockets.
RESERVE_MIN = 8
RESERVE_SHARE = 64


class ConnectionCounts:
    def __init__(self, config: Config | None = None, count_refusal: Callable[[str], None] = lambda limit: None) -> None:
        """Without a configuration there is no limit. `count_refusal` gets the name of the limit that was reached."""
        limits = (config or Config()).limits
        self._per_address = limits.connections_per_ip if config is not None else 0
        self._total = limits.connections_total if config is not None else 0
        self._reserve = max(RESERVE_MIN, self._total // RESERVE_SHARE)
        self._trusted = parse_networks((config or Config()).http.trusted_proxies)
        self._count_refusal = count_refusal
        self._by_address: dict[str, int] = {}
        self.plain = 0
        self.websockets = 0

    def samples(self) -> Iterable[Sample]:
        yield f.HTTP_CONNECTIONS(self.plain)

    def admit(self, remote: str) -> CountedConnection | str:
        """Counts and returns a new connection from this address, or returns the name of the limit that it would exceed.
        The connections of a trusted proxy belong to many clients: they count in total only."""
        key = "" if is_trusted(remote, self._trusted) else limit_key(client_address(remote, "", ()))
        full = self._full(key) or (TOTAL if 0 < self._total <= self._beyond_reserve else "")
        if full:
            self._count_refusal(full)
            return full
        counted = CountedConnection(self, key)
        counted.take()
        return counted

    def count(self, key: str, is_websocket: bool, change: int) -> None:
        if is_websocket:
            self.websockets += change
        else:
            self.plain += change
        if not key:
            return
        left = self._by_address.get(key, 0) + change
        if left > 0:
            self._by_address[key] = left
        else:
            del self._by_address[key]

    def full_for_websocket(self, key: str) -> str:
        """Returns the name of the limit that one more WebSocket would exceed, or an empty text."""
        full = self._full(key) or (TOTAL if 0 < self._total <= max(self.websockets, self._beyond_reserve) else "")
        if full:
            self._count_refusal(full)
        return full

    @property
    def _beyond_reserve(self) -> int:
        return self.plain + self.websockets - self._reserve

    def _full(self, key: str) -> str:
        return PER_ADDRESS if key and 0 < self._per_address <= self._by_address.get(key, 0) else ""


class CountedConnection:
    """One TCP connection in the counts, until `leave`."""

    __slots__ = ("_counts", "_is_websocket", "_key", "_remote_key", "_taken")

    def __init__(self, counts: ConnectionCounts, key: str) -> None:
        self._counts = counts
        self._remote_key = self._key = key
        self._is_websocket = False
        self._taken = False

    def take(self) -> None:
        if not self._taken:
            self._taken = True
            self._counts.count(self._key, self._is_websocket, 1)

    def leave(self) -> None:
        if self._taken:
            self._taken = False
            self._counts.count(self._key, self._is_websocket, -1)

    def move(self, address: str) -> str:
        """Count the connection as a WebSocket of this client address. Returns an empty text, or the name of the limit
        that it would exceed: then it stays what it was."""
        self.leave()
        key = limit_key(address)
        full = self._counts.full_for_websocket(key)
        if not full:
            self._key, self._is_websocket = key, True
        self.take()
        return full

    def move_back(self) -> None:
        """Count the connection as plain again: the upgrade was refused."""
        self.leave()
        self._key, self._is_websocket = self._remote_key, False
        self.take()
