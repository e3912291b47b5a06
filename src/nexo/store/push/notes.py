"""Notes: for each device and conversation, what is shown there and whether that has to be looked at again.

A note holds no text. It is made when there may be something to show, and what is sent is decided right before each
attempt (`composing.py`). So a note can wait for days, and be looked at again for no reason, without harm. Only the
instance that pushes writes notes; registering and ending a device delete them.
"""

from __future__ import annotations

from collections.abc import Sequence

from nexo.core.model import MsgType
from nexo.core.push import Marking, Note, NoteResult, NoteState
from nexo.core.unread import countable_sql, unread_mentions_sql, unread_sql
from nexo.core.visibility import visible_head_sql
from nexo.store.engine import NOW, Script, do, many
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

MEMBERS_AT_ONCE = 200
RESULT_CHARS = 64
_IDLE, _DUE, _IN_FLIGHT = (int(state) for state in NoteState)
_NOTE = "push_id,conv,want_seq,sent_seq,shown_seq,tries,made_at"
# Members that may have to be notified. Which of their messages count, and mentions one by one, is for `composing.py`.
_AWAY = (
    "m.conv=? AND m.user_id>? AND m.from_seq<=? AND m.read_seq<? AND m.delivered_seq<? AND m.to_seq IS NULL "
    f"AND {unread_sql('m', 'c')}>0 AND {visible_head_sql('m', 'c')}>0 "
    f"AND ((m.recv_msg_opt=0 AND m.silent_until<=?) OR (m.recv_msg_opt<>1 AND {unread_mentions_sql('m', 'c')}>0))"
)
# in this order: MySQL takes columns that stand before as already changed
_LOOK_AGAIN = f"due_at=CASE WHEN state={_IDLE} THEN ? ELSE due_at END,again=1,"
_LOOK_AGAIN += f"state=CASE WHEN state={_IDLE} THEN {_DUE} ELSE state END"


def away(wanted: Sequence[Marking]) -> Script[set[int]]:
    """Returns those of these conversations in which a member with a device has not received everything."""
    condition = " OR ".join(["(m.conv=? AND m.delivered_seq<? AND m.read_seq<? AND m.to_seq IS NULL)"] * len(wanted))
    params = [value for one in wanted for value in (one.conv, one.high, one.high)]
    found = yield query(
        f"SELECT DISTINCT m.conv FROM members m JOIN push_targets p ON p.user_id=m.user_id WHERE {condition}", *params
    )
    return {row[0] for row in found}


def recalled_in(wanted: Sequence[Marking]) -> Script[set[int]]:
    """Returns those of these conversations in which a message was recalled."""
    condition = " OR ".join(["(conv=? AND seq>=? AND seq<=?)"] * len(wanted))
    params = [value for one in wanted for value in one[:3]]
    found = yield query(
        f"SELECT DISTINCT conv FROM messages WHERE ({condition}) AND msg_type={int(MsgType.RECALLED)}", *params
    )
    return {row[0] for row in found}


def mark(sql: Sql, wanted: Sequence[Marking]) -> Script[list[Marking]]:
    """Makes notes for members that have not received these messages: for some in one transaction. Returns what is
    left."""
    now_ms = yield NOW
    room = MEMBERS_AT_ONCE
    left = list(wanted)
    while left and room > 0:
        one = left.pop(0)
        ((seq,),) = yield query(
            f"SELECT MAX(seq) FROM messages WHERE conv=? AND seq>=? AND seq<=? AND {countable_sql()}", *one[:3]
        )
        if seq is None:
            continue
        found = yield query(
            "SELECT DISTINCT m.user_id FROM members m JOIN conversations c ON c.id=m.conv "
            f"JOIN push_targets p ON p.user_id=m.user_id WHERE {_AWAY} ORDER BY m.user_id LIMIT {MEMBERS_AT_ONCE}",
            one.conv,
            one.after_user,
            seq,
            seq,
            seq,
            now_ms,
        )
        if found:
            yield from _note(sql, one.conv, seq, [row[0] for row in found], now_ms)
        if len(found) == MEMBERS_AT_ONCE:
            left.insert(0, one._replace(after_user=found[-1][0]))
        room -= max(1, len(found))
    return left


