"""The visibility gate: which seqs of a conversation a user may see.

Every path that shows, acknowledges, quotes or recalls a message asks `visible_ranges`. No other code decides it.
"""

from __future__ import annotations

from collections.abc import Iterable

from nexo.core.model import Conversation, Member

Ranges = tuple[tuple[int, int], ...]


def visible_ranges(member: Member | None, conversation: Conversation, past: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the union of the member's spans as ascending, disjoint, closed intervals within what exists."""
    if member is None:
        return ()
    spans = [*past, (member.from_seq, visible_head(member, conversation))]
    return tuple(sorted((low, high) for low, high in spans if 1 <= low <= high))


def visible_head(member: Member, conversation: Conversation) -> int:
    """Returns the last seq that the member may see: the head while the span is open, else the end of the span."""
    return conversation.head_seq if member.to_seq is None else member.to_seq


def visible_head_sql(member: str, conversation: str) -> str:
    """Returns `visible_head` as SQL, for these table aliases."""
    return f"COALESCE({member}.to_seq,{conversation}.head_seq)"


def last_seq_sql(member: str, conversation: str) -> str:
    """Returns, as SQL, the seq of the last message that the member may see, without events about earlier messages."""
    last = f"CASE WHEN {conversation}.quiet_head={conversation}.head_seq THEN {conversation}.last_seq"
    return f"COALESCE({member}.to_seq,{last} ELSE {conversation}.head_seq END)"


def last_activity_sql(member: str, conversation: str) -> str:
    """Returns, as SQL, the time of the message at `last_seq_sql`."""
    last = f"CASE WHEN {conversation}.quiet_head={conversation}.head_seq THEN {conversation}.last_at"
    return f"COALESCE({member}.left_at,{last} ELSE {conversation}.last_send_at END)"


def is_visible(ranges: Ranges, seq: int) -> bool:
    return any(low <= seq <= high for low, high in ranges)


def clip(ranges: Ranges, begin: int, end: int) -> Ranges:
    """Returns the parts of `ranges` inside [begin, end]."""
    clipped = ((max(low, begin), min(high, end)) for low, high in ranges)
    return tuple((low, high) for low, high in clipped if low <= high)


def shown_ranges(ranges: Ranges, cleared_seq: int) -> Ranges:
    """Returns the parts of `ranges` whose content the member has not cleared."""
    return clip(ranges, cleared_seq + 1, ranges[-1][1]) if cleared_seq and ranges else ranges


def without(ranges: Ranges, seqs: Iterable[int]) -> Ranges:
    """Returns `ranges` without these seqs, which ascend."""
    parts: list[tuple[int, int]] = []
    left = iter(seqs)
    seq = next(left, None)
    for low, high in ranges:
        while seq is not None and seq <= high:
            if seq >= low:
                if low < seq:
                    parts.append((low, seq - 1))
                low = seq + 1
            seq = next(left, None)
        if low <= high:
            parts.append((low, high))
    return tuple(parts)
