"""Figures of the gateway: connections opened, closed, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable

from nexo.config import Config
from nexo.gateway.connection import Connection
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.traffic import Traffic
from nexo.wire.registry import DIALECTS


class GatewayMeasures:
    def __init__(self, config: Config, connections: set[Connection]) -> None:
        self.traffic = Traffic()
        self._connections = connections
        self._limit = config.limits.connections_total
        self._policy = config.session.policy

    def count_opened(self, connection: Connection) -> None:
        self.traffic.opened.add(_short(connection.dialect.name))

    def count_closed(self, connection: Connection) -> None:
        self.traffic.closed.add(connection.ended or "left")
        self.traffic.read_from(connection.socket)

    def samples(self) -> Iterable[Sample]:
        yield from self.traffic.samples()
        yield f.CONNECTIONS_LIMIT(self._limit)
        yield from self._sum_connections()

    def _sum_connections(self) -> Iterable[Sample]:
        """Sum over all connections. This blocks the event loop: everything else is counted incrementally."""
        signed_in = dict.fromkeys(map(_short, DIALECTS), 0)
        new: dict[str, int] = {}
        blocked = buffered = queued = 0
        for connection in self._connections:
            name = _short(connection.dialect.name)
            if connection.user_id is not None:
                signed_in[name] = signed_in.get(name, 0) + 1
            else:
                new[name] = new.get(name, 0) + 1
            if connection.blocked_since:
                blocked += 1
            buffered += connection.socket.buffered()
            queued += connection.queued
        for state, counts in (("signed_in", signed_in), ("new", new)):
            for dialect, count in counts.items():
                yield f.CONNECTIONS(count, dialect, state, self._policy)
        yield f.BLOCKED(blocked)
        yield f.BUFFERED(buffered)
        yield f.QUEUE(queued, "requests")


def _short(dialect: str) -> str:
    """`envelope` of `nexo.envelope.v1`, `request` of `nexo.request.v1;base64`, `openim` of all kinds of it."""
    return dialect.split(".")[1]
