"""The messages of a conversation that are stored in the target, as far as cursors and counts need them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence


class StoredMessages:
    """The messages of one conversation in the target, as far as cursors need them."""

    def __init__(self) -> None:
        self.ids = array("q")  # of seq 1, 2, 3 …
        self.own: dict[str, array[int]] = {}
        self.mentions: dict[str, array[int]] = {}
        self.at_all: list[tuple[int, str]] = []

    def ownabove(self, user_id: str, seq: int) -> int:
        return above(self.own.get(user_id), seq)

    def seq_of(self, cursor: int) -> int:
        return bisect_right(self.ids, cursor)


def above(seqs: Sequence[int] | None, seq: int) -> int:
    return 0 if seqs is None else len(seqs) - bisect_right(seqs, seq)
