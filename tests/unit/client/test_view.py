"""One conversation: what is given in order, what is shown, what is unread."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from nexo.client.model import Entry, Message, Quote
from nexo.client.view import View

CHAT = "si_alice:bob"


def a_message(seq: int | None, sender_id: str = "bob", **fields: Any) -> Message:
    known: dict[str, Any] = {"server_msg_id": f"id{seq}", "client_msg_id": None, "content": f"text {seq}"}
    return Message(
        **known | {"conversation_id": CHAT, "seq": seq, "sender_id": sender_id, "send_at": seq or 0} | fields
    )


def an_entry(head_seq: int, **fields: Any) -> Entry:
    known = {"min_seq": 1, "read_seq": 0, "delivered_seq": 0, "unread": 0} | fields
    return Entry(conversation_id=CHAT, head_seq=head_seq, **known)


def a_view(head_seq: int = 0, window_size: int = 500, **fields: Any) -> View:
    view = View(CHAT, "alice", window_size)
    view.told(an_entry(head_seq, **fields))
    return view


def seqs(messages: list[Message]) -> list[int | None]:
    return [message.seq for message in messages]


def test_a_device_that_sees_a_conversation_first_begins_at_what_was_delivered() -> None:
    assert a_view(100, delivered_seq=90).synced_seq == 90
    assert a_view(100, delivered_seq=90, min_seq=96).synced_seq == 95


def test_a_stored_baseline_comes_before_what_other_devices_have() -> None:
    view = View(CHAT, "alice", 500)
    view.told(an_entry(100, delivered_seq=90), baseline=40)
    assert view.synced_seq == 40


def test_a_baseline_beyond_the_head_does_not_hide_what_comes() -> None:
    view = View(CHAT, "alice", 500)
    view.told(an_entry(10, delivered_seq=10), baseline=4000)
    assert seqs(view.place(a_message(11))) == [11]


def test_what_lies_above_a_hole_is_given_when_it_is_filled() -> None:
    view = a_view()
    assert seqs(view.place(a_message(3))) == []
    assert seqs(view.place(a_message(1))) == [1]
    assert (view.synced_seq, view.head_seq, seqs(view.messages)) == (1, 3, [1])
    assert seqs(view.place(a_message(2))) == [2, 3]
    assert seqs(view.place(a_message(2))) == []
    assert seqs(view.messages) == [1, 2, 3]


def test_what_a_pull_does_not_give_is_stepped_over() -> None:
    view = a_view(9)
    view.place(a_message(8))
    assert seqs(view.pulled([a_message(2), a_message(5)], 10, 9, False)) == [2, 5, 8]
    assert (view.synced_seq, view.has_gap) == (9, False)


def test_a_head_that_a_pull_does_not_find_is_believed_to_be_gone_after_a_second_look() -> None:
    view = a_view(3)
    view.told_head(5)
    view.pulled([a_message(seq) for seq in (1, 2, 3)], 4, 3, False)
    assert view.has_gap
    view.pulled([], 4, 3, False)
    assert not view.has_gap


def test_coming_back_into_a_group_starts_below_the_new_membership() -> None:
    view = a_view()
    for seq in (1, 2, 3):
        view.place(a_message(seq))
    view.told(an_entry(20, min_seq=15, read_seq=14, delivered_seq=14, unread=5))
    assert (view.synced_seq, view.unread, seqs(view.messages), view.has_earlier) == (14, 5, [], True)
    assert seqs(view.place(a_message(15))) == [15]


def test_unread_counts_messages_of_others_once() -> None:
    view = a_view()
    for message in (a_message(1), a_message(2, "alice"), a_message(3, msg_type=103), a_message(4), a_message(4)):
        view.place(message)
    assert view.unread == 2
    view.read_to(1)
    assert (view.unread, view.read_seq) == (1, 2), "one's own message is stepped over"
    view.read_to(4)
    assert view.unread == 0


def test_what_was_read_elsewhere_before_it_came_is_not_counted() -> None:
    view = a_view()
    view.place(a_message(1))
    view.read_to(3)
    for seq in (2, 3, 4):
        view.place(a_message(seq))
    assert (view.unread, view.read_seq) == (1, 3)


def test_a_count_of_the_server_holds_for_its_head() -> None:
    view = a_view(10, delivered_seq=10, read_seq=4, unread=6)
    view.place(a_message(11))
    assert view.unread == 7
    view.told(an_entry(10, delivered_seq=10, read_seq=4, unread=6))  # read before message 11 was stored
    assert view.unread == 7


def test_reading_into_what_is_not_in_memory_has_to_be_asked_for() -> None:
    view = a_view(10, delivered_seq=10, read_seq=4, unread=6)
    view.read_to(7)
    assert view.is_unread_stale
    view.told(an_entry(10, delivered_seq=10, read_seq=7, unread=3))
    assert (view.unread, view.is_unread_stale) == (3, False)


def test_the_window_is_bounded_at_both_ends() -> None:
    view = a_view(window_size=5)
    for seq in range(1, 11):
        view.place(a_message(seq))
    assert (seqs(view.messages), view.has_earlier) == ([6, 7, 8, 9, 10], True)
    assert view.add_earlier(6, [a_message(seq) for seq in (5, 4, 3)], True) == 3
    assert (seqs(view.messages), view.has_later) == ([3, 4, 5, 6, 7], True)
    view.place(a_message(11))
    assert seqs(view.messages) == [3, 4, 5, 6, 7]
    assert view.add_later(7, [a_message(seq) for seq in (8, 9, 10, 11)], 12, False) == 4
    assert (seqs(view.messages), view.has_later) == ([7, 8, 9, 10, 11], False)


def test_a_window_in_which_somebody_reads_keeps_its_oldest() -> None:
    view = a_view(window_size=3)
    view.keeps_place = True
    for seq in range(1, 6):
        view.place(a_message(seq))
    assert (seqs(view.messages), view.has_later, view.unread) == ([1, 2, 3], True, 5)
    view.keeps_place = False
    view.add_later(3, [a_message(4), a_message(5)], 6, False)
    view.place(a_message(6))
    assert (seqs(view.messages), view.has_later) == ([4, 5, 6], False)


def test_a_page_that_does_not_fit_any_more_is_left_out() -> None:
    view = a_view(10, delivered_seq=10)
    assert view.add_earlier(4, [a_message(3)], True) == 0
    assert view.messages == []


def test_what_came_while_the_newest_page_was_read_is_not_lost_from_the_window() -> None:
    view = a_view(10, delivered_seq=10)
    view.place(a_message(11))
    view.set_window([a_message(10), a_message(9)], True, 10)
    assert (seqs(view.messages), view.has_later) == ([9, 10, 11], False)


def test_a_recall_blanks_the_message_its_quotes_and_pages_read_before_it() -> None:
    view = a_view(3, delivered_seq=1)
    view.place(a_message(2, quote=Quote("id1", "bob", 1, "text 1")))
    view.place(a_message(3, msg_type=100, content={"server_msg_id": "id2", "seq": 2, "by": "bob"}))
    assert (view.messages[0].content, view.messages[0].status) == ("", 1)
    view.recall("id1", 99)
    view.add_earlier(2, [a_message(1)], False)
    assert [message.quote for message in view.messages] == [None, None, None]
    assert (view.messages[0].content, view.messages[0].recalled_at) == ("", 99)


def test_a_final_copy_replaces_the_provisional_one() -> None:
    view = a_view()
    copy = structs.replace(a_message(None, provisional=True), server_msg_id="id1")
    assert view.show_provisional(copy, 60.0)
    assert [message.provisional for message in view.messages] == [True]
    view.place(a_message(1))
    assert [message.provisional for message in view.messages] == [False]
    assert not view.show_provisional(copy, 60.0)
    assert view.unread == 1


def test_nothing_is_acknowledged_for_own_messages_alone() -> None:
    view = a_view()
    view.place(a_message(1, "alice"))
    assert not view.must_acknowledge
    view.place(a_message(2))
    assert view.must_acknowledge
