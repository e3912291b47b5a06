"""Unread counts as arithmetic on one member row and its conversation row, in Python and as SQL.

unread = countable messages above `read_seq` - the member's own messages among them - those of other senders among them
that the member has deleted. The first number is a difference of two running counts (each message stores how many
countable messages its conversation holds up to it), the second is `own_above`, the third `deleted_above`. A mention
does not count any more once its message is deleted. Reading costs no scan, and a send writes only the sender's row.
Every `*_sql` function takes table aliases.
"""

from __future__ import annotations

from nexo.core.model import FIRST_EVENT, Conversation, Member, MsgType


def counts_as_unread(msg_type: int, counted_event: int = 0) -> bool:
    """Returns whether a stored message counts as unread: the rule of `countable_sql`, for one row. The group committer
    (`store/batch.py`) does not ask: it writes messages of users only, and each of them counts."""
    return msg_type < FIRST_EVENT or counted_event == 1


def countable_sql(message: str = "") -> str:
    """Returns the condition that a row of `messages` counts as unread: all messages do, events do not, except records
    of calls that were stored as counted."""
    table = f"{message}." if message else ""
    return f"({table}msg_type<{FIRST_EVENT} OR {table}counted_event=1)"


def own_sql(message: str = "") -> str:
    """Returns the condition that the cursors of its sender step over a row of `messages`: over messages and records of
    calls, not over events."""
    table = f"{message}." if message else ""
    return f"({table}msg_type<{FIRST_EVENT} OR {table}msg_type={int(MsgType.CALL)})"


def visible_countable(member: Member, conversation: Conversation) -> int:
    """Returns the countable messages that the member may know of; a closed span has its own, frozen number."""
    return conversation.countable if member.to_countable is None else member.to_countable


def visible_countable_sql(member: str, conversation: str) -> str:
    return f"COALESCE({member}.to_countable,{conversation}.countable)"


def visible_at_all(member: Member, conversation: Conversation) -> int:
    """Returns the @all messages that the member may know of; a closed span has its own, frozen number."""
    return conversation.at_all_count if member.to_at_all is None else member.to_at_all


def visible_at_all_sql(member: str, conversation: str) -> str:
    return f"COALESCE({member}.to_at_all,{conversation}.at_all_count)"


def unread(member: Member, conversation: Conversation) -> int:
    return visible_countable(member, conversation) - member.read_countable - member.own_above - member.deleted_above


def unread_sql(member: str, conversation: str) -> str:
    return (
        f"({visible_countable_sql(member, conversation)}-{member}.read_countable-{member}.own_above"
        f"-{member}.deleted_above)"
    )


def unread_mentions(member: Member, conversation: Conversation) -> int:
    return member.mention_unread + visible_at_all(member, conversation) - member.at_all_base


def unread_mentions_sql(member: str, conversation: str) -> str:
    return f"({member}.mention_unread+{visible_at_all_sql(member, conversation)}-{member}.at_all_base)"


def step_over_own(member: Member, seq: int, countable_no: int, at_all: bool, *, counts: bool = True) -> None:
    """Count the member's own message `seq`, if it `counts`. A cursor directly below it moves over it; any other
    stays."""
    if member.delivered_seq == seq - 1:
        member.delivered_seq = seq
    if member.read_seq == seq - 1:
        member.read_seq = seq
        member.read_countable = countable_no
    elif counts:
        member.own_above += 1
    member.last_own_seq = seq
    if at_all:
        member.at_all_base += 1  # a sender is not mentioned by their own @all


def move_read(
    member: Member, read_seq: int, countable_no: int, *, own: int, deleted: int, mentions: int, at_alls: int
) -> None:
    """Move the read cursor to `read_seq`, which has the running number `countable_no`, past so many of the member's
    own messages, deleted messages of other senders, and mentions of the member and @all messages of other senders that
    are not deleted."""
    member.own_above -= own
    member.deleted_above -= deleted
    member.mention_unread -= mentions
    member.at_all_base += at_alls
    member.read_seq = read_seq
    member.read_countable = countable_no


def open_span(member: Member, conversation: Conversation, from_seq: int) -> None:
    """Join or re-join at `from_seq`: both cursors start directly below it, and earlier messages do not count."""
    member.from_seq = from_seq
    member.to_seq = member.to_countable = member.to_at_all = None
    member.delivered_seq = member.read_seq = from_seq - 1
    member.read_countable = conversation.countable
    member.at_all_base = conversation.at_all_count
    member.own_above = member.mention_unread = member.deleted_above = 0
    member.last_own_seq = 0


def close_span(member: Member, conversation: Conversation, to_seq: int) -> None:
    """Leave at `to_seq`: the counters freeze with the span."""
    member.to_seq = to_seq
    member.to_countable = conversation.countable
    member.to_at_all = conversation.at_all_count


def delete_above(member: Member, *, counted: int, mentions: int, at_alls: int) -> None:
    """Take so many messages of others above the read cursor, which the member deletes, out of the counts: countable
    ones, mentions of the member, and @all messages."""
    member.deleted_above += counted
    member.mention_unread -= mentions
    member.at_all_base += at_alls


def clear_up_to_head(member: Member, conversation: Conversation, head_seq: int) -> None:
    """Take everything that the member may see out of the counts. The read cursor stays."""
    member.cleared_seq = head_seq
    member.deleted_above = visible_countable(member, conversation) - member.read_countable - member.own_above
    member.mention_unread = 0
    member.at_all_base = visible_at_all(member, conversation)
    member.deleted_count = 0
