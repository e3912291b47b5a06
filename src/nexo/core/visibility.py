"""The one visibility gate: which seqs of a conversation a user may see.

Every path that shows, acknowledges, quotes or recalls a message asks `visible_ranges` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from nexo.core.model import Conversation, Member

Ranges = tuple[tuple[int, int], ...]


def visible_ranges(member: Member | None, conversation: Conversation, past: Iterable[tuple[int, int]]) -> Ranges:
    """The union of the member's spans as ascending, disjoint, closed intervals within what exists."""
    if member is None:
        return ()
    spans = [*past, (member.from_seq, visible_head(member, conversation))]
    return tuple(sorted((low, high) for low, high in spans if 1 <= low <= high))


def visible_head(member: Member, conversation: Conversation) -> int:
    """The last seq the member may ever have seen; follows the head while the span is open."""
    return conversation.head_seq if member.to_seq is None else member.to_seq


def is_visible(ranges: Ranges, seq: int) -> bool:
    return any(low <= seq <= high for low, high in ranges)


def clip(ranges: Ranges, begin: int, end: int) -> Ranges:
    """The parts of `ranges` inside [begin, end]."""
    clipped = ((max(low, begin), min(high, end)) for low, high in ranges)
    return tuple((low, high) for low, high in clipped if low <= high)
