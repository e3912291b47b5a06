"""Batches that an instance keeps for its readers: bounded, in the order of the journal, and none without a reader."""

from __future__ import annotations

from nexo.core.model import Message
from nexo.store.journal import recent
from nexo.store.journal.recent import BATCHES_AFTER_READ, KEPT_CHARS, KEPT_MESSAGES, RecentBatches
from nexo.store.rows import NewMessage


def stored(conv: int, seq: int, *, content: str = '"x"', reply_to: int | None = None) -> NewMessage:
    message = Message(conv * 1000 + seq, f"c{seq}", f"si_{conv}", seq, "ann", 1, content, 1, reply_to=reply_to)
    return message, conv, b"", seq


def with_reader() -> RecentBatches:
    kept = RecentBatches()
    kept.want()
    return kept


def test_without_a_reader_nothing_is_kept() -> None:
    kept = RecentBatches()
    kept.add("a", [stored(1, 1)])
    assert kept.find("a") is None
    kept.want()
    kept.add("b", [stored(1, 2)])
    assert kept.find("b") is not None
    for number in range(BATCHES_AFTER_READ):
        kept.add(f"c{number}", [stored(1, 3)])
    assert kept.find("b") is None, "the reader is gone"
    assert kept.find(f"c{BATCHES_AFTER_READ - 2}") is None


def test_a_batch_is_in_the_order_of_its_references() -> None:
    kept = with_reader()
    kept.add("row", [stored(2, 7), stored(1, 4), stored(2, 8), stored(1, 5, reply_to=3)])
    batch = kept.find("row")
    assert batch is not None
    assert [(conv, message.seq) for message, conv, _, _ in batch.messages] == [(2, 7), (2, 8), (1, 4), (1, 5)]
    assert (batch.first_id, batch.last_id, batch.is_plain) == (1004, 2008, False)
    assert [recent.is_entry(one) for one in batch.messages] == [True, True, True, False]


def test_the_oldest_are_forgotten_by_number_and_by_size() -> None:
    kept = with_reader()
    for row in range(40):
        kept.add(str(row), [stored(1, seq) for seq in range(row * 1000, (row + 1) * 1000)])
        there = [number for number in range(row + 1) if kept.find(str(number))]
        assert there == list(range(row + 1 - len(there), row + 1)), "the newest ones"
        assert len(there) * 1000 <= 2 * KEPT_MESSAGES + 1000
    large = "x" * (KEPT_CHARS // 4)
    for row in range(100, 120):
        kept.add(str(row), [stored(1, row, content=large)])
    assert sum(kept.find(str(row)) is not None for row in range(100, 120)) <= 8
    assert kept.find("39") is None
