"""What is stored against what was to be stored: every message by its columns, every conversation by the source's
own count of it, every member and user by what the rules say once more."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from nexo.core.model import FIRST_EVENT, Kind
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.members import COLUMNS, Finisher, slices
from nexo.store.legacy.messages import COLUMNS as MESSAGE_COLUMNS
from nexo.store.legacy.messages import Rules
from nexo.store.legacy.survey import Survey
from nexo.store.legacy.tables import MESSAGES, Legacy
from nexo.store.transfer.copy import Progress
from nexo.store.transfer.links import Link, Row
from nexo.store.transfer.paging import Pages

LISTED = 20
_PLACES = {"messages": 1, "conversations": 1, "chat_groups": 1, "members": 2}  # how many columns are the key


class Proof(Struct):
    differences: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, text: str) -> None:
        self.count += 1
        if len(self.differences) < LISTED:
            self.differences.append(text)

    def compare(self, table: str, columns: Any, expected: list[Row], found: list[Row]) -> None:
        width = _PLACES[table]
        there = {row[:width]: row for row in found}
        for row in expected:
            other = there.pop(row[:width], None)
            if other is None:
                self.add(f"{table} {_key(row, width)} is missing")
            elif other != row:
                wrong = [name for name, a, b in zip(columns, row, other, strict=True) if a != b]
                self.add(f"{table} {_key(row, width)} differs in {', '.join(wrong)}")
        for key in there:
            self.add(f"{table} {_key(key, width)} should not be there")


def _key(row: Row, width: int) -> str:
    return ":".join(str(value) for value in row[:width])


async def prove(
    legacy: Legacy, target: Link, found: Survey, rules: Rules, batch_rows: int, progress: Progress
) -> Proof:
    proof = Proof()
    await _prove_messages(legacy, target, found, rules, batch_rows, proof, progress)
    await _prove_counts(legacy, target, found, proof)
    await _prove_chats(legacy, target, found, rules, proof, progress)
    return proof


async def _prove_messages(
    legacy: Legacy,
    target: Link,
    found: Survey,
    rules: Rules,
    batch_rows: int,
    proof: Proof,
    progress: Progress,
) -> None:
    """In the order of their ids on both sides; events, which the source does not have, come behind."""
    found.chats.restore({})
    converter = found.converter(Issues(), rules)
    stored = Pages("messages", MESSAGE_COLUMNS, MESSAGE_COLUMNS[:1], batch_rows)
    after: tuple[Any, ...] | None = None
    done = 0
    async for page in legacy.pages(MESSAGES, batch_rows):
        made = converter.convert(page, found.first_event_id).messages
        expected = [row for row in made if row[0] <= found.last_id]
        if expected:
            rows = (await stored.read(target, after))[: len(expected)]
            if rows != expected:
                proof.compare("messages", MESSAGE_COLUMNS, expected, rows)
            after = expected[-1][:1]
        done += len(page)
        progress("comparing messages", done, found.messages)


async def _prove_counts(legacy: Legacy, target: Link, found: Survey, proof: Proof) -> None:
    """Numbers that the source counts by itself, without any rule of ours."""
    kept = sum(chat.total for chat in found.chats.all)
    ((stored,),) = await target.read(f"SELECT COUNT(*) FROM messages WHERE msg_type<{FIRST_EVENT}")
    if stored != kept:
        proof.add(f"messages: {stored} instead of {kept}")
    ((people,),) = await target.read("SELECT COUNT(*) FROM users")
    if people != len(found.people):
        proof.add(f"users: {people} instead of {len(found.people)}")
    ((events,),) = await target.read(f"SELECT COUNT(*) FROM messages WHERE msg_type>={FIRST_EVENT}")
    wanted = found.recalls + len(found.silent_event_ids())
    if events != wanted:
        proof.add(f"events: {events} instead of {wanted}")
    group = legacy.name(MESSAGES, "group_id")
    counts = await legacy.link.read(
        f"SELECT {group},COUNT(*) FROM {MESSAGES.name} WHERE {group} IS NOT NULL GROUP BY {group}"
    )
    counted = {str(group_id): count for group_id, count in counts}
    for chat in found.chats.all:
        if chat.kind == Kind.GROUP and chat.total > counted.get(str(chat.legacy_ids[0]), 0):
            proof.add(f"{chat.name}: {chat.total} messages, more than the source counts")


async def _prove_chats(
    legacy: Legacy, target: Link, found: Survey, rules: Rules, proof: Proof, progress: Progress
) -> None:
    finisher = Finisher(legacy, target, found.people, rules, found.silent_event_ids())
    for piece in slices(found.chats.all, 0):
        made = await finisher.finish(piece)
        low, high = piece[0].conv, piece[-1].conv
        for table, rows, place in (
            ("conversations", made.conversations, "id"),
            ("chat_groups", made.chat_groups, "conv"),
            ("members", made.members, "conv"),
        ):
            columns = COLUMNS[table]
            stored = await target.read(
                f"SELECT {','.join(columns)} FROM {table} WHERE {place} BETWEEN ? AND ?", low, high
            )
            proof.compare(table, columns, rows, stored)
        progress("comparing conversations", high, len(found.chats.all))
