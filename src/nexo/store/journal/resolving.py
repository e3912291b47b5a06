"""Makes entries of references, with the current data: a message that was recalled since is blank."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from nexo.core.calls import UserCall
from nexo.core.files import StoredFile
from nexo.core.journal import (
    CALL,
    CHANGED,
    CONTACT,
    EXPIRED,
    FILE,
    GROUP,
    READ,
    USER,
    ContactFact,
    Data,
    Fact,
    FileFact,
    JournalEntry,
    MemberOf,
    PinnedFact,
    ReactionsFact,
    ReadUpTo,
    RecalledFact,
    content_of,
    facts_of,
    may_become,
)
from nexo.core.model import Group, GroupMember, Message, MsgType, User
from nexo.ids import CANARY_IDS, group_of, time_of
from nexo.store import rows
from nexo.store.accounts import read_users
from nexo.store.calls import read_calls
from nexo.store.engine import Script
from nexo.store.engine import rows as query
from nexo.store.expiry import hide_expired
from nexo.store.files.reading import read_files
from nexo.store.group_reading import read_groups
from nexo.store.journal.reading import Part
from nexo.store.reader_view import EVERYTHING, complete
from nexo.store.sql import Sql

PARTS_AT_ONCE = 64  # with the largest messages some two megabytes
ENTRY_BYTES = 400  # of one without content
SCANNED_MS = 10_000  # ids over a longer time: some were made much earlier, and there are too many rows between them
_MESSAGE = f"t.conv,c.conversation_id,{rows.columns(rows.MESSAGE, 't')}"
_MEMBER = (
    "t.conv,t.user_id,t.role,u.nickname,t.group_nickname,t.joined_at,t.muted_until,t.group_avatar,t.inviter_id,t.extra"
)

Key = tuple[Any, Any]


class Resolved(NamedTuple):
    entries: list[JournalEntry]
    done: int  # of what was given


def are_unchanged(ids: tuple[int, int]) -> Script[bool]:
    """Returns whether no message between these ids was changed since it was stored, or expires: whatever changes one
    gives its row a status or reactions, or keeps its version. The range also has messages that are not asked for; there
    are few changed ones."""
    if time_of(ids[1]) - time_of(ids[0]) > SCANNED_MS:
        return False
    found = yield query(
        "SELECT 1 FROM messages WHERE server_msg_id>=? AND server_msg_id<=? AND (status<>0 OR reactions IS NOT NULL "
        "OR expires_at IS NOT NULL) "
        "UNION ALL SELECT 1 FROM message_versions WHERE server_msg_id>=? AND server_msg_id<=?",
        *ids,
        *ids,
    )
    return not found


def resolve(
    sql: Sql, given: Sequence[Part | JournalEntry], types: Collection[str] | None, max_bytes: int
) -> Script[Resolved]:
    """Returns the entries given and those of the parts, in order: as many as fit into `max_bytes`, at least of one
    part."""
    parts = [one for one in given if isinstance(one, Part)]
    if not parts:
        return Resolved(given, len(given))  # type: ignore[arg-type]
    entries: list[JournalEntry] = []
    size = 0
    for start in range(0, len(given), PARTS_AT_ONCE):
        chunk = given[start : start + PARTS_AT_ONCE]
        found = yield from _look_up(sql, [one for one in chunk if isinstance(one, Part)], types)
        for number, one in enumerate(chunk, start):
            if isinstance(one, Part):
                made = [entry for entry in found.entries_of(one) if types is None or entry.type in types]
            else:
                made = [one]
            size += sum(map(_size, made))
            if size > max_bytes and number:
                return Resolved(entries, number)
            entries += made
    return Resolved(entries, len(given))


def _size(entry: JournalEntry) -> int:
    data = entry.data
    if not isinstance(data, Message):
        return ENTRY_BYTES
    extra = data.extra
    return ENTRY_BYTES + _bytes(data.content) + (_bytes(extra) if extra else 0)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


class _Found(NamedTuple):
    """The rows that a chunk of parts refers to."""

    facts: dict[Key, list[Fact]]  # the wanted ones by conversation and seq
    messages: dict[Key, Message]
    edited: dict[int, Message]  # messages that were edited, by id
    groups: dict[int, Group]
    members: dict[Key, GroupMember]
    users: dict[str, User]
    reads: dict[Key, ReadUpTo]
    files: dict[str, StoredFile]
    calls: dict[int, UserCall]

    def entries_of(self, part: Part) -> list[JournalEntry]:
        if part.kind == CHANGED:
            return self._of_message(part)
        if part.kind == USER and (user := self.users.get(part.key[0])):
            return [JournalEntry(_event_id(part), f"user.{part.key[1]}", part.at, None, user.user_id, user)]
        if part.kind == EXPIRED and (message := self.messages.get(part.key)):
            place = (message.conversation_id, message.sender_id)
            return [JournalEntry(_event_id(part), "message.expired", part.at, *place, message)]
        if part.kind == READ and (read := self.reads.get(part.key)):
            place = (read.conversation_id, read.user_id)
            return [JournalEntry(_event_id(part), "conversation.read", part.at, *place, read)]
        if part.kind == GROUP and (group := self.groups.get(part.key[0])):
            what = f"group.{part.key[1]}"
            return [JournalEntry(_event_id(part), what, part.at, group.conversation_id, None, group)]
        if part.kind == CONTACT:
            change, _, contact_id = str(part.key[1]).partition(":")
            made = ContactFact(part.key[0], contact_id, part.at)
            return [JournalEntry(_event_id(part), f"contact.{change}", part.at, None, made.user_id, made)]
        if part.kind == CALL and (call := self.calls.get(part.key[0])):
            place = (call.conversation_id, call.caller_id)
            return [JournalEntry(_event_id(part), f"call.{part.key[1]}", part.at, *place, call)]
        if part.kind == FILE:
            file_id, (change, _, owner_id) = part.key[0], part.key[1].partition(":")
            file = self.files.get(file_id) if change == "stored" else None
            fact = FileFact(file_id, owner_id, file)
            return [JournalEntry(_event_id(part), f"file.{change}", part.at, None, owner_id, fact)]
        return []

    def _of_message(self, part: Part) -> list[JournalEntry]:
        made: list[JournalEntry] = []
        for number, fact in enumerate(self.facts.get(part.key, ())):
            message = self.messages[part.key]
            data = self._data(part.key[0], message, fact)
            if data is not None:
                user_id = fact.user_id or message.sender_id
                name = message.conversation_id
                made.append(JournalEntry(_event_id(part, number), fact.type, part.at, name, user_id, data))
        return made

    def _data(self, conv: int, message: Message, fact: Fact) -> Data | None:
        if fact.type == "message.recalled":
            content = content_of(message)
            return RecalledFact(int(content["server_msg_id"]), message.conversation_id, content["seq"], content["by"])
        if fact.type == "message.edited":
            return self.edited.get(int(content_of(message)["server_msg_id"]))
        if fact.type in ("message.reactions", "message.pinned"):
            content = content_of(message)
            place = (int(content["server_msg_id"]), message.conversation_id, content["seq"])
            if fact.type == "message.pinned":
                return PinnedFact(*place, content["on"], content["by"])
            return ReactionsFact(*place, content.get("reactions", []), content.get("added"), content.get("removed"))
        if fact.type.startswith("message."):
            return message
        if fact.type.startswith("group."):
            return self.groups.get(conv)
        member = self.members.get((conv, fact.user_id))
        return None if member is None else MemberOf(group_of(message.conversation_id) or "", member)


def _event_id(part: Part, number: int = 0) -> str:
    return f"{part.row}.{part.number}.{number}"


def _look_up(sql: Sql, parts: Iterable[Part], types: Collection[str] | None) -> Script[_Found]:
    keys: dict[int, list[Key]] = {CHANGED: [], USER: [], READ: [], GROUP: [], FILE: [], EXPIRED: [], CALL: []}
    for part in parts:
        if part.kind in keys and may_become(part.kind, types):
            keys[part.kind].append(part.key)
    messages: dict[Key, Message] = {}
    of_messages = sorted({*keys[CHANGED], *keys[EXPIRED]})
    if of_messages:
        messages = yield from _messages(sql, of_messages)
        yield from hide_expired(messages.values())
    changed = set(keys[CHANGED])
    facts = {key: _wanted(message, types) for key, message in messages.items() if key in changed}
    wanted = [messages[key] for key, made in facts.items() if made]
    edited = yield from _edited(sql, [message for message in wanted if message.msg_type == MsgType.EDITED])
    # consumers see everything
    shown = [*wanted, *edited.values()]
    yield from complete(sql, "", shown, {message.conversation_id: EVERYTHING for message in shown})
    convs = {key[0] for key, made in facts.items() for fact in made if fact.type.startswith("group.")}
    convs |= {key[0] for key in keys[GROUP]}
    people = {(key[0], fact.user_id) for key, made in facts.items() for fact in made if fact.type.startswith("member.")}
    users = sorted({key[0] for key in keys[USER]})
    return _Found(
        facts,
        messages,
        edited,
        (yield from read_groups(sql, convs)) if convs else {},
        (yield from _members(sql, sorted(people))) if people else {},
        (yield from read_users(sql, users)) if users else {},
        (yield from _reads(sql, sorted(set(keys[READ])))) if keys[READ] else {},
        (yield from read_files(sql, sorted({key[0] for key in keys[FILE]}))) if keys[FILE] else {},
        (yield from read_calls(sql, sorted({key[0] for key in keys[CALL]}))) if keys[CALL] else {},
    )


def _wanted(message: Message, types: Collection[str] | None) -> list[Fact]:
    if message.sender_id in CANARY_IDS:
        return []
    return [fact for fact in facts_of(message) if types is None or fact.type in types]


def _messages(sql: Sql, keys: list[Key]) -> Script[dict[Key, Message]]:
    rest = "JOIN conversations c ON c.id=t.conv"
    chosen = sql.by_pairs(f"{_MESSAGE}", "messages", ("conv", "seq"), "bigint", keys, rest)
    found: dict[Key, Message] = {}
    for conv, name, *row in (yield query(chosen.sql, *chosen.params)):
        message = rows.message(row, name)
        found[conv, message.seq] = message
    return found


def _edited(sql: Sql, events: list[Message]) -> Script[dict[int, Message]]:
    """Returns the messages that these edits changed, as they are now."""
    if not events:
        return {}
    chosen = sql.one_of(
        "t.server_msg_id", sorted({int(content_of(event)["server_msg_id"]) for event in events}), "bigint"
    )
    found = yield query(
        f"SELECT {_MESSAGE} FROM messages t JOIN conversations c ON c.id=t.conv WHERE {chosen.sql}", *chosen.params
    )
    return {row[2]: rows.message(tuple(row)[2:], row[1]) for row in found}


def _members(sql: Sql, keys: list[Key]) -> Script[dict[Key, GroupMember]]:
    """Returns members as they are now, also of groups that they have left."""
    rest = "JOIN users u ON u.user_id=t.user_id"
    found: dict[Key, GroupMember] = {}
    for start in range(0, len(keys), 500):
        chosen = sql.by_pairs(_MEMBER, "members", ("conv", "user_id"), "text", keys[start : start + 500], rest)
        for conv, *row in (yield query(chosen.sql, *chosen.params)):
            found[conv, row[0]] = GroupMember(*row)
    return found


def _reads(sql: Sql, keys: list[Key]) -> Script[dict[Key, ReadUpTo]]:
    rest = "JOIN conversations c ON c.id=t.conv"
    columns = "t.conv,c.conversation_id,t.user_id,t.read_seq"
    chosen = sql.by_pairs(columns, "members", ("conv", "user_id"), "text", keys, rest)
    return {
        (conv, user_id): ReadUpTo(name, user_id, read_seq)
        for conv, name, user_id, read_seq in (yield query(chosen.sql, *chosen.params))
    }
