"""What the gateway needs for the connections of OpenIM's clients; `openim.notices.OpenimNotices` has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nexo.core import events
from nexo.core.numbering import NumberedMessages, NumberHead, NumberSpan
from nexo.delivery.outputs import Output


class OpenimSide(Protocol):
    def name(self, user_id: str) -> tuple[str, str]:
        """Returns nickname and avatar of a user, as far as they are known at once."""

    def complete(self, connection: Output, event: events.Event) -> bool:
        """Push what an event means to this connection, soon. Returns False where that will not be done."""

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None) -> list[NumberHead]: ...

    async def pull(
        self, user_id: str, spans: Sequence[NumberSpan], base_url: str
    ) -> list[tuple[str, NumberedMessages]]:
        """Returns an entry per span, in order."""
