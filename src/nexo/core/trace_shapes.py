"""The answer to the question where a message is, for HTTP and the command line."""

from __future__ import annotations

from msgspec import Struct

from nexo.core.tracing import ConnectionTrace, InstanceTrace, StoredTrace, TracesFound, state_of
from nexo.ids import time_of


class TracedMessageShape(Struct):
    """The message without its content. `accepted_at` is when its id was made, `saved_at` its time in the
    conversation."""

    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int
    sender_id: str
    msg_type: int
    status: int
    accepted_at: int
    saved_at: int
    recalled_at: int | None


class TracedConnection(Struct):
    """`result`: `pushed`, `not_taken` (back-pressure), `notified`, `head` (not pushed, because of the size of the
    group), `later` (it signed in after the push) or `unknown`. `until` is 0 while it is
    open."""

    instance: str
    conn_id: str
    device_id: str
    platform_id: int
    dialect: str
    since: int
    until: int
    result: str


class TracedPush(Struct):
    """The notification on one device. `state`: `sent`, `waiting` or `not_sent`; `result` is the answer of the push
    service, or why there is none; `at` is 0 without an answer."""

    kind: str
    device_id: str
    state: str
    result: str
    at: int


class TracedReceiverShape(Struct):
    """`state`: `sender` (the user sent it), `read`, `delivered`, `pushed` (and not acknowledged), or why not:
    `offline`, `muted`, `notify_mode`, `no_push` (a group of that size), `back_pressure`, `not_member`; `unknown` where
    no instance remembers enough."""

    user_id: str
    state: str
    delivered: bool
    read: bool
    recv_msg_opt: int
    connections: list[TracedConnection]
    offline_push: list[TracedPush] = []


class TracedInstance(Struct):
    """`pushed_at` is 0 where no push is remembered; what was before `remembers_since` is forgotten."""

    instance: str
    answered: bool
    remembers_since: int
    pushed_at: int
    mode: str


class TraceReply(Struct):
    """`receivers` are at most 50; the counts are of all."""

    message: TracedMessageShape
    receivers: list[TracedReceiverShape]
    receiver_count: int
    delivered_count: int
    read_count: int
    instances: list[TracedInstance]


def trace_shape(stored: StoredTrace, found: TracesFound) -> TraceReply:
    message = stored.message
    shown = TracedMessageShape(
        str(message.server_msg_id),
        message.client_msg_id,
        message.conversation_id,
        message.seq,
        message.sender_id,
        message.msg_type,
        message.status,
        time_of(message.server_msg_id),
        message.send_at,
        message.recalled_at,
    )
    receivers = [
        TracedReceiverShape(
            one.user_id,
            state_of(one, found),
            one.is_delivered,
            one.is_read,
            one.recv_msg_opt,
            [
                _connection(trace, connection)
                for trace in found.traces
                for connection in trace.connections
                if connection.user_id == one.user_id
            ],
            [TracedPush(*push[1:]) for push in stored.offline if push.user_id == one.user_id],
        )
        for one in stored.receivers
    ]
    instances = [
        TracedInstance(one.instance, True, one.remembers_since, one.pushed_at, one.mode) for one in found.traces
    ]
    instances += [TracedInstance(name, False, 0, 0, "") for name in found.silent]
    counts = (stored.receiver_count, stored.delivered_count, stored.read_count)
    return TraceReply(shown, receivers, *counts, instances)


def _connection(trace: InstanceTrace, one: ConnectionTrace) -> TracedConnection:
    return TracedConnection(
        trace.instance,
        one.conn_id,
        one.device_id,
        one.platform_id,
        one.dialect,
        one.since,
        one.until,
        one.result,
    )
