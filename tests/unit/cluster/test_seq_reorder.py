"""What comes from several instances at once is pushed in the order of its seqs, unless waiting is no use."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from harness.waiting import until
from nexo.cluster import seq_reorder
from nexo.cluster.seq_reorder import SeqReorder


def into(found: list[int], seq: int) -> Callable[[], None]:
    return lambda: found.append(seq)


async def test_in_a_lively_conversation_what_overtakes_waits() -> None:
    order, found = SeqReorder(), list[int]()
    for seq in (1, 3, 4, 2, 5):
        order.take("c", seq, into(found, seq))
    assert found == [1, 2, 3, 4, 5]


async def test_what_never_comes_is_not_waited_for_long() -> None:
    order, found = SeqReorder(), list[int]()
    for seq in (1, 4, 3):
        order.take("c", seq, into(found, seq))
    assert found == [1]
    await until(lambda: found == [1, 3, 4])
    order.take("c", 5, into(found, 5))
    order.take("c", 2, into(found, 2))
    assert found == [1, 3, 4, 5, 2], "late is better than never"


async def test_after_a_silence_nothing_waits() -> None:
    order, found = SeqReorder(), list[int]()
    order.take("c", 1, into(found, 1))
    order._places["c"].at -= seq_reorder.KNOWN_S + 1
    order.take("c", 9, into(found, 9))
    assert found == [1, 9]


async def test_conversations_do_not_wait_for_each_other() -> None:
    order, found = SeqReorder(), list[int]()
    order.take("c", 1, into(found, 1))
    order.take("c", 3, into(found, 3))
    order.take("d", 7, into(found, 7))
    assert found == [1, 7]


@given(st.permutations(range(1, 12)))
async def test_whatever_the_order_everything_is_pushed_once(seqs: list[int]) -> None:
    order, found = SeqReorder(), list[int]()
    order.take("c", 0, into(found, 0))
    for seq in seqs:
        order.take("c", seq, into(found, seq))
    assert found == list(range(12))


async def test_too_much_is_not_held() -> None:
    order, found = SeqReorder(), list[int]()
    order.take("c", 1, into(found, 1))
    for seq in range(3, 3 + seq_reorder.HELD_MAX + 1):
        order.take("c", seq, into(found, seq))
    assert len(found) >= 2
    await until(lambda: sorted(found) == [1, *range(3, 3 + seq_reorder.HELD_MAX + 1)])
