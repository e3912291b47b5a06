"""Frames of calls: which connections of a user get one, and what happens to one that cannot take it."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from nexo.core import events
from nexo.delivery.outputs import Output

log = structlog.get_logger()


def address_of(instance_id: str, conn_id: str) -> str:
    """Returns what names a connection in calls: its own id is used again by other instances."""
    return f"{instance_id}/{conn_id}"


def push_call(connections: Collection[Output], event: events.CallFrame, instance_id: str) -> None:
    """Push to the connections that take part. A client that missed a frame of a call would ring or talk for ever, so a
    connection that cannot take it is closed."""
    for connection in _receivers(connections, event, instance_id):
        frame = connection.dialect.frame(connection.dialect.encode(event))  # type: ignore[arg-type]
        if not connection.push(frame) and not connection.closing:
            log.info("call_frame_not_taken", conn=connection.conn_id, user=connection.user_id)
            connection.drop("slow_consumer")


def _receivers(connections: Collection[Output], event: events.CallFrame, instance_id: str) -> list[Output]:
    """Returns the connection that takes part, and later ones of its session: one of them may be the same device, which
    has reconnected before this instance noticed that it was gone."""
    if event.only is None:
        return [one for one in connections if address_of(instance_id, one.conn_id) != event.besides]
    address, sid = event.only
    since = min((one.opened_at for one in connections if address_of(instance_id, one.conn_id) == address), default=0.0)
    return [one for one in connections if one.session.sid == sid and one.opened_at >= since]
