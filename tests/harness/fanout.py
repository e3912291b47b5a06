"""Fan-out to connections without sockets: thousands of them, and what each of them was pushed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, cast

from nexo.background import Background
from nexo.config.tree import StrategyConfig
from nexo.core.model import Message, MsgType, Sent, Session
from nexo.delivery.audiences import Audiences
from nexo.delivery.fanout import Fanout
from nexo.delivery.hub import Hub
from nexo.ids import now_ms
from nexo.metrics.sending import SendMeter
from nexo.ports import Audience, Listener
from nexo.wire.dialect import Dialect
from nexo.wire.registry import DIALECTS

ENVELOPE = next(dialect for dialect in DIALECTS.values() if dialect.name == "nexo.envelope.v1")


class Pushed:
    """A connection that keeps its frames."""

    device_id = conn_id = ""
    opened_at = last_seen = synced_at = heads_at = 0.0
    closing = False
    heads: dict[str, int] | None = None
    notices: dict[str, list[Any]] | None = None

    def __init__(self, user_id: str, dialect: Dialect = ENVELOPE) -> None:
        self.user_id = user_id
        self.session = Session("s", user_id, 5, "", 1)
        self.dialect = dialect
        self.frames: list[bytes] = []
        self.resyncs: list[tuple[str, ...]] = []
        self.failure: Exception | None = None

    def push(self, frame: bytes) -> bool:
        if self.failure is not None:
            raise self.failure
        self.frames.append(frame)
        return True

    def resync(self, reason: str, spread_ms: int = 1000, conversation_ids: Collection[str] = ()) -> None:
        self.resyncs.append(tuple(conversation_ids))

    def drop(self, error_name: str) -> None: ...


class Members:
    """The members of every group, as a store has them."""

    def __init__(self, groups: dict[str, list[str]]) -> None:
        self._groups = groups

    async def audience(self, conversation_id: str) -> Audience:
        return Audience(1, {user_id: Listener(1, 0, False, ()) for user_id in self._groups[conversation_id]})


async def make_fanout(groups: dict[str, list[str]], connections: Iterable[Pushed], mode: str = "push") -> Fanout:
    """Returns a fan-out whose member lists are loaded."""
    hub = Hub("multi", lambda user_id: None)
    for connection in connections:
        hub.connections.setdefault(connection.user_id, []).append(cast(Any, connection))

    async def introduce(*_: object) -> None: ...

    audiences = Audiences(
        cast(Any, Members(groups)), 300, lambda *loss: fanout.lost(loss[0], loss[1]), introduce, Background()
    )
    fanout = Fanout(hub, audiences, cast(Any, None), StrategyConfig(mode=cast(Any, mode)), 30, SendMeter(), "")
    for conversation_id in groups:
        await audiences.load(conversation_id)
    return fanout


def sent(conversation_id: str, seq: int, sender_id: str = "u0") -> Sent:
    message = Message(seq, f"c{seq}", conversation_id, seq, sender_id, int(MsgType.TEXT), f'"{seq}"', now_ms())
    return Sent(message, True, member_epoch=1)
