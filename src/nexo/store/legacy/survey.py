"""The first pass: everything is read and counted, nothing is written.

It finds what cannot come along as it is, and gives a fingerprint by which a later run knows that the source
is still the same.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from nexo.core.model import Kind
from nexo.ids import now_ms, time_of
from nexo.store.legacy.chats import Chats, Owner, Snapshot
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.messages import Converter, Rules, named_in
from nexo.store.legacy.people import People
from nexo.store.legacy.tables import (
    GROUP_MEMBERS,
    MENTIONS,
    MESSAGES,
    NOT_IMPORTED,
    REQUESTS,
    SINGLE_MEMBERS,
    Legacy,
    Table,
    to_ms,
)
from nexo.store.transfer.copy import Progress
from nexo.store.transfer.links import Row
from nexo.store.transfer.paging import Pages

_encode = msgspec.msgpack.Encoder(enc_hook=str).encode


def _digested(rows: list[Row]) -> bytes:
    """Row by row: where a page ends says nothing about the source."""
    return b"".join(map(_encode, rows))


class Survey(Struct):
    """What is known of a legacy database after it was read once."""

    people: People
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

    def converter(self, issues: Issues, rules: Rules) -> Converter:
        return Converter(self.people, self.chats, issues, rules, self.mentioned, self.repeated)

    def silent_event_ids(self) -> dict[int, int]:
        silent = [chat.conv for chat in self.chats.all if chat.is_silent_group and chat.owner is not None]
        first = self.first_event_id + self.recalls
        return {conv: first + i for i, conv in enumerate(silent)}


async def survey(
    legacy: Legacy,
    issues: Issues,
    rules: Rules,
    renames: dict[str, str],
    position: int,
    batch_rows: int,
    progress: Progress,
) -> Survey:
    """`position` is the last message that an earlier run has stored: how far everything was counted by then
    is remembered."""
    people = People(renames, issues)
    found = Survey(people, Chats(people, issues, rules.zone), {}, frozenset(), digest=hashlib.blake2b(digest_size=16))
    found.digest.update(repr((sorted(renames.items()), str(rules.zone), rules.recalled_status)).encode())
    await people.read(legacy, batch_rows)
    await found.chats.read(legacy, batch_rows)
    await _read_mentions(legacy, found)
    found.repeated = await _read_repeated(legacy)
    await _read_messages(legacy, found, issues, rules, position, batch_rows, progress)
    for table in (SINGLE_MEMBERS, GROUP_MEMBERS):
        await _read_members(legacy, found, table, issues, rules, batch_rows)
    if legacy.has(REQUESTS):
        name = legacy.name(REQUESTS, "from_user_id")
        for (user,) in await legacy.link.read(f"SELECT DISTINCT {name} FROM {REQUESTS.name} ORDER BY {name}"):
            people.find(user)
    found.chats.choose_owners()
    people.strangers.sort()
    await _tell_the_rest(legacy, found, issues)
    return found


async def _read_mentions(legacy: Legacy, found: Survey) -> None:
    """They are few, and have no useful index: all of them at once."""
    if not legacy.has(MENTIONS):
        return
    by_message: dict[int, list[tuple[Any, Any]]] = {}
    select = legacy.select(MENTIONS)
    rows = await legacy.link.read(f"SELECT {','.join(select)} FROM {MENTIONS.name} ORDER BY 1,2,3")
    found.digest.update(_digested(rows))
    for message_id, user_id, kind in rows:
        by_message.setdefault(message_id, []).append((user_id, kind))
    found.mentioned = {message_id: named_in(pairs, found.people) for message_id, pairs in by_message.items()}


async def _read_repeated(legacy: Legacy) -> frozenset[int]:
    """Messages whose client_msg_id an earlier one of the same sender has. The old database may compare without
    regard to case: what it thinks equal is looked at once more."""
    if not legacy.has(MESSAGES, "client_msg_id"):
        return frozenset()
    key, sender, given = (legacy.name(MESSAGES, name) for name in ("id", "from_user_id", "client_msg_id"))
    # one pass: without an index on it, asking for each pair would read the whole table every time
    rows = await legacy.link.read(
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
    legacy: Legacy,
    found: Survey,
    issues: Issues,
    rules: Rules,
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
    if converter.retyped:
        issues.add("type_changed", MESSAGES.name, count=converter.retyped)


async def _read_members(
    legacy: Legacy, found: Survey, table: Table, issues: Issues, rules: Rules, batch_rows: int
) -> None:
    is_group = table is GROUP_MEMBERS
    pages = Pages(table.name, legacy.select(table), legacy.select(table)[:2], batch_rows)
    async for page in pages.all(legacy.link):
        found.digest.update(_digested(page))
        for row in page:
            user_id = found.people.find(row[1])
            chat = found.chats.known_group(row[0]) if is_group else found.chats.known_single(row[0])
            if chat is None or (chat.pair is not None and user_id not in chat.pair):
                whole = dict(zip(table.columns, row, strict=True))
                issues.add("member_left_out", table.name, f"{row[0]}:{row[1]}", whole)
            elif chat.kind == Kind.GROUP:
                candidate = _candidate(row, user_id, chat.group, found.people, rules)
                chat.owner = candidate if chat.owner is None else min(chat.owner, candidate)


def _candidate(row: Row, user_id: str, group: Row | None, people: People, rules: Rules) -> Owner:
    role = 3 if row[4] is None else int(row[4])
    creator = group[3] if group else None
    if role == 1:
        rank = 0
    elif creator is not None and people.find(creator) == user_id:
        rank = 1
    else:
        rank = 2 if role == 2 else 3
    return Owner(rank, to_ms(row[5], rules.zone), user_id)


async def _tell_the_rest(legacy: Legacy, found: Survey, issues: Issues) -> None:
    for name in NOT_IMPORTED:
        if await legacy.link.columns(name) and (count := await legacy.count(name)):
            issues.add("table_not_imported", name, count=count)
    if found.messages and not legacy.has(MESSAGES, "created_at"):
        issues.add("no_times", MESSAGES.name)
    if found.last_id > 1 << 40 and time_of(found.last_id) > now_ms():
        issues.add("ids_ahead", MESSAGES.name, found.last_id)
