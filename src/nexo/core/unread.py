"""Cursors and unread counts as arithmetic on one member row.

unread = countable messages above `read_seq` − own ones among them. The first is a difference of two
running numbers (every message carries how many countable ones its conversation holds up to it), the
second is `own_above`, so a read costs nothing and a send touches only the sender's row.
"""

from __future__ import annotations

from nexo.core.model import Conversation, Member


def unread(member: Member, conversation: Conversation) -> int:
    countable = conversation.countable if member.to_countable is None else member.to_countable
    return countable - member.read_countable - member.own_above


def unread_mentions(member: Member, conversation: Conversation) -> int:
    at_all = conversation.at_all_count if member.to_at_all is None else member.to_at_all
    return member.mention_unread + at_all - member.at_all_base


def step_over_own(member: Member, seq: int, countable_no: int, at_all: bool) -> None:
    """The member sent `seq`: cursors that stood right before it move on, others stay where they are."""
    if member.delivered_seq == seq - 1:
        member.delivered_seq = seq
    if member.read_seq == seq - 1:
        member.read_seq = seq
        member.read_countable = countable_no
    else:
        member.own_above += 1
    member.last_own_seq = seq
    if at_all:
        member.at_all_base += 1  # one's own @all is no mention of oneself


def open_span(member: Member, conversation: Conversation, from_seq: int) -> None:
    """Join or re-join at `from_seq`: both cursors start just below it and nothing before it counts."""
    member.from_seq = from_seq
    member.to_seq = member.to_countable = member.to_at_all = None
    member.delivered_seq = member.read_seq = from_seq - 1
    member.read_countable = conversation.countable
    member.at_all_base = conversation.at_all_count
    member.own_above = member.mention_unread = 0
    member.last_own_seq = 0


def close_span(member: Member, conversation: Conversation, to_seq: int) -> None:
    """Leave at `to_seq`: the counters freeze with the span."""
    member.to_seq = to_seq
    member.to_countable = conversation.countable
    member.to_at_all = conversation.at_all_count
