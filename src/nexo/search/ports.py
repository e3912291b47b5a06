"""The interfaces between search and the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nexo.core.journal import Place
from nexo.core.model import Message
from nexo.core.search_index import (
    Candidate,
    IndexQuery,
    IndexState,
    IndexStep,
    IndexUnit,
    SearchChanges,
    SearchSource,
)


class SearchStore(Protocol):
    """The database as search reads it. Every method may raise `NexoError("server_busy")`."""

    async def changes(self, place: Place, limit: int) -> SearchChanges:
        """Returns the messages behind some journal entries after a place, about `limit`. Raises `cursor_expired` for a
        place before the oldest row that is kept."""

    async def now(self) -> Place:
        """Returns the place after everything that is committed."""

    async def newest(self) -> int:
        """Returns the number of the newest row of the journal."""

    async def older(self, below: int, limit: int) -> list[SearchSource]:
        """Returns the newest messages with an id below this one, newest first; the last of them may be one that is
        not searched, and has the status -1 then."""

    async def exists(self, server_msg_id: int) -> bool: ...

    async def ends(self) -> tuple[int, int]:
        """Returns the lowest and the highest id of a message."""

    async def conversations_of(self, user_id: str, conversation_id: str | None) -> dict[int, str]:
        """Returns the user's conversations by number, or the one that is named. Raises as reading it does."""

    async def visible(self, user_id: str, wanted: Mapping[str, Sequence[int]]) -> dict[tuple[str, int], Message]:
        """Returns those of the messages that the user may see and that are not blank, by conversation and seq."""

    async def seqs_of_types(
        self, user_id: str, conversation_id: str, msg_types: Sequence[int], before_seq: int | None, limit: int
    ) -> tuple[list[int], int]:
        """Returns the newest visible seqs of messages of these types below a seq, and the seq down to which there are
        no others; 0: there are none at all."""


class SearchIndex(Protocol):
    """The index. It names candidates, and may name too many: an edited message has the terms of all its versions. Every
    method may raise `NexoError("server_busy")`."""

    batch: int  # messages that are written at once

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def state(self) -> IndexState: ...

    async def begin(self, place: Place) -> IndexState:
        """Empties the index, which then follows the journal from this place on and has no older messages."""

    async def apply(self, version: int, step: IndexStep) -> IndexState | None:
        """Writes a step, and its place with it, at once or not at all. An entry that is there gets the terms of both.
        Returns None, and writes nothing, if the index does not have this version: another process writes it."""

    async def tend(self) -> bool:
        """Does a little of what makes questions faster, when there is nothing to index. Returns whether there is more
        to do."""

    async def units(self, convs: Sequence[int]) -> list[IndexUnit]: ...

    async def candidates(self, asked: IndexQuery) -> list[Candidate]:
        """Returns the newest candidates below an id, newest first."""

    async def media(self, conv: int, kind: int, before_seq: int, limit: int) -> list[int]:
        """Returns the newest seqs of this kind below a seq."""
