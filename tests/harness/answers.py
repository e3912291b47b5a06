"""Answers to drafts that are submitted without waiting for one another."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.commits import Submitter
from harness.core import draft_fields
from nexo.assembly.core import Core
from nexo.core.commands import Send
from nexo.core.model import Sent
from nexo.errors import NexoError


class Answers:
    """Answers to submitted drafts, in the order in which they came."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._done = asyncio.Event()
        self.first = asyncio.Event()
        self.wanted = 0
        self.given: list[tuple[str, Sent | NexoError]] = []

    def submit(self, sender: str, target: str, content: Any = "hello", **fields: Any) -> None:
        fields = draft_fields(target, content, fields)
        draft = self._core.sending.draft(sender, Send(**fields))
        self.wanted += 1
        self._done.clear()
        self._core.store.messages.submit(draft, Submitter(lambda outcome: self._note(fields["client_msg_id"], outcome)))

    def _note(self, client_msg_id: str, outcome: Sent | NexoError) -> None:
        self.given.append((client_msg_id, outcome))
        self.first.set()
        if len(self.given) == self.wanted:
            self._done.set()

    async def all(self) -> list[tuple[str, str | int]]:
        """Each client_msg_id with its seq or the name of its error."""
        await self._done.wait()
        return [
            (name, outcome.name if isinstance(outcome, NexoError) else outcome.message.seq)
            for name, outcome in self.given
        ]
