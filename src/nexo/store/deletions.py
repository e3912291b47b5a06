"""Deleting for oneself: single messages as rows of `message_deletions`, everything up to a seq as `cleared_seq`.

Both hide content from one member and from no other. Cursors, heads and seqs do not change, so only the member's row is
locked, as the cursor writer does; the counts of unread messages are kept exact in the same transaction. What is deleted
is left out of replies: clients step over it by `next_seq`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nexo.core.model import FIRST_EVENT, Conversation, Member, MsgType
from nexo.core.unread import clear_up_to_head, countable_sql, counts_as_unread, delete_above, unread
from nexo.core.visibility import is_visible, visible_head
from nexo.errors import NexoError
from nexo.ids import AT_ALL
from nexo.ports import DeletedSince, Deletion
from nexo.store import rows
from nexo.store.conversations import lock_member, read_ranges
from nexo.store.engine import Script, do
from nexo.store.engine import rows as query
from nexo.store.history import open_view
from nexo.store.sql import Sql, insert_rows

MAX_DELETED = 10_000  # per member and conversation
INSERT_ROWS = 200
_CONVERSATION = rows.columns(rows.CONVERSATION)
_INSERTED = ("conv", "user_id", "seq", "server_msg_id", "counts", "rev")

Memo = dict[int, Deletion]  # what an earlier attempt did, which may be committed, by conversation


class _Doomed(NamedTuple):
    server_msg_id: int
    conv: int
    conversation_id: str
    seq: int
    sender_id: str
    msg_type: int
    counted_event: int

    @property
    def is_countable(self) -> bool:
        return counts_as_unread(self.msg_type, self.counted_event)


def delete(sql: Sql, user_id: str, server_msg_ids: Sequence[int], memo: Memo) -> Script[list[Deletion]]:
    """Hides messages from a member: all of them, or none if one cannot be deleted. Returns what changed, per
    conversation; messages that are hidden already change nothing."""
    wanted = sorted(set(server_msg_ids))
    chosen = sql.one_of("m.server_msg_id", wanted, "bigint")
    found = yield query(
        "SELECT m.server_msg_id,m.conv,c.conversation_id,m.seq,m.sender_id,m.msg_type,m.counted_event "
        "FROM messages m "
        f"JOIN conversations c ON c.id=m.conv WHERE {chosen.sql}",
        *chosen.params,
    )
    by_conv: dict[int, list[_Doomed]] = {}
    for row in found:
        by_conv.setdefault(row[1], []).append(_Doomed(*row))
    if len(found) < len(wanted):
        raise NexoError("message_not_found")
    done: list[Deletion] = []
    for conv in sorted(by_conv):
        deletion = yield from _delete_in(sql, user_id, conv, sorted(by_conv[conv], key=lambda one: one.seq))
        deletion = deletion or memo.get(conv)
        if deletion is not None:
            memo[conv] = deletion
            done.append(deletion)
    return done


def _delete_in(sql: Sql, user_id: str, conv: int, doomed: list[_Doomed]) -> Script[Deletion | None]:
    member, conversation = yield from _lock(sql, conv, user_id)
    ranges = yield from read_ranges(member, conversation)
    if member is None or not all(is_visible(ranges, one.seq) for one in doomed):
        raise NexoError("message_not_found")
    if any(one.msg_type >= FIRST_EVENT and one.msg_type != MsgType.CALL for one in doomed):
        raise NexoError("message_not_found", "Events cannot be deleted, only cleared with everything before them")
    chosen = sql.one_of("seq", [one.seq for one in doomed], "bigint")
    hidden = yield query(
        f"SELECT seq FROM message_deletions WHERE conv=? AND user_id=? AND {chosen.sql}", conv, user_id, *chosen.params
    )
    known = {row[0] for row in hidden}
    fresh = [one for one in doomed if one.seq not in known and one.seq > member.cleared_seq]
    if not fresh:
        return None
    if member.deleted_count + len(fresh) > MAX_DELETED:
        raise NexoError("too_many_deleted")
    ((rev,),) = yield query("SELECT deleted_rev FROM members WHERE conv=? AND user_id=?", conv, user_id)
    for start in range(0, len(fresh), INSERT_ROWS):
        chunk = fresh[start : start + INSERT_ROWS]
        values: list[Any] = []
        for number, one in enumerate(chunk, start + 1):
            counts = int(one.sender_id != user_id and one.is_countable)
            values += [conv, user_id, one.seq, one.server_msg_id, counts, rev + number]
        yield do(insert_rows("message_deletions", _INSERTED, len(chunk)), *values)
    above = [one for one in fresh if one.seq > member.read_seq and one.sender_id != user_id]
    mentions, at_alls = yield from _mentions_in(sql, member, [one.seq for one in above])
    counted = sum(one.is_countable for one in above)
    delete_above(member, counted=counted, mentions=mentions, at_alls=at_alls)
    member.deleted_count += len(fresh)
    yield from _save(member, rev + len(fresh), None)
    ids = tuple(one.server_msg_id for one in fresh)
    return Deletion(user_id, conversation.conversation_id, ids, None, rev + len(fresh), unread(member, conversation))


def _mentions_in(sql: Sql, member: Member, seqs: list[int]) -> Script[tuple[int, int]]:
    """Returns how many of these messages, all of other senders, mention the member by name, and how many all."""
    if not seqs:
        return 0, 0
    chosen = sql.one_of("seq", seqs, "bigint")
    found = yield query(
        f"SELECT user_id FROM mentions WHERE conv=? AND user_id IN (?,?) AND sender_id<>? AND {chosen.sql}",
        member.conv,
        member.user_id,
        AT_ALL,
        member.user_id,
        *chosen.params,
    )
    at_alls = sum(row[0] == AT_ALL for row in found)
    return len(found) - at_alls, at_alls


def clear(sql: Sql, user_id: str, conversation_id: str, memo: Memo) -> Script[Deletion]:
    """Hides everything that the member may see now. Never moves a cursor. `up_to_seq` is the last hidden seq."""
    view = yield from open_view(user_id, conversation_id)
    if view.conversation is None or not view.ranges:
        raise NexoError("conversation_not_found")
    conv = view.conversation.id
    member, conversation = yield from _lock(sql, conv, user_id)
    assert member is not None
    head = visible_head(member, conversation)
    ((rev,),) = yield query("SELECT deleted_rev FROM members WHERE conv=? AND user_id=?", conv, user_id)
    if head <= member.cleared_seq:
        nothing = Deletion(user_id, conversation_id, (), None, rev, unread(member, conversation))
        return memo.get(conv, nothing)
    clear_up_to_head(member, conversation, head)
    yield do("DELETE FROM message_deletions WHERE conv=? AND user_id=?", conv, user_id)
    yield from _save(member, rev + 1, rev + 1)
    memo[conv] = Deletion(user_id, conversation_id, (), head, rev + 1, unread(member, conversation))
    return memo[conv]


def _lock(sql: Sql, conv: int, user_id: str) -> Script[tuple[Member | None, Conversation]]:
    """Returns the locked member, and the conversation as it is then: own sends of the member wait for this lock."""
    member = yield from lock_member(sql, conv, user_id)
    ((*row,),) = yield query(f"SELECT {_CONVERSATION} FROM conversations WHERE id=?", conv)
    return member, Conversation(*row)


def _save(member: Member, rev: int, cleared_rev: int | None) -> Script[None]:
    yield do(
        "UPDATE members SET deleted_above=?,deleted_count=?,mention_unread=?,at_all_base=?,deleted_rev=?,cleared_seq=?,"
        "cleared_rev=COALESCE(?,cleared_rev) WHERE conv=? AND user_id=?",
        member.deleted_above,
        member.deleted_count,
        member.mention_unread,
        member.at_all_base,
        rev,
        member.cleared_seq,
        cleared_rev,
        member.conv,
        member.user_id,
    )


def since(user_id: str, conversation_id: str, after: int, limit: int) -> Script[DeletedSince]:
    """Returns a page of the member's deletions after a revision, for devices that were away."""
    view = yield from open_view(user_id, conversation_id)
    if view.conversation is None:
        return DeletedSince(conversation_id, [], None, 0, False)
    conv = view.conversation.id
    ((newest, cleared_seq, cleared_rev),) = yield query(
        "SELECT deleted_rev,cleared_seq,cleared_rev FROM members WHERE conv=? AND user_id=?", conv, user_id
    )
    found = yield query(
        "SELECT server_msg_id,rev FROM message_deletions WHERE conv=? AND user_id=? AND rev>? ORDER BY rev LIMIT ?",
        conv,
        user_id,
        after,
        limit + 1,
    )
    has_more = len(found) > limit
    page = found[:limit]
    up_to_seq = cleared_seq if cleared_rev > after else None
    return DeletedSince(
        conversation_id, [row[0] for row in page], up_to_seq, page[-1][1] if has_more else newest, has_more
    )


# -- what readers ask ----------------------------------------------------------------------------------------


def counted_above(member: Member, read_seq: int, countable_no: int, own_above: int) -> Script[int]:
    """Returns the countable messages of others above `read_seq` that the member has deleted or cleared; `countable_no`
    and `own_above` are those of `read_seq`."""
    counted = 0
    if member.deleted_count:
        ((counted,),) = yield query(
            "SELECT COUNT(*) FROM message_deletions WHERE conv=? AND user_id=? AND seq>? AND counts=1",
            member.conv,
            member.user_id,
            max(read_seq, member.cleared_seq),
        )
    if member.cleared_seq > read_seq:
        own = 0
        if own_above:
            ((own,),) = yield query(
                "SELECT COUNT(*) FROM messages WHERE conv=? AND seq>? AND seq<=? AND sender_id=? "
                f"AND {countable_sql()}",
                member.conv,
                read_seq,
                member.cleared_seq,
                member.user_id,
            )
        ((number,),) = yield query(
            "SELECT countable_no FROM messages WHERE conv=? AND seq=?", member.conv, member.cleared_seq
        )
        counted += number - countable_no - own
    return int(counted)
