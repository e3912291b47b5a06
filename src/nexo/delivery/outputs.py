"""A signed-in connection as delivery and the cluster see it; `gateway.connection.Connection` is one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from nexo.core.model import Session
from nexo.wire.dialect import Dialect


class Output(Protocol):
    session: Session
    conn_id: str
    device_id: str
    dialect: Dialect
    opened_at: float
    synced_at: float  # when its heads were read: conversations joined later have to be announced to it
    heads: dict[str, int] | None  # changed heads that were not pushed
    heads_at: float
    notices: dict[str, list[Any]] | None  # group notices of the last second

    @property
    def user_id(self) -> str | None: ...

    @property
    def closing(self) -> bool: ...

    def push(self, frame: bytes) -> bool:
        """Hand over an encoded frame. Returns whether it was taken; the connection gets RESYNC otherwise."""

    def resync(self, reason: str, spread_ms: int = 1000, conversation_ids: Collection[str] = ()) -> None:
        """Send RESYNC, for these conversations or for all: pushes may have been missed."""

    def drop(self, error_name: str) -> None:
        """Send this error and close."""
