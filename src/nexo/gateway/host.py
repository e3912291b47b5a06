"""What a connection needs of the gateway around it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from nexo.core import commands, events
from nexo.core.model import Draft, Sent, Session
from nexo.gateway.rates import Rules
from nexo.metrics.traffic import Traffic
from nexo.ports import Outcome

C_contra = TypeVar("C_contra", contravariant=True)  # the connection


class Host(Protocol[C_contra]):
    rules: Rules
    traffic: Traffic

    def touch(self, connection: C_contra) -> None:
        """Have `flush` called at the end of this turn of the loop."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...

    def arrived(self, connection: C_contra) -> None: ...

    def gone(self, connection: C_contra) -> None: ...

    async def sign_in(self, connection: C_contra, command: commands.Auth | commands.Login, ref: Any) -> None: ...

    async def admit(self, connection: C_contra, session: Session) -> None:
        """The session was checked with the upgrade: go on from there."""

    async def renew(self, connection: C_contra, token: str) -> events.SignedIn:
        """A newer token of the same user extends the connection."""

    def charge_send(self, user_id: str) -> int:
        """0, or the milliseconds to wait before this user may send again."""

    def draft(self, user_id: str, command: commands.Send) -> Draft: ...

    def submit(self, connection: C_contra, draft: Draft, answer: Callable[[Outcome], None]) -> None: ...

    def message_saved(self, sent: Sent, origin: object | None) -> None:
        """Tell everybody else."""

    def acknowledge(self, connection: C_contra, command: commands.Ack, ref: Any) -> None: ...

    async def perform(self, connection: C_contra, command: commands.Command, ref: Any) -> None:
        """Everything else: do it and answer."""

    def typing(self, connection: C_contra, command: commands.Typing) -> None: ...
