"""The first pass of the import: everything is read and counted, nothing is written.

It reports what cannot be imported as it is, and computes a fingerprint by which a later run recognises the same
source.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from nexo.core.model import Kind
from nexo.ids import now_ms, time_of
from nexo.store.engines.transfer_connection import Row
from nexo.store.legacy.chats import Chats, OwnerCandidate, Snapshot
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.messages import Converter, MessageRules, named_in
from nexo.store.legacy.tables import (
    GROUP_MEMBERS,
    MENTIONS,
    MESSAGES,
    NOT_IMPORTED,
    REQUESTS,
    SINGLE_MEMBERS,
    LegacyDatabase,
    LegacyTable,
    to_ms,
)
from nexo.store.legacy.users import LegacyUsers
from nexo.store.transfer.copy import Progress
from nexo.store.transfer.table_pages import TablePages

_encode = msgspec.msgpack.Encoder(enc_hook=str).encode


def _digested(rows: list[Row]) -> bytes:
    """Returns bytes for the fingerprint, row by row: they do not depend on where a page ends."""
    return b"".join(map(_encode, rows))


class Survey(Struct):
    """What is known of a legacy database after it was read once."""

    users: LegacyUsers
    chats: Chats
    mentioned: dict[int, tuple[str, ...]]
    repeated: frozenset[int]
    messages: int = 0
    last_id: int = 0
    recalls: int = 0
    digest: Any = None
    at_position: Snapshot = {}
    recalls_at_position: int = 0

    @property
    def first_event_id(self) -> int:
        return self.last_id + 1

    def converter(self, issues: Issues, rules: MessageRules) -> Converter:
        return Converter(self.users, self.chats, issues, rules, self.mentioned, self.repeated)

    def silent_event_ids(self) -> dict[int, int]:
        silent = [chat.conv for chat in self.chats.all if chat.is_silent_group and chat.owner is not None]
        first = self.first_event_id + self.recalls
        return {conv: first + i for i, conv in enumerate(silent)}


async def survey(
    legacy: LegacyDatabase,
    issues: Issues,
    rules: MessageRules,
    renames: dict[str, str],
    position: int,
    batch_rows: int,
    progress: Progress,
) -> Survey:
    """Read the whole source. `position` is the last message that an earlier run has stored: the counts up to it are
    kept in `at_position`."""
    users = LegacyUsers(renames, issues)
    found = Survey(users, Chats(users, issues, rules.zone), {}, frozenset(), digest=hashlib.blake2b(digest_size=16))
    found.digest.update(repr((sorted(renames.items()), str(rules.zone), rules.recalled_status)).encode())
    await users.read(legacy, batch_rows)
    await found.chats.read(legacy, batch_rows)
    await _read_mentions(legacy, found)
    found.repeated = await _read_repeated(legacy)
    await _read_messages(legacy, found, issues, rules, position, batch_rows, progress)
    for table in (SINGLE_MEMBERS, GROUP_MEMBERS):
        await _read_members(legacy, found, table, issues, rules, batch_rows)
    if legacy.has(REQUESTS):
        name = legacy.name(REQUESTS, "from_user_id")
        for (user,) in await legacy.connection.read(f"SELECT DISTINCT {name} FROM {REQUESTS.name} ORDER BY {name}"):
            users.find(user)
    found.chats.choose_owners()
    users.strangers.sort()
    await _report_the_rest(legacy, found, issues)
    return found


async def _read_mentions(legacy: LegacyDatabase, found: Survey) -> None:
    """Read all at once: they are few, and have no useful index."""
    if not legacy.has(MENTIONS):
        return
    by_message: dict[int, list[tuple[Any, Any]]] = {}
    select = legacy.select(MENTIONS)
    rows = await legacy.connection.read(f"SELECT {','.join(select)} FROM {MENTIONS.name} ORDER BY 1,2,3")
    found.digest.update(_digested(rows))
    for message_id, user_id, kind in rows:
        by_message.setdefault(message_id, []).append((user_id, kind))
    found.mentioned = {message_id: named_in(pairs, found.users) for message_id, pairs in by_message.items()}


async def _read_repeated(legacy: LegacyDatabase) -> frozenset[int]:
    """Returns the messages whose client_msg_id an earlier one of the same sender has. The old database may compare
    without regard to case, so what it takes for equal is compared once more here."""
    if not legacy.has(MESSAGES, "client_msg_id"):
        return frozenset()
    key, sender, given = (legacy.name(MESSAGES, name) for name in ("id", "from_user_id", "client_msg_id"))
    # one pass: without an index on it, asking for each pair would read the whole table every time
    rows = await legacy.connection.read(
        f"SELECT m.{key},m.{sender},m.{given} FROM {MESSAGES.name} m JOIN (SELECT {sender} AS who,{given} AS what "
        f"FROM {MESSAGES.name} WHERE {given} IS NOT NULL AND {given}<>'' GROUP BY {sender},{given} "
        f"HAVING COUNT(*)>1) d ON d.who=m.{sender} AND d.what=m.{given} ORDER BY m.{key}"
    )
    seen: set[tuple[str, str]] = set()
    repeated: set[int] = set()
    for message_id, user, exact in rows:
        pair = str(user), str(exact)
        if pair in seen:
            repeated.add(message_id)
        seen.add(pair)
    return frozenset(repeated)


async def _read_messages(
    legacy: LegacyDatabase,
    found: Survey,
    issues: Issues,
    rules: MessageRules,
    position: int,
    batch_rows: int,
    progress: Progress,
) -> None:
    total = await legacy.count(MESSAGES.name)
    converter = found.converter(issues, rules)
    done = 0
    # up to the position first, so that a page ends there
    for after, upto in ((None, position), (position, None)) if position else ((None, None),):
        async for page in legacy.pages(MESSAGES, batch_rows, after, upto):
            converter.survey(page)
            found.digest.update(_digested(page))
            done += len(page)
            progress("looking at the source", done, total)
        if upto is not None:
            found.at_position = found.chats.snapshot()
            found.recalls_at_position = converter.recalls
    found.messages, found.recalls, found.last_id = done, converter.recalls, converter.last_id
    for chat in found.chats.all:
        chat.remember()
    if converter.without_client_id:
        issues.add("without_client_msg_id", MESSAGES.name, count=converter.without_client_id)
    if converter.out_of_order:
        issues.add("order_changed", MESSAGES.name, count=converter.out_of_order)
    if converter.retyped:
        issues.add("type_changed", MESSAGES.name, count=converter.retyped)


async def _read_members(
    legacy: LegacyDatabase, found: Survey, table: LegacyTable, issues: Issues, rules: MessageRules, batch_rows: int
) -> None:
    is_group = table is GROUP_MEMBERS
    pages = TablePages(table.name, legacy.select(table), legacy.select(table)[:2], batch_rows)
    async for page in pages.all(legacy.connection):
        found.digest.update(_digested(page))
        for row in page:
            user_id = found.users.find(row[1])
            chat = found.chats.known_group(row[0]) if is_group else found.chats.known_single(row[0])
            if chat is None or (chat.pair is not None and user_id not in chat.pair):
                whole = dict(zip(table.columns, row, strict=True))
                issues.add("member_left_out", table.name, f"{row[0]}:{row[1]}", whole)
            elif chat.kind == Kind.GROUP:
                candidate = _candidate(row, user_id, chat.group, found.users, rules)
                chat.owner = candidate if chat.owner is None else min(chat.owner, candidate)


def _candidate(row: Row, user_id: str, group: Row | None, users: LegacyUsers, rules: MessageRules) -> OwnerCandidate:
    role = 3 if row[4] is None else int(row[4])
    creator = group[3] if group else None
    if role == 1:
        rank = 0
    elif creator is not None and users.find(creator) == user_id:
        rank = 1
    else:
        rank = 2 if role == 2 else 3
    return OwnerCandidate(rank, to_ms(row[5], rules.zone), user_id)


async def _report_the_rest(legacy: LegacyDatabase, found: Survey, issues: Issues) -> None:
    for name in NOT_IMPORTED:
        if await legacy.connection.columns(name) and (count := await legacy.count(name)):
            issues.add("table_not_imported", name, count=count)
    if found.messages and not legacy.has(MESSAGES, "created_at"):
        issues.add("no_times", MESSAGES.name)
    if found.last_id > 1 << 40 and time_of(found.last_id) > now_ms():
        issues.add("ids_ahead", MESSAGES.name, found.last_id)
