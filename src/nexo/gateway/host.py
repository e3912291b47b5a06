"""The gateway as a connection sees it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from nexo.core import commands, events
from nexo.core.limits import SendLimits
from nexo.core.model import Session
from nexo.gateway.rate_limits import ConnectionRules
from nexo.metrics.traffic import Traffic
from nexo.service.send import Sending

C = TypeVar("C")  # the connection


class Host(Protocol[C]):
    rules: ConnectionRules
    traffic: Traffic
    sending: Sending
    send_limits: SendLimits
    touched: list[C]  # connections with frames to write in this turn

    def schedule_flush(self) -> None:
        """Let `touched` be flushed at the end of this turn of the event loop."""

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run a job of the connection."""

    def arrived(self, connection: C) -> None: ...

    def gone(self, connection: C) -> None: ...

    async def sign_in(self, connection: C, command: commands.Auth | commands.Login, ref: Any) -> None: ...

    async def admit(self, connection: C, session: Session) -> None:
        """The session was checked with the upgrade: go on from there."""

    async def renew(self, connection: C, token: str) -> events.SignedIn:
        """A newer token of the same user extends the connection."""

    def acknowledge(self, connection: C, command: commands.Ack, ref: Any) -> None: ...

    async def perform(self, connection: C, command: commands.Command, ref: Any) -> None:
        """Everything else: do it and answer."""

    def complete(self, connection: C, event: events.Event) -> bool:
        """Push an event that its dialect could not encode alone. Returns False where it will not be pushed."""

    def typing(self, connection: C, command: commands.Typing, ref: Any) -> None: ...
