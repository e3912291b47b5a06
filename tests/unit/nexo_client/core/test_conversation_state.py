"""One conversation: what is given in order, what is shown, what is unread."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from nexo_client.core.conversation_state import ConversationState
from nexo_client.types import Entry, Message, Quote

CHAT = "si_alice:bob"


def a_message(seq: int | None, sender_id: str = "bob", **fields: Any) -> Message:
    known: dict[str, Any] = {"server_msg_id": f"id{seq}", "client_msg_id": None, "content": f"text {seq}"}
    return Message(
        **known | {"conversation_id": CHAT, "seq": seq, "sender_id": sender_id, "send_at": seq or 0} | fields
    )


def an_entry(head_seq: int, **fields: Any) -> Entry:
    known = {"min_seq": 1, "read_seq": 0, "delivered_seq": 0, "unread": 0} | fields
    return Entry(conversation_id=CHAT, head_seq=head_seq, **known)


def a_conversation(head_seq: int = 0, window_size: int = 500, **fields: Any) -> ConversationState:
    conversation = ConversationState(CHAT, "alice", window_size)
    conversation.apply_entry(an_entry(head_seq, **fields))
    return conversation


def seqs(messages: list[Message]) -> list[int | None]:
    return [message.seq for message in messages]


def test_a_device_that_sees_a_conversation_first_begins_at_what_was_delivered() -> None:
    assert a_conversation(100, delivered_seq=90).synced_seq == 90
    assert a_conversation(100, delivered_seq=90, min_seq=96).synced_seq == 95


def test_a_stored_baseline_comes_before_what_other_devices_have() -> None:
    conversation = ConversationState(CHAT, "alice", 500)
    conversation.apply_entry(an_entry(100, delivered_seq=90), baseline=40)
    assert conversation.synced_seq == 40


def test_a_baseline_beyond_the_head_does_not_hide_what_comes() -> None:
    conversation = ConversationState(CHAT, "alice", 500)
    conversation.apply_entry(an_entry(10, delivered_seq=10), baseline=4000)
    assert seqs(conversation.receive(a_message(11))) == [11]


def test_what_lies_above_a_hole_is_given_when_it_is_filled() -> None:
    conversation = a_conversation()
    assert seqs(conversation.receive(a_message(3))) == []
    assert seqs(conversation.receive(a_message(1))) == [1]
    assert (conversation.synced_seq, conversation.head_seq, seqs(conversation.messages)) == (1, 3, [1])
    assert seqs(conversation.receive(a_message(2))) == [2, 3]
    assert seqs(conversation.receive(a_message(2))) == []
    assert seqs(conversation.messages) == [1, 2, 3]


def test_what_a_pull_does_not_give_is_stepped_over() -> None:
    conversation = a_conversation(9)
    conversation.receive(a_message(8))
    assert seqs(conversation.receive_page([a_message(2), a_message(5)], 10, 9, False)) == [2, 5, 8]
    assert (conversation.synced_seq, conversation.has_gap) == (9, False)


def test_a_head_that_a_pull_does_not_find_is_believed_to_be_gone_after_a_second_look() -> None:
    conversation = a_conversation(3)
    conversation.timeline.learn_head(5)
    conversation.receive_page([a_message(seq) for seq in (1, 2, 3)], 4, 3, False)
    assert conversation.has_gap
    conversation.receive_page([], 4, 3, False)
    assert not conversation.has_gap


def test_coming_back_into_a_group_starts_below_the_new_membership() -> None:
    conversation = a_conversation()
    for seq in (1, 2, 3):
        conversation.receive(a_message(seq))
    conversation.apply_entry(an_entry(20, min_seq=15, read_seq=14, delivered_seq=14, unread=5))
    assert (
        conversation.synced_seq,
        conversation.unread,
        seqs(conversation.messages),
        conversation.window.has_earlier,
    ) == (14, 5, [], True)
    assert seqs(conversation.receive(a_message(15))) == [15]


def test_unread_counts_messages_of_others_once() -> None:
    conversation = a_conversation()
    for message in (a_message(1), a_message(2, "alice"), a_message(3, msg_type=103), a_message(4), a_message(4)):
        conversation.receive(message)
    assert conversation.unread == 2
    conversation.read_to(1)
    assert (conversation.unread, conversation.read_seq) == (1, 2), "one's own message is stepped over"
    conversation.read_to(4)
    assert conversation.unread == 0


def test_what_was_read_elsewhere_before_it_came_is_not_counted() -> None:
    conversation = a_conversation()
    conversation.receive(a_message(1))
    conversation.read_to(3)
    for seq in (2, 3, 4):
        conversation.receive(a_message(seq))
    assert (conversation.unread, conversation.read_seq) == (1, 3)


def test_a_count_of_the_server_holds_for_its_head() -> None:
    conversation = a_conversation(10, delivered_seq=10, read_seq=4, unread=6)
    conversation.receive(a_message(11))
    assert conversation.unread == 7
    conversation.apply_entry(an_entry(10, delivered_seq=10, read_seq=4, unread=6))  # read before message 11 was stored
    assert conversation.unread == 7


def test_reading_into_what_is_not_in_memory_has_to_be_asked_for() -> None:
    conversation = a_conversation(10, delivered_seq=10, read_seq=4, unread=6)
    conversation.read_to(7)
    assert conversation.unread_counter.is_stale
    conversation.apply_entry(an_entry(10, delivered_seq=10, read_seq=7, unread=3))
    assert (conversation.unread, conversation.unread_counter.is_stale) == (3, False)


def test_the_window_is_bounded_at_both_ends() -> None:
    conversation = a_conversation(window_size=5)
    for seq in range(1, 11):
        conversation.receive(a_message(seq))
    assert (seqs(conversation.messages), conversation.window.has_earlier) == ([6, 7, 8, 9, 10], True)
    assert conversation.add_earlier(6, [a_message(seq) for seq in (5, 4, 3)], True) == 3
    assert (seqs(conversation.messages), conversation.window.has_later) == ([3, 4, 5, 6, 7], True)
    conversation.receive(a_message(11))
    assert seqs(conversation.messages) == [3, 4, 5, 6, 7]
    assert conversation.add_later(7, [a_message(seq) for seq in (8, 9, 10, 11)], 12, False) == 4
    assert (seqs(conversation.messages), conversation.window.has_later) == ([7, 8, 9, 10, 11], False)


def test_a_window_in_which_somebody_reads_keeps_its_oldest() -> None:
    conversation = a_conversation(window_size=3)
    conversation.window.keeps_place = True
    for seq in range(1, 6):
        conversation.receive(a_message(seq))
    assert (seqs(conversation.messages), conversation.window.has_later, conversation.unread) == ([1, 2, 3], True, 5)
    conversation.window.keeps_place = False
    conversation.add_later(3, [a_message(4), a_message(5)], 6, False)
    conversation.receive(a_message(6))
    assert (seqs(conversation.messages), conversation.window.has_later) == ([4, 5, 6], False)


def test_a_page_that_does_not_fit_any_more_is_left_out() -> None:
    conversation = a_conversation(10, delivered_seq=10)
    assert conversation.add_earlier(4, [a_message(3)], True) == 0
    assert conversation.messages == []


def test_what_came_while_the_newest_page_was_read_is_not_lost_from_the_window() -> None:
    conversation = a_conversation(10, delivered_seq=10)
    conversation.receive(a_message(11))
    conversation.set_window([a_message(10), a_message(9)], True, 10)
    assert (seqs(conversation.messages), conversation.window.has_later) == ([9, 10, 11], False)


def test_a_recall_blanks_the_message_its_quotes_and_pages_read_before_it() -> None:
    conversation = a_conversation(3, delivered_seq=1)
    conversation.receive(a_message(2, quote=Quote("id1", "bob", 1, "text 1")))
    conversation.receive(a_message(3, msg_type=100, content={"server_msg_id": "id2", "seq": 2, "by": "bob"}))
    assert (conversation.messages[0].content, conversation.messages[0].status) == ("", 1)
    conversation.mark_recalled("id1", 99)
    conversation.add_earlier(2, [a_message(1)], False)
    assert [message.quote for message in conversation.messages] == [None, None, None]
    assert (conversation.messages[0].content, conversation.messages[0].recalled_at) == ("", 99)


def test_a_final_copy_replaces_the_provisional_one() -> None:
    conversation = a_conversation()
    copy = structs.replace(a_message(None, provisional=True), server_msg_id="id1")
    assert conversation.receive_provisional(copy, 60.0)
    assert [message.provisional for message in conversation.messages] == [True]
    conversation.receive(a_message(1))
    assert [message.provisional for message in conversation.messages] == [False]
    assert not conversation.receive_provisional(copy, 60.0)
    assert conversation.unread == 1


def test_nothing_is_acknowledged_for_own_messages_alone() -> None:
    conversation = a_conversation()
    conversation.receive(a_message(1, "alice"))
    assert not conversation.must_acknowledge
    conversation.receive(a_message(2))
    assert conversation.must_acknowledge
