"""Where a message is: what the database and the instances know of its delivery to each receiver. Never its text."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class ConnectionTrace(Struct, frozen=True, array_like=True):
    """A connection of a receiver. `result`: `pushed`, `not_taken` (back-pressure: it got RESYNC, or was
    closed), `notified` (it got a notice to pull), `head` (it got only the new head), `later` (it signed in after the
    push, and fetched what it had missed), `unknown` (the push is not remembered)."""

    user_id: str
    conn_id: str
    device_id: str
    platform_id: int
    dialect: str
    since: int  # milliseconds
    until: int  # 0: it is open
    result: str


class InstanceTrace(Struct, frozen=True, array_like=True):
    """What one instance remembers. `pushed_at` is 0 if it does not remember a push of the message. It has forgotten
    everything before `remembers_since`."""

    instance: str
    remembers_since: int
    pushed_at: int
    mode: str  # `push`, `notify`, `none`; empty without a push
    connections: list[ConnectionTrace]


class TracesFound(NamedTuple):
    traces: list[InstanceTrace]
    silent: list[str]  # instances that did not answer in time


class TracedMessage(NamedTuple):
    """The row of a message, without its content."""

    server_msg_id: int
    client_msg_id: str | None
    conversation_id: str
    seq: int
    sender_id: str
    msg_type: int
    status: int
    send_at: int
    recalled_at: int | None


class OfflinePush(NamedTuple):
    """The notification of a message on one device of a receiver. `state`: `sent`, `waiting`, or `not_sent`; `result` is
    the answer of the service, or why there is none."""

    user_id: str
    kind: str
    device_id: str
    state: str
    result: str
    at: int  # milliseconds; 0: not answered


class TracedReceiver(NamedTuple):
    """A user that was a member at the time of the message, or was none (`is_member` False)."""

    user_id: str
    is_member: bool
    is_delivered: bool
    is_read: bool
    recv_msg_opt: int  # as it is now
    is_sender: bool = False


class StoredTrace(NamedTuple):
    message: TracedMessage
    receivers: list[TracedReceiver]
    receiver_count: int
    delivered_count: int
    read_count: int
    offline: list[OfflinePush] = []  # noqa: RUF012


MUTED = 1  # recv_msg_opt

# How far a message got, the furthest first; a connection's result names the step.
_RESULTS = {"pushed": "pushed", "not_taken": "back_pressure", "notified": "notify_mode", "head": "no_push"}


def state_of(receiver: TracedReceiver, found: TracesFound) -> str:
    """Returns how far the message got, or why it got no further: `sender` (the user sent it), `read`, `delivered`,
    `pushed`, `back_pressure`, `notify_mode`, `no_push`, `muted`, `offline`, `not_member`, or `unknown` where no
    instance remembers enough."""
    if not receiver.is_member:
        return "not_member"
    if receiver.is_sender:
        return "sender"
    if receiver.is_read:
        return "read"
    if receiver.is_delivered:
        return "delivered"
    if receiver.recv_msg_opt == MUTED:
        return "muted"
    results = {one.result for trace in found.traces for one in trace.connections if one.user_id == receiver.user_id}
    for result, state in _RESULTS.items():
        if result in results:
            return state
    is_remembered = any(trace.pushed_at for trace in found.traces)
    return "offline" if is_remembered and not found.silent and "unknown" not in results else "unknown"
