"""Batches that this instance has just committed, for the readers of the journal that run on it.

Reading rows back and making messages of them costs more than everything else that a reader does with a message. What
was kept is used only after a statement has shown that it was not changed since (`resolving.py`). A row of the journal
is recognised by its references: each seq of a conversation is in one row only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from nexo.ids import CANARY_IDS
from nexo.store.rows import NewMessage

KEPT_MESSAGES = 4096  # between this number and twice as many are kept
KEPT_CHARS = 4 << 20  # of their contents, likewise
BATCHES_AFTER_READ = 1000  # batches that are kept after the last read: without readers, nothing is


class RecentBatch(Struct, frozen=True, gc=False):
    """The messages of one row of the journal, in the order of its parts."""

    messages: list[NewMessage]
    size: int  # characters
    first_id: int
    last_id: int
    is_plain: bool  # all of them are entries as they are


class RecentBatches:
    """`add` is called by one thread at a time, `find` by any: each of them does single operations on dictionaries."""

    def __init__(self) -> None:
        self._young: dict[str, RecentBatch] = {}
        self._old: dict[str, RecentBatch] = {}
        self._messages = self._chars = 0  # of the young ones
        self._batches_left = 0

    def add(self, entries: str, messages: Sequence[NewMessage]) -> None:
        """Keep what was stored with this row of the journal. Called after the commit."""
        if not self._batches_left:
            return
        self._batches_left -= 1
        if not self._batches_left:
            self._young, self._old = {}, {}
            self._messages = self._chars = 0
            return
        batch = _batch(messages)
        self._young[entries] = batch
        self._messages += len(batch.messages)
        self._chars += batch.size
        if self._messages >= KEPT_MESSAGES or self._chars >= KEPT_CHARS:
            self._young, self._old = {}, self._young
            self._messages = self._chars = 0

    def want(self) -> None:
        """There is a reader: keep what is committed from now on."""
        self._batches_left = BATCHES_AFTER_READ

    def find(self, entries: str) -> RecentBatch | None:
        return self._young.get(entries) or self._old.get(entries)


def is_entry(message: NewMessage) -> bool:
    """Returns whether the message is an entry as it is: the quote of a reply depends on another message."""
    return message[0].reply_to is None and message[0].sender_id not in CANARY_IDS


def _batch(messages: Sequence[NewMessage]) -> RecentBatch:
    # for every message that is saved while there is a reader
    by_conversation: defaultdict[int, list[NewMessage]] = defaultdict(list)
    for one in messages:
        by_conversation[one[1]].append(one)
    in_order: list[NewMessage] = []
    size, first_id, last_id, is_plain = 0, messages[0][0].server_msg_id, 0, True
    for added in by_conversation.values():
        in_order += added
        for message, *_ in added:
            server_msg_id = message.server_msg_id
            if server_msg_id < first_id:
                first_id = server_msg_id
            if server_msg_id > last_id:
                last_id = server_msg_id
            size += len(message.content)
            if message.extra is not None:
                size += len(message.extra)
            if message.reply_to is not None:
                is_plain = False
        if message.sender_id in CANARY_IDS:
            is_plain = False
    return RecentBatch(in_order, size, first_id, last_id, is_plain)
