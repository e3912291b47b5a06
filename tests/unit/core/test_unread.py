"""Counting without counting: the arithmetic on one row equals going through the log."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.people import a_conversation, a_member
from nexo.core.model import FIRST_EVENT, Conversation, Member, MsgType
from nexo.core.unread import (
    close_span,
    countable_sql,
    move_read,
    open_span,
    step_over_own,
    unread,
    unread_mentions,
    unread_mentions_sql,
    unread_sql,
    visible_at_all,
    visible_at_all_sql,
    visible_countable,
    visible_countable_sql,
)
from nexo.core.visibility import visible_head, visible_head_sql

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


def test_reading_up_to_the_head_leaves_nothing_unread() -> None:
    conversation = a_conversation(head_seq=9, countable=8, at_all_count=3)
    member = a_member(read_seq=2, read_countable=2, own_above=2, last_own_seq=7, mention_unread=1, at_all_base=1)
    assert (unread(member, conversation), unread_mentions(member, conversation)) == (4, 3)
    move_read(member, 9, 8, own=2, deleted=0, mentions=1, at_alls=2)
    assert member.read_seq == 9
    assert (unread(member, conversation), unread_mentions(member, conversation)) == (0, 0)


counts = st.integers(0, 2**40)
MEMBER_COUNTS = ("read_countable", "own_above", "deleted_above", "mention_unread", "at_all_base")
members = st.builds(
    a_member,
    **dict.fromkeys(MEMBER_COUNTS, counts),
    **dict.fromkeys(("to_seq", "to_countable", "to_at_all"), st.none() | counts),
)
conversations = st.builds(a_conversation, **dict.fromkeys(("head_seq", "countable", "at_all_count"), counts))


@given(members, conversations)
def test_sql_computes_what_python_computes(member: Member, conversation: Conversation) -> None:
    rules = [
        (unread, unread_sql),
        (unread_mentions, unread_mentions_sql),
        (visible_countable, visible_countable_sql),
        (visible_at_all, visible_at_all_sql),
        (visible_head, visible_head_sql),
    ]
    database = sqlite3.connect(":memory:")
    try:
        for table, row in (("members", member), ("conversations", conversation)):
            names = row.__struct_fields__
            database.execute(f"CREATE TABLE {table} ({','.join(names)})")
            values = [getattr(row, name) for name in names]
            database.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(names))})", values)
        expressions = ",".join(as_sql("x", "y") for _, as_sql in rules)
        found = database.execute(f"SELECT {expressions} FROM members x JOIN conversations y ON y.id=x.conv").fetchone()
    finally:
        database.close()
    assert found == tuple(rule(member, conversation) for rule, _ in rules)


@pytest.mark.parametrize("alias", ["", "m"])
def test_messages_count_and_events_do_not(alias: str) -> None:
    database = sqlite3.connect(":memory:")
    try:
        kinds = [(int(kind), 0) for kind in MsgType]
        counted = (int(MsgType.CALL), 1)  # the record of a missed call
        database.execute("CREATE TABLE messages (msg_type,counted_event)")
        database.executemany("INSERT INTO messages VALUES (?,?)", [*kinds, counted])
        found = database.execute(f"SELECT * FROM messages {alias} WHERE {countable_sql(alias)}").fetchall()
    finally:
        database.close()
    assert found == [*((kind, 0) for kind, _ in kinds if kind < FIRST_EVENT), counted]
