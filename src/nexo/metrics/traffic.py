"""Numbers of the gateway: connections opened and closed, pushes to them, and pushes they did not take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally


class CountedSocket(Protocol):
    frames_in: int
    bytes_in: int


class Traffic:
    """Counts of one gateway."""

    def __init__(self) -> None:
        self.opened = Tally()  # by dialect
        self.closed = Tally()  # by reason
        self.errors = Tally()
        self.refusals = Tally(
            frames=0, acks=0, inflight_sends=0, queued_requests=0,
            connections_total=0, connections_per_ip=0, connections_per_user=0,
        )  # fmt: skip
        self.requests = Tally()  # by command
        self.dropped = Tally(slow_consumer=0, overflow=0)
        self.resyncs = Tally()
        self.resent = 0
        self.frames_in = self.frames_out = 0
        self.bytes_in = self.bytes_out = 0

    def read_from(self, socket: CountedSocket) -> None:
        """Take over what it has counted."""
        self.frames_in += socket.frames_in
        self.bytes_in += socket.bytes_in
        socket.frames_in = socket.bytes_in = 0

    def samples(self) -> Iterable[Sample]:
        yield from f.OPENED.each(self.opened)
        yield from f.CLOSED.each(self.closed)
        for reason, count in self.errors.items():
            yield f.ERRORS(count, "websocket", reason)
        yield from f.REFUSALS.each(self.refusals)
        yield from f.REQUESTS.each(self.requests)
        yield from f.PUSHES_DROPPED.each(self.dropped)
        yield from f.RESYNCS.each(self.resyncs)
        yield f.FRAMES(self.frames_in, "in")
        yield f.FRAMES(self.frames_out, "out")
        yield f.BYTES(self.bytes_in, "in")
        yield f.BYTES(self.bytes_out, "out")
        yield f.RESENT(self.resent)
