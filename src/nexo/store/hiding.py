"""What a reader has deleted, as conditions and ranges for the scripts that read."""

from __future__ import annotations

from collections.abc import Iterable

from nexo.core.model import Member
from nexo.core.visibility import Ranges, shown_ranges, without
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.sql import Fragment


def not_deleted(conv: int, user_id: str, seq: str) -> Fragment:
    """Returns the condition that a member has not deleted the message at the column `seq`. What they have cleared is
    outside of `ConversationView.shown`. The conversation is a parameter: the database looks at this member's rows."""
    sql = f"NOT EXISTS (SELECT 1 FROM message_deletions d WHERE d.conv=? AND d.user_id=? AND d.seq={seq})"
    return Fragment(sql, (conv, user_id))


def not_deleted_by(member: Member | None, seq: str = "messages.seq") -> Fragment:
    """As `not_deleted`, and true for all messages while the member has deleted no single message."""
    if member is None or not member.deleted_count:
        return Fragment("1=1", ())
    return not_deleted(member.conv, member.user_id, seq)


def deleters_of(targets: Iterable[tuple[int, int]]) -> Script[dict[tuple[int, int], tuple[str, ...]]]:
    """Returns the members who have deleted messages, by conversation and seq."""
    places = sorted(set(targets))
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    for start in range(0, len(places), 100):
        chunk = places[start : start + 100]
        condition = " OR ".join(["(conv=? AND seq=?)"] * len(chunk))
        params = [value for place in chunk for value in place]
        for conv, seq, user_id in (
            yield query(f"SELECT conv,seq,user_id FROM message_deletions WHERE {condition}", *params)
        ):
            found[conv, seq] = (*found.get((conv, seq), ()), user_id)
    return found


def shown_above(
    conv: int, user_id: str, ranges: Ranges, start: int, cleared_seq: int, deleted_count: int
) -> Script[Ranges]:
    """Returns the parts of `ranges` above `start` that the member has neither cleared nor deleted."""
    shown = shown_ranges(ranges, max(start, cleared_seq))
    if deleted_count and shown:
        found = yield query(
            "SELECT seq FROM message_deletions WHERE conv=? AND user_id=? AND seq>=? ORDER BY seq",
            conv,
            user_id,
            shown[0][0],
        )
        shown = without(shown, [row[0] for row in found])
    return shown
