"""Writes reactions: those that wait together are one transaction, with an answer for each.

A transaction locks the members and the messages, not the conversations, and marks the changes for their events
(`reactions.py`). The number of statements depends on the number of messages, not on the number of users who react.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nexo.core import policy
from nexo.core.model import Conversation, Member, Message, MessageStatus, Reaction
from nexo.core.visibility import is_visible, shown_ranges
from nexo.errors import NexoError
from nexo.ports import ReactResult
from nexo.store import rows
from nexo.store.conversations import lock_members, read_ranges
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.expiry import hide_expired
from nexo.store.sql import Sql, insert_rows

EMOJIS_MAX = 20  # different ones of a message
OWN_MAX = 3  # of a user for a message

Key = tuple[str, str]  # user, emoji


class ReactionRequest(NamedTuple):
    user_id: str
    server_msg_id: int
    emoji: str
    on: bool


class _Count(NamedTuple):
    since: int
    counted: int


class _Place(NamedTuple):
    message: Message
    conversation: Conversation


class _Reactions:
    """The reactions of one locked message: as they are stored for the users who ask, and as the requests change
    them."""

    def __init__(self, message: Message, stored: set[Key], marks: dict[Key, bool], counts: dict[str, _Count]) -> None:
        self.message = message
        self.stored, self.stored_marks, self.stored_counts = stored, marks, counts
        self.given, self.marks, self.counts = set(stored), dict(marks), dict(counts)
        self.changes = 0

    def change(self, request: ReactionRequest, now_ms: int) -> ReactResult:
        """Applies one request. Repeated: nothing changes."""
        user_id, emoji, on = request.user_id, request.emoji, request.on
        key = (user_id, emoji)
        is_changed = (key in self.given) != on
        if is_changed:
            if on:
                self._check_room(user_id, emoji)
            self.given ^= {key}
            since, counted = self.counts.get(emoji, _Count(now_ms, 0))
            counted += 1 if on else -1
            if counted:
                self.counts[emoji] = _Count(since, counted)
            else:
                del self.counts[emoji]
            if key in self.marks:
                del self.marks[key]  # the opposite was not announced: together they are no change
            else:
                self.marks[key] = on
            self.changes += 1
        shown = sorted(self.counts, key=lambda one: (self.counts[one].since, one.encode()))
        listed = tuple(Reaction(one, self.counts[one].counted, (user_id, one) in self.given) for one in shown)
        return ReactResult(request.server_msg_id, self.message.conversation_id, listed, is_changed)

    def _check_room(self, user_id: str, emoji: str) -> None:
        if sum(1 for owner, _ in self.given if owner == user_id) >= OWN_MAX:
            raise NexoError("too_many_reactions", f"A user has at most {OWN_MAX} reactions to a message")
        if emoji not in self.counts and len(self.counts) >= EMOJIS_MAX:
            raise NexoError("too_many_reactions", f"A message has at most {EMOJIS_MAX} different reactions")


def react(sql: Sql, requests: Sequence[ReactionRequest], retention_ms: int) -> Script[list[ReactResult | NexoError]]:
    """Adds and removes reactions in the order of the requests. Returns the result or the refusal of each."""
    opened = yield from _find(sql, sorted({request.server_msg_id for request in requests}))
    users: dict[int, set[str]] = {}  # by conversation
    for request in requests:
        if request.server_msg_id in opened:
            users.setdefault(opened[request.server_msg_id].conversation.id, set()).add(request.user_id)
    members: dict[tuple[int, str], Member] = {}
    for conv in sorted(users):  # members before messages, as in all transactions; leaving and recalling wait
        for user_id, member in (yield from lock_members(sql, conv, sorted(users[conv]))).items():
            members[conv, user_id] = member
    yield from _lock(sql, opened, retention_ms)
    answers: list[ReactResult | NexoError] = []
    allowed: list[tuple[int, ReactionRequest]] = []
    for request in requests:
        answers.append(NexoError("message_not_found"))
        place = opened.get(request.server_msg_id)
        if place is None:
            continue
        try:
            yield from _check(place, members.get((place.conversation.id, request.user_id)))
        except NexoError as error:
            answers[-1] = error
        else:
            allowed.append((len(answers) - 1, request))
    if not allowed:
        return answers
    found = yield from _load(sql, opened, [request for _, request in allowed])
    now_ms = yield NOW
    for number, request in allowed:
        try:
            answers[number] = found[request.server_msg_id].change(request, now_ms)
        except NexoError as error:
            answers[number] = error
    for reactions in found.values():
        if reactions.changes:
            yield from _write(reactions, now_ms)
    return answers


def _find(sql: Sql, server_msg_ids: list[int]) -> Script[dict[int, _Place]]:
    """Returns the messages that exist, in the order of their ids. The conversation is read with its message, so its
    head covers the message."""
    chosen = sql.one_of("m.server_msg_id", server_msg_ids, "bigint")
    width = len(rows.CONVERSATION)
    found = yield query(
        f"SELECT {rows.columns(rows.CONVERSATION, 'c')},{rows.columns(rows.MESSAGE, 'm')} FROM messages m "
        f"JOIN conversations c ON c.id=m.conv WHERE {chosen.sql} ORDER BY m.server_msg_id",
        *chosen.params,
    )
    opened: dict[int, _Place] = {}
    for row in found:
        conversation = Conversation(*tuple(row)[:width])
        message = rows.message(tuple(row)[width:], conversation.conversation_id)
        opened[message.server_msg_id] = _Place(message, conversation)
    return opened


def _lock(sql: Sql, opened: dict[int, _Place], retention_ms: int) -> Script[None]:
    chosen = sql.one_of("server_msg_id", opened, "bigint")
    found = yield query(
        f"SELECT {rows.columns(rows.MESSAGE)} FROM messages WHERE {chosen.sql} ORDER BY server_msg_id{sql.for_update}",
        *chosen.params,
    )
    for row in found:
        message = rows.message(tuple(row), "")
        conversation = opened[message.server_msg_id].conversation
        message.conversation_id = conversation.conversation_id
        opened[message.server_msg_id] = _Place(message, conversation)
    yield from hide_expired([place.message for place in opened.values()], retention_ms)


def _check(place: _Place, member: Member | None) -> Script[None]:
    """Raises unless this member may react to the message."""
    message, conversation = place
    if member is None:
        raise NexoError("message_not_found")
    ranges = yield from read_ranges(member, conversation)
    if not is_visible(shown_ranges(ranges, member.cleared_seq), message.seq):
        raise NexoError("message_not_found")
    if member.deleted_count:
        key = (member.conv, member.user_id, message.seq)
        if (yield query("SELECT 1 FROM message_deletions WHERE conv=? AND user_id=? AND seq=?", *key)):
            raise NexoError("message_not_found")
    policy.check_may_touch(conversation, member)
    if message.is_event or message.status != MessageStatus.NORMAL:
        raise NexoError("message_not_found", "There is nothing to react to")


def _load(sql: Sql, opened: dict[int, _Place], requests: list[ReactionRequest]) -> Script[dict[int, _Reactions]]:
    users: dict[int, set[str]] = {}
    for request in requests:
        users.setdefault(request.server_msg_id, set()).add(request.user_id)
    chosen = sql.one_of("server_msg_id", sorted(users), "bigint")
    counts: dict[int, dict[str, _Count]] = {server_msg_id: {} for server_msg_id in users}
    for server_msg_id, emoji, since, counted in (
        yield query(f"SELECT server_msg_id,emoji,since,counted FROM reaction_counts WHERE {chosen.sql}", *chosen.params)
    ):
        counts[server_msg_id][emoji] = _Count(since, counted)
    loaded: dict[int, _Reactions] = {}
    for server_msg_id, asking in sorted(users.items()):
        chosen = sql.one_of("user_id", sorted(asking))
        where = f"WHERE server_msg_id=? AND {chosen.sql}"
        given = yield query(f"SELECT user_id,emoji FROM reactions {where}", server_msg_id, *chosen.params)
        marked = yield query(f"SELECT user_id,emoji,is_on FROM reaction_marks {where}", server_msg_id, *chosen.params)
        loaded[server_msg_id] = _Reactions(
            opened[server_msg_id].message,
            {(row[0], row[1]) for row in given},
            {(row[0], row[1]): bool(row[2]) for row in marked},
            counts[server_msg_id],
        )
    return loaded


def _write(reactions: _Reactions, now_ms: int) -> Script[None]:
    server_msg_id = reactions.message.server_msg_id
    # always written: two nodes of a cluster find out by it that they changed the same message
    yield do(
        "UPDATE messages SET reactions=COALESCE(reactions,0)+? WHERE server_msg_id=?", reactions.changes, server_msg_id
    )
    yield from _delete("reactions", server_msg_id, reactions.stored - reactions.given)
    added = [(server_msg_id, *key, now_ms) for key in sorted(reactions.given - reactions.stored)]
    yield from _insert("reactions", ("server_msg_id", "user_id", "emoji", "at"), added)
    before, after = reactions.stored_counts, reactions.counts
    for emoji in sorted(before.keys() - after.keys()):
        yield do("DELETE FROM reaction_counts WHERE server_msg_id=? AND emoji=?", server_msg_id, emoji)
    for emoji in sorted(one for one in before.keys() & after.keys() if before[one] != after[one]):
        since, counted = after[emoji]
        yield do(
            "UPDATE reaction_counts SET counted=?,since=? WHERE server_msg_id=? AND emoji=?",
            counted,
            since,
            server_msg_id,
            emoji,
        )
    new = [
        (server_msg_id, emoji, after[emoji].counted, after[emoji].since)
        for emoji in sorted(after.keys() - before.keys())
    ]
    yield from _insert("reaction_counts", ("server_msg_id", "emoji", "counted", "since"), new)
    changed = {key for key, on in reactions.stored_marks.items() if reactions.marks.get(key) is not on}
    yield from _delete("reaction_marks", server_msg_id, changed)
    marks = [
        (server_msg_id, *key, int(on), now_ms)
        for key, on in sorted(reactions.marks.items())
        if reactions.stored_marks.get(key) is not on
    ]
    yield from _insert("reaction_marks", ("server_msg_id", "user_id", "emoji", "is_on", "at"), marks)


def _delete(table: str, server_msg_id: int, keys: set[Key]) -> Script[None]:
    for user_id, emoji in sorted(keys):
        yield do(f"DELETE FROM {table} WHERE server_msg_id=? AND user_id=? AND emoji=?", server_msg_id, user_id, emoji)


def _insert(table: str, columns: tuple[str, ...], values: list[tuple[Any, ...]]) -> Script[None]:
    if values:
        yield do(insert_rows(table, columns, len(values)), *(value for row in values for value in row))
