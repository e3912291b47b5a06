"""What OpenIM clients need of the store: messages by number, and versions of lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from nexo.core.model import Message
from nexo.core.numbering import NumberedMessages, NumberHead


class ListChanges(NamedTuple):
    """What has changed in a list since a client's version. `full`: that is unknown, and the client needs all of it."""

    version: int
    version_id: str
    full: bool
    inserted: list[str]
    updated: list[str]
    deleted: list[str]


class OpenimStore(Protocol):
    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None = None) -> list[NumberHead]:
        """Returns the conversations of a user in numbers, at most 2,000, the newest first; without unknown ones."""

    async def pull(self, user_id: str, conversation_id: str, begin: int, end: int, limit: int) -> NumberedMessages:
        """Returns the last `limit` messages with numbers in [begin, end], ascending, through the visibility gate."""

    async def pull_list(self, user_id: str, conversation_id: str, wanted: Sequence[int]) -> NumberedMessages: ...

    async def pull_events(self, user_id: str, conversation_id: str, begin_seq: int, end_seq: int) -> list[Message]:
        """Returns the first 200 events in a range of seqs, through the visibility gate."""

    async def numbered(self, server_msg_ids: Sequence[int]) -> dict[int, tuple[int, Message]]:
        """Returns messages by id with their numbers. Only for what receivers of an event may know: no gate is asked."""

    async def numbers_between(
        self, conversation_id: str, sender_id: str, after: int, seq: int, limit: int
    ) -> list[int]:
        """Returns the numbers of a sender's last messages after a seq and up to another one, newest first."""

    async def number_at(self, conversation_id: str, seq: int) -> int:
        """Returns how many messages a conversation has up to a seq."""

    async def places(self, user_id: str, conversation_id: str, wanted: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Returns seq and id of the visible messages with these numbers; a number over the head means the head."""

    async def follow(
        self, owner: str, kind: str, digests: Mapping[str, str], version: int, version_id: str
    ) -> ListChanges:
        """Compare a list, given as names and digests of its entries, with what it was before, note the differences
        under a new version, and return those since the client's version. Repeating it changes nothing."""
