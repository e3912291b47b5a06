"""Completes messages for one reader: quotes, the version of an edited message, reactions, the content of events.

Every read path ends here, behind the visibility gate. A reader that may see the event of an edit sees the edited text;
a member that left before the edit sees the version before it, also in quotes. Messages without any of this cost no
statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from nexo.core import message_events
from nexo.core.content import quote_text
from nexo.core.message_fields import decode_names
from nexo.core.model import QUIET_TYPES, Message, MessageStatus, MsgType, Quote, Reaction
from nexo.core.moderation import VersionCause
from nexo.core.visibility import Ranges, is_visible
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

EVERYTHING: Ranges = ((1, 1 << 62),)
CHUNK = 500
_EDITED, _REACTIONS = int(MsgType.EDITED), int(MsgType.REACTIONS)
_NORMAL, _EXPIRED = int(MessageStatus.NORMAL), int(MessageStatus.EXPIRED)

_encode = msgspec.json.Encoder().encode


class _Count(msgspec.Struct, frozen=True):
    emoji: str
    count: int


_decode_counts = msgspec.json.Decoder(list[_Count]).decode


class _Version(NamedTuple):
    """A version that the event `seq` replaced."""

    seq: int
    content: str
    mentions: tuple[str, ...]
    replaced_at: int


class _Target(NamedTuple):
    """A message as the reader may see it; they may not see it at all, which `is_shown` answers."""

    conversation_id: str
    seq: int
    sender_id: str
    msg_type: int
    content: str
    mentions: tuple[str, ...]
    status: int
    edited_at: int | None
    edit_seq: int | None

    def is_shown(self, conversation_id: str, ranges: Ranges) -> bool:
        return self.status == _NORMAL and self.conversation_id == conversation_id and is_visible(ranges, self.seq)


def needs(message: Message) -> bool:
    """Returns whether there is anything to complete."""
    return (
        message.reply_to is not None
        or message.edited_at is not None
        or message.reactions is not None
        or message.msg_type in QUIET_TYPES
    )


def complete(sql: Sql, reader_id: str, messages: Iterable[Message], ranges: Mapping[str, Ranges]) -> Script[None]:
    """Completes messages that the reader may see. `ranges` has those of each conversation; an empty `reader_id` is a
    reader of everything."""
    chosen = [message for message in messages if needs(message)]
    if not chosen:
        return
    about = {
        id(event): message_events.target_of(event)[0] for event in chosen if event.msg_type in (_EDITED, _REACTIONS)
    }
    wanted = set(about.values())
    wanted.update(message.reply_to for message in chosen if message.reply_to is not None)
    wanted.update(message.server_msg_id for message in chosen if message.edited_at is not None)
    targets = (yield from _targets(sql, reader_id, sorted(wanted), ranges)) if wanted else {}
    for message in chosen:
        name = message.conversation_id
        own = targets.get(message.server_msg_id) if message.edited_at is not None else None
        if own is not None and own.status == _NORMAL:
            message.content, message.mentions, message.edited_at = own.content, own.mentions, own.edited_at
        if message.reply_to is not None:
            target = targets.get(message.reply_to)
            if target is not None and target.is_shown(name, ranges[name]):
                text = quote_text(target.msg_type, target.content)
                message.quote = Quote(message.reply_to, target.sender_id, target.msg_type, text)
        if message.msg_type in QUIET_TYPES:
            message.client_msg_id = None
            if message.msg_type == _EDITED:
                target = targets.get(about[id(message)])
                if target is not None and target.is_shown(name, ranges[name]):
                    message_events.add_edit(message, target.content, target.mentions)
                else:
                    message.mentions = ()
    events = [event for event in chosen if event.msg_type == _REACTIONS]
    changed = {
        id(event): targets[about[id(event)]]
        for event in events
        if about[id(event)] in targets
        and targets[about[id(event)]].is_shown(event.conversation_id, ranges[event.conversation_id])
    }
    with_reactions = [message for message in chosen if message.reactions is not None]
    names = {message.server_msg_id: message.conversation_id for message in with_reactions}
    names |= {about[key]: target.conversation_id for key, target in changed.items()}
    counts = (yield from _counts(sql, reader_id, names, ranges)) if names else {}
    yield from _show_changes(sql, [event for event in events if id(event) in changed], about, counts)
    yield from _add_reactions(sql, reader_id, with_reactions, counts)


# -- edits ---------------------------------------------------------------------------------------------------


def _targets(sql: Sql, reader_id: str, ids: list[int], ranges: Mapping[str, Ranges]) -> Script[dict[int, _Target]]:
    """Returns messages by id, in the version that the reader may see; as expired where their time is over, or the
    reader has deleted them."""
    gone = f"d.seq IS NOT NULL OR (m.status=0 AND m.expires_at<={sql.clock_ms})"
    targets: dict[int, _Target] = {}
    for start in range(0, len(ids), CHUNK):
        chosen = sql.one_of("m.server_msg_id", ids[start : start + CHUNK], "bigint")
        for server_msg_id, *row in (
            yield query(
                "SELECT m.server_msg_id,c.conversation_id,m.seq,m.sender_id,m.msg_type,m.content,m.mentions,"
                f"CASE WHEN {gone} THEN {_EXPIRED} ELSE m.status END,m.edited_at,m.edit_seq FROM messages m "
                "JOIN conversations c ON c.id=m.conv "
                "LEFT JOIN message_deletions d ON d.conv=m.conv AND d.user_id=? AND d.seq=m.seq "
                f"WHERE {chosen.sql}",
                reader_id,
                *chosen.params,
            )
        ):
            row[5] = decode_names(row[5]) if row[5] else ()
            targets[server_msg_id] = _Target(*row)
    earlier = sorted(
        server_msg_id
        for server_msg_id, target in targets.items()
        if target.edit_seq is not None
        and target.status == _NORMAL
        and not is_visible(ranges.get(target.conversation_id, ()), target.edit_seq)
    )
    if earlier:
        for server_msg_id, versions in (yield from _versions(sql, earlier)).items():
            target = targets[server_msg_id]
            targets[server_msg_id] = _before(target, versions, ranges.get(target.conversation_id, ()))
    return targets


def _versions(sql: Sql, ids: list[int]) -> Script[dict[int, list[_Version]]]:
    chosen = sql.one_of("server_msg_id", ids, "bigint")
    found: dict[int, list[_Version]] = {}
    for server_msg_id, seq, content, mentions, replaced_at in (
        yield query(
            "SELECT server_msg_id,seq,content,mentions,replaced_at FROM message_versions "
            f"WHERE {chosen.sql} AND cause=? ORDER BY server_msg_id,version",
            *chosen.params,
            int(VersionCause.EDIT),
        )
    ):
        names = decode_names(mentions) if mentions else ()
        found.setdefault(server_msg_id, []).append(_Version(seq, content, names, replaced_at))
    return found


def _before(target: _Target, versions: list[_Version], ranges: Ranges) -> _Target:
    """Returns the message as it was after the last edit that the reader may see."""
    seen = 0  # edits up to the last visible one
    for number, version in enumerate(versions, 1):
        if is_visible(ranges, version.seq):
            seen = number
    if seen == len(versions):
        return target
    shown = versions[seen]
    edited_at = versions[seen - 1].replaced_at if seen else None
    return target._replace(content=shown.content, mentions=shown.mentions, edited_at=edited_at)


# -- reactions -----------------------------------------------------------------------------------------------


def _show_changes(
    sql: Sql, events: list[Message], about: Mapping[int, int], counts: Mapping[int, list[_Count]]
) -> Script[None]:
    """Adds to events 111 what they announced, with the counts as the reader sees them now: a client that applies events
    again ends with the present ones, also where it may not see a later event."""
    keys = {(about[id(event)], event.seq): event for event in events}
    pairs = list(keys)
    for start in range(0, len(pairs), CHUNK):
        chosen = sql.by_pairs(
            "t.server_msg_id,t.seq,t.added,t.removed",
            "reaction_changes",
            ("server_msg_id", "seq"),
            "bigint",
            pairs[start : start + CHUNK],
            "",
        )
        for server_msg_id, seq, added, removed in (yield query(chosen.sql, *chosen.params)):
            now = _encode(counts.get(server_msg_id, ())).decode()
            message_events.add_reactions(keys[server_msg_id, seq], now, added, removed)


def _counts(
    sql: Sql, reader_id: str, names: Mapping[int, str], ranges: Mapping[str, Ranges]
) -> Script[dict[int, list[_Count]]]:
    """Returns the present counts of messages, given with their conversations. A member that has left gets the counts of
    the last event that it may see."""
    chosen = sql.one_of("server_msg_id", sorted(names), "bigint")
    counts: dict[int, list[_Count]] = {}
    for server_msg_id, emoji, counted in (
        yield query(
            f"SELECT server_msg_id,emoji,counted FROM reaction_counts WHERE {chosen.sql} "
            "ORDER BY server_msg_id,since,emoji",
            *chosen.params,
        )
    ):
        counts.setdefault(server_msg_id, []).append(_Count(emoji, counted))
    if reader_id:
        left = yield from _left(sql, reader_id, sorted(set(names.values())))
        if left:
            gone = {server_msg_id: name for server_msg_id, name in names.items() if name in left}
            counts |= yield from _counts_before(sql, gone, ranges)
    return counts


def _add_reactions(
    sql: Sql, reader_id: str, messages: list[Message], counts: Mapping[int, list[_Count]]
) -> Script[None]:
    own: set[tuple[int, str]] = set()
    if reader_id and messages:
        chosen = sql.one_of("server_msg_id", sorted({message.server_msg_id for message in messages}), "bigint")
        found = yield query(
            f"SELECT server_msg_id,emoji FROM reactions WHERE {chosen.sql} AND user_id=?", *chosen.params, reader_id
        )
        own = {(row[0], row[1]) for row in found}
    for message in messages:
        message_id = message.server_msg_id
        message.reactions = tuple(
            Reaction(one.emoji, one.count, (message_id, one.emoji) in own) for one in counts.get(message_id, ())
        )


def _left(sql: Sql, reader_id: str, conversation_ids: list[str]) -> Script[set[str]]:
    """Returns the conversations among these in which the reader has no open span."""
    chosen = sql.one_of("c.conversation_id", conversation_ids)
    found = yield query(
        "SELECT c.conversation_id FROM members m JOIN conversations c ON c.id=m.conv "
        f"WHERE m.user_id=? AND m.to_seq IS NOT NULL AND {chosen.sql}",
        reader_id,
        *chosen.params,
    )
    return {row[0] for row in found}


def _counts_before(sql: Sql, names: Mapping[int, str], ranges: Mapping[str, Ranges]) -> Script[dict[int, list[_Count]]]:
    """Returns for each message what the last event announced that the reader may see."""
    counts: dict[int, list[_Count]] = {server_msg_id: [] for server_msg_id in names}
    chosen = sql.one_of("server_msg_id", sorted(names), "bigint")
    found: list[Any] = yield query(
        f"SELECT server_msg_id,seq,reactions FROM reaction_changes WHERE {chosen.sql} ORDER BY server_msg_id,seq",
        *chosen.params,
    )
    for server_msg_id, seq, announced in found:
        if is_visible(ranges.get(names[server_msg_id], ()), seq):
            counts[server_msg_id] = _decode_counts(announced)
    return counts
