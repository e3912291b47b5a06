"""What later events and calls have changed of earlier messages: recalls, edits, reactions, deletions by the user.

It is remembered for messages that are loaded later, because a page may have been read before the change. No I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec import structs

from nexo_client.core.messages import quote_text
from nexo_client.core.options import DELETED_MAX, EDITED_MAX, REACTED_MAX, RECALLED_MAX
from nexo_client.types import Message, Quote, Reaction

V = TypeVar("V")


class Edit(NamedTuple):
    content: Any
    mentions: tuple[str, ...]
    edited_at: int


class ReactionChange(NamedTuple):
    """The counts, and this user's reactions as far as they are known."""

    counts: Mapping[str, int]
    own: Mapping[str, bool]


class MessageChanges:
    def __init__(self) -> None:
        self.cleared_seq = 0  # the user has cleared everything up to here
        self._recalls: OrderedDict[str, int] = OrderedDict()
        self._edits: OrderedDict[str, Edit] = OrderedDict()
        self._reactions: OrderedDict[str, ReactionChange] = OrderedDict()
        self._deleted: OrderedDict[str, None] = OrderedDict()

    def recalled(self, server_msg_id: str, recalled_at: int) -> None:
        _keep(self._recalls, server_msg_id, recalled_at, RECALLED_MAX)

    def edited(self, server_msg_id: str, edit: Edit) -> bool:
        """Returns whether it is the newest."""
        known = self._edits.get(server_msg_id)
        if known is not None and known.edited_at > edit.edited_at:
            return False
        _keep(self._edits, server_msg_id, edit, EDITED_MAX)
        return True

    def reacted(self, server_msg_id: str, counts: Mapping[str, int], own: Iterable[tuple[str, bool]]) -> None:
        """Notes the counts, and what this user has added or removed."""
        known = self._reactions.get(server_msg_id)
        change = ReactionChange(counts, {**({} if known is None else known.own), **dict(own)})
        _keep(self._reactions, server_msg_id, change, REACTED_MAX)

    def deleted(self, server_msg_id: str) -> bool:
        """Returns whether that is new."""
        if server_msg_id in self._deleted:
            return False
        _keep(self._deleted, server_msg_id, None, DELETED_MAX)
        return True

    def hides(self, message: Message) -> bool:
        """Returns whether this user has deleted it."""
        is_cleared = message.seq is not None and message.seq <= self.cleared_seq
        return is_cleared or message.server_msg_id in self._deleted

    def apply(self, message: Message) -> Message:
        """Returns the message as it is now: the same object where nothing has changed."""
        if not message.status:
            recalled_at = self._recalls.get(message.server_msg_id)
            if recalled_at is not None:
                return message.recalled(recalled_at)
            message = self._with_edit(message)
            message = self._with_reactions(message)
        return message if message.quote is None else self._with_quote(message, message.quote)

    def _with_edit(self, message: Message) -> Message:
        edit = self._edits.get(message.server_msg_id)
        if edit is None or edit.edited_at <= (message.edited_at or 0):
            return message
        return structs.replace(message, content=edit.content, mentions=edit.mentions, edited_at=edit.edited_at)

    def _with_reactions(self, message: Message) -> Message:
        change = self._reactions.get(message.server_msg_id)
        if change is None:
            return message
        mine = {one.emoji: one.mine for one in message.reactions}
        reactions = tuple(
            Reaction(emoji, count, change.own.get(emoji, mine.get(emoji, False)))
            for emoji, count in change.counts.items()
        )
        return message if reactions == message.reactions else structs.replace(message, reactions=reactions)

    def _with_quote(self, message: Message, quote: Quote) -> Message:
        if quote.server_msg_id in self._recalls or quote.server_msg_id in self._deleted:
            return structs.replace(message, quote=None)
        edit = self._edits.get(quote.server_msg_id)
        text = quote.text if edit is None else quote_text(quote.msg_type, edit.content)
        return message if text == quote.text else structs.replace(message, quote=structs.replace(quote, text=text))


def _keep(known: OrderedDict[str, V], key: str, value: V, most: int) -> None:
    """Stores it as the newest, and forgets the oldest beyond the limit."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)
