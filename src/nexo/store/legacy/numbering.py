"""Numbers of messages within their chats (`msg_seq`), for cursors that refer to them.

Numbers may have holes, and messages are stored in the order of their ids: a cursor covers the messages before the first
one with a higher number, so that no message counts as read that was not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from nexo.core.model import Kind
from nexo.store.legacy.chats import LegacyChat
from nexo.store.legacy.stored_messages import StoredMessages
from nexo.store.legacy.tables import MESSAGES, LegacyDatabase

AT_ONCE = 500


class ChatNumbers:
    """The numbers of one old chat: of each message in the order of ids, the highest so far, and its new seq."""

    def __init__(self) -> None:
        self._highest = array("q")
        self._seqs = array("q")

    def add(self, number: int, seq: int) -> None:
        last = self._highest[-1] if self._highest else 0
        self._highest.append(max(number, last))
        self._seqs.append(seq)

    def seq_of(self, cursor: int) -> int:
        covered = bisect_right(self._highest, cursor)
        return self._seqs[covered - 1] if covered else 0


async def read_numbers(
    legacy: LegacyDatabase,
    kind: Kind,
    chats: Mapping[str, LegacyChat],
    ids: Sequence[object],
    seen: Mapping[int, StoredMessages],
) -> dict[str, ChatNumbers]:
    """Returns the numbers of these old chats; none where the source has none."""
    numbers: dict[str, ChatNumbers] = {}
    if not legacy.has_seqs:
        return numbers
    place = legacy.name(MESSAGES, "group_id" if kind == Kind.GROUP else "single_chat_id")
    key, number_of = legacy.name(MESSAGES, "id"), legacy.name(MESSAGES, "msg_seq")
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        found = await legacy.connection.read(
            f"SELECT {place},{number_of},{key} FROM {MESSAGES.name} WHERE {place} IN ({','.join('?' * len(some))}) "
            f"ORDER BY {key}",
            *some,
        )
        for chat_id, number, message_id in found:
            stored = seen.get(chats[str(chat_id)].conv)
            seq = stored.seq_of(message_id) if stored is not None else 0
            if seq and stored is not None and stored.ids[seq - 1] == message_id:
                numbers.setdefault(str(chat_id), ChatNumbers()).add(int(number or 0), seq)
    return numbers
