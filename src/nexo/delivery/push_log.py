"""What this instance remembers of its last pushes and ended connections, for the question where a message is.

A push is one short tuple in a ring, whatever the number of its receivers: the connections that it reached are those
that were registered at that moment. Only a push that a connection did not take is noted separately.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nexo.core.model import Message
from nexo.core.tracing import ConnectionTrace, InstanceTrace
from nexo.delivery.outputs import Output
from nexo.logs import delivery_lines

PUSHES_MAX = 32_768
REFUSED_MAX = 4096
ENDED_MAX = 4096

_OF_MODE = {"push": "pushed", "notify": "notified", "none": "head"}


class Push(NamedTuple):
    server_msg_id: int
    at: float  # by `time.time`
    mode: str


class _Ended(NamedTuple):
    user_id: str
    conn_id: str
    device_id: str
    platform_id: int
    dialect: str
    synced_at: float  # by `time.monotonic`, as `Output.synced_at`
    ended_at: float


class PushLog:
    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._since = time.time()
        self._pushes: deque[tuple[int, float, str]] = deque(maxlen=PUSHES_MAX)
        self.note = self._pushes.append  # of (server_msg_id, time, mode): without a call for every message
        self._refused: deque[tuple[int, str]] = deque(maxlen=REFUSED_MAX)
        self._ended: deque[_Ended] = deque(maxlen=ENDED_MAX)

    def not_taken(self, connection: Output, message: Message) -> None:
        """Note that a connection did not take a message; RESYNC follows on it, or its end."""
        self._refused.append((message.server_msg_id, connection.conn_id))
        if not delivery_lines.is_on:
            return
        delivery_lines.write(
            "push_not_taken",
            connection.user_id,
            message.conversation_id,
            server_msg_id=message.server_msg_id,
            seq=message.seq,
            sender=message.sender_id,
            device=connection.device_id,
            conn=connection.conn_id,
            instance=self._instance,
            result="closing" if connection.closing else "resync",
        )

    def ended(self, connection: Output) -> None:
        session = connection.session
        self._ended.append(
            _Ended(
                session.user_id,
                connection.conn_id,
                connection.device_id,
                session.platform_id,
                connection.dialect.name,
                connection.synced_at,
                time.monotonic(),
            )
        )

    def trace(self, server_msg_id: int, user_ids: Sequence[str], open_: Iterable[Output]) -> InstanceTrace:
        """Returns what is remembered of a message. `open_` are the connections of these users."""
        found = next((Push(*note) for note in reversed(self._pushes) if note[0] == server_msg_id), None)
        since = self._pushes[0][1] if len(self._pushes) == PUSHES_MAX else self._since
        refused = {conn_id for id_, conn_id in self._refused if id_ == server_msg_id}
        listed = [
            _Ended(
                one.session.user_id,
                one.conn_id,
                one.device_id,
                one.session.platform_id,
                one.dialect.name,
                one.synced_at,
                math.inf,
            )
            for one in open_
        ]
        users = set(user_ids)
        listed += [one for one in self._ended if one.user_id in users]
        offset = time.time() - time.monotonic()
        return InstanceTrace(
            self._instance,
            int(since * 1000),
            0 if found is None else int(found.at * 1000),
            "" if found is None else found.mode,
            [traced for one in listed if (traced := _connection(one, found, refused, offset)) is not None],
        )


def _connection(one: _Ended, push: Push | None, refused: set[str], offset: float) -> ConnectionTrace | None:
    """Returns what a connection got; None for one that ended before the push."""
    since, until = one.synced_at + offset, one.ended_at + offset
    if push is None:
        result = "unknown"
    elif until < push.at:
        return None
    elif since > push.at:
        result = "later"
    else:
        result = "not_taken" if one.conn_id in refused else _OF_MODE[push.mode]
    return ConnectionTrace(
        one.user_id,
        one.conn_id,
        one.device_id,
        one.platform_id,
        one.dialect,
        0 if math.isinf(since) else int(since * 1000),
        0 if math.isinf(until) else int(until * 1000),
        result,
    )
