"""Counting without counting: the arithmetic on one row equals going through the log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.people import a_conversation, a_member
from nexo.core.unread import close_span, open_span, step_over_own, unread, unread_mentions

ME = "alice"
# who sends (None: an event), and whether it is meant for all
happenings = st.lists(st.tuples(st.sampled_from([ME, "bob", None]), st.booleans()), max_size=30)


@given(happenings, happenings)
def test_what_is_unread_is_what_others_sent_above_the_cursor(
    before: list[tuple[str | None, bool]], after: list[tuple[str | None, bool]]
) -> None:
    conversation, member = a_conversation(), a_member()
    log: list[tuple[int, str | None, bool]] = []

    def happen(sender: str | None, at_all: bool, *, inside: bool) -> None:
        conversation.head_seq += 1
        if sender is not None:
            conversation.countable += 1
            conversation.at_all_count += at_all
        if inside:
            log.append((conversation.head_seq, sender, at_all and sender is not None))
            if sender == ME:
                step_over_own(member, conversation.head_seq, conversation.countable, at_all)

    for sender, at_all in before:
        happen(sender, at_all, inside=False)
    happen(None, False, inside=True)  # the event that opens the span
    open_span(member, conversation, conversation.head_seq)
    start = conversation.head_seq - 1
    assert (member.delivered_seq, member.read_seq, unread(member, conversation)) == (start, start, 0)
    for sender, at_all in after:
        happen(sender, at_all, inside=True)
        others = [entry for entry in log if entry[1] == "bob" and entry[0] > member.read_seq]
        assert unread(member, conversation) == len(others)
        assert unread_mentions(member, conversation) == sum(entry[2] for entry in others)
    # the event is not acknowledged, so nothing was stepped over
    assert (member.delivered_seq, member.read_seq) == (start, start)
    frozen = (unread(member, conversation), unread_mentions(member, conversation))
    close_span(member, conversation, conversation.head_seq + 1)
    for _ in range(3):
        happen("bob", True, inside=False)
    assert (unread(member, conversation), unread_mentions(member, conversation)) == frozen


def test_cursors_step_over_an_own_message_right_after_them_and_no_other() -> None:
    member = a_member(delivered_seq=4, read_seq=3)
    step_over_own(member, 5, 5, at_all=False)
    assert (member.delivered_seq, member.read_seq, member.own_above, member.last_own_seq) == (5, 3, 1, 5)
    member = a_member(delivered_seq=4, read_seq=4)
    step_over_own(member, 5, 5, at_all=False)
    assert (member.delivered_seq, member.read_seq, member.own_above, member.read_countable) == (5, 5, 0, 5)
    step_over_own(member, 7, 7, at_all=False)
    assert (member.delivered_seq, member.read_seq, member.own_above) == (5, 5, 1)