def _note(sql: Sql, conv: int, seq: int, user_ids: list[str], now_ms: int) -> Script[None]:
    chosen = sql.one_of("user_id", user_ids)
    targets = yield query(f"SELECT push_id,kind FROM push_targets WHERE {chosen.sql} ORDER BY push_id", *chosen.params)
    columns = ("push_id", "conv", "kind", "state", "due_at", "made_at", "want_seq")
    insert = sql.insert_or_raise("push_notes", columns, ("push_id", "conv"))
    yield many(insert, [(push_id, conv, kind, _DUE, now_ms, now_ms, seq) for push_id, kind in targets])
    marked = sql.one_of("push_id", [row[0] for row in targets], "bigint")
    yield do(
        f"UPDATE push_notes SET due_at=?,made_at=?,tries=0,state={_DUE} "
        f"WHERE conv=? AND {marked.sql} AND state={_IDLE} AND want_seq>sent_seq",
        now_ms,
        now_ms,
        conv,
        *marked.params,
    )


def look_again(sql: Sql, convs: Sequence[int], reads: Sequence[tuple[int, str]]) -> Script[int]:
    """Marks notes that show something to be examined again: all notes of some conversations, and the notes of members
    that have read."""
    now_ms = yield NOW
    keys: set[tuple[int, int]] = set()
    if convs:
        chosen = sql.one_of("conv", convs, "bigint")
        found = yield query(
            f"SELECT push_id,conv FROM push_notes WHERE {chosen.sql} AND (shown_seq>0 OR state={_IN_FLIGHT})",
            *chosen.params,
        )
        keys.update((row[0], row[1]) for row in found)
    if reads:
        wanted = set(reads)
        chosen = sql.one_of("p.user_id", sorted({user_id for _, user_id in reads}))
        found = yield query(
            "SELECT n.push_id,n.conv,p.user_id FROM push_targets p JOIN push_notes n ON n.push_id=p.push_id "
            f"WHERE {chosen.sql} AND (n.shown_seq>0 OR n.state={_IN_FLIGHT})",
            *chosen.params,
        )
        keys.update((row[0], row[1]) for row in found if (row[1], row[2]) in wanted)
    if keys:
        statement = f"UPDATE push_notes SET {_LOOK_AGAIN} WHERE push_id=? AND conv=?"
        yield many(statement, [(now_ms, *key) for key in sorted(keys)])
    return len(keys)


# -- sending -------------------------------------------------------------------------------------------------


def next_due(kind: str) -> Script[tuple[int | None, int]]:
    """Returns in how many milliseconds the first note of a kind is due; None: there is none. And how many wait."""
    now_ms = yield NOW
    ((due_at, count),) = yield query(f"SELECT MIN(due_at),COUNT(*) FROM push_notes WHERE kind=? AND state={_DUE}", kind)
    return None if due_at is None else max(0, due_at - now_ms), int(count)


def claim(kind: str, limit: int) -> Script[list[Note]]:
    """Takes notes that are due, the oldest first. They stay taken until `finish`, or until `release_all`."""
    now_ms = yield NOW
    found = yield query(
        f"SELECT {_NOTE} FROM push_notes WHERE kind=? AND state={_DUE} AND due_at<=? ORDER BY due_at LIMIT ?",
        kind,
        now_ms,
        limit,
    )
    if found:
        yield many(
            f"UPDATE push_notes SET state={_IN_FLIGHT},again=0 WHERE push_id=? AND conv=?",
            [(row[0], row[1]) for row in found],
        )
    return [Note(*row) for row in found]


def release_all(kind: str) -> Script[None]:
    """Makes due what an instance had taken when it ended."""
    yield do(f"UPDATE push_notes SET state={_DUE} WHERE kind=? AND state={_IN_FLIGHT}", kind)


def finish(sql: Sql, results: Sequence[NoteResult]) -> Script[None]:
    """Stores what became of notes. One that was changed meanwhile is due at once."""
    now_ms = yield NOW
    ordered = sorted(results, key=lambda one: one.note[:2])
    yield many(
        f"UPDATE push_notes SET sent_seq=?,shown_seq=?,tries=?,sent_at={sql.greatest}(sent_at,?),due_at=?,"
        f"state=CASE WHEN again=1 OR ?=1 OR want_seq>? THEN {_DUE} ELSE {_IDLE} END,again=0 "
        "WHERE push_id=? AND conv=?",
        [
            (
                one.sent_seq,
                one.shown_seq,
                one.tries,
                now_ms if one.is_sent else 0,
                one.due_at or now_ms,
                int(one.due_at > 0),
                max(one.sent_seq, one.note.want_seq),
                one.note.push_id,
                one.note.conv,
            )
            for one in ordered
        ],
    )
    answered = [(one.result[:RESULT_CHARS], one.note.push_id, one.note.conv) for one in ordered if one.result]
    if answered:
        yield many("UPDATE push_notes SET result=? WHERE push_id=? AND conv=?", answered)
