"""Compare the target with what should be in it: every message by its columns, every conversation by the source's own
count of it, every member by applying the rules once more."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from nexo.core.model import Kind
from nexo.core.unread import countable_sql
from nexo.store.engines.transfer_connection import Row, TransferConnection
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.members import COLUMNS, ConversationBuilder, slices
from nexo.store.legacy.messages import COLUMNS as MESSAGE_COLUMNS
from nexo.store.legacy.messages import MessageRules
from nexo.store.legacy.survey import Survey
from nexo.store.legacy.tables import MESSAGES, LegacyDatabase
from nexo.store.transfer.copy import Progress
from nexo.store.transfer.table_pages import TablePages

LISTED = 20
_KEY_WIDTHS = {"messages": 1, "conversations": 1, "chat_groups": 1, "members": 2}  # how many columns are the key


class Verification(Struct):
    differences: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, text: str) -> None:
        self.count += 1
        if len(self.differences) < LISTED:
            self.differences.append(text)

    def compare(self, table: str, columns: Any, expected: list[Row], found: list[Row]) -> None:
        width = _KEY_WIDTHS[table]
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


async def verify(
    legacy: LegacyDatabase,
    target: TransferConnection,
    found: Survey,
    rules: MessageRules,
    batch_rows: int,
    progress: Progress,
) -> Verification:
    result = Verification()
    await _verify_messages(legacy, target, found, rules, batch_rows, result, progress)
    await _verify_counts(legacy, target, found, result)
    await _verify_chats(legacy, target, found, rules, result, progress)
    return result


async def _verify_messages(
    legacy: LegacyDatabase,
    target: TransferConnection,
    found: Survey,
    rules: MessageRules,
    batch_rows: int,
    result: Verification,
    progress: Progress,
) -> None:
    """Compare in the order of ids; events, which the source does not have, follow behind all messages."""
    found.chats.restore({})
    converter = found.converter(Issues(), rules)
    stored = TablePages("messages", MESSAGE_COLUMNS, MESSAGE_COLUMNS[:1], batch_rows)
    after: tuple[Any, ...] | None = None
    done = 0
    async for page in legacy.pages(MESSAGES, batch_rows):
        made = converter.convert(page, found.first_event_id).messages
        expected = [row for row in made if row[0] <= found.last_id]
        if expected:
            rows = (await stored.read(target, after))[: len(expected)]
            if rows != expected:
                result.compare("messages", MESSAGE_COLUMNS, expected, rows)
            after = expected[-1][:1]
        done += len(page)
        progress("comparing messages", done, found.messages)


async def _verify_counts(
    legacy: LegacyDatabase, target: TransferConnection, found: Survey, result: Verification
) -> None:
    """Compare numbers that the source counts by itself, without any rule of the import."""
    kept = sum(chat.total for chat in found.chats.all)
    ((stored,),) = await target.read(f"SELECT COUNT(*) FROM messages WHERE {countable_sql()}")
    if stored != kept:
        result.add(f"messages: {stored} instead of {kept}")
    ((users,),) = await target.read("SELECT COUNT(*) FROM users")
    if users != len(found.users):
        result.add(f"users: {users} instead of {len(found.users)}")
    ((events,),) = await target.read(f"SELECT COUNT(*) FROM messages WHERE NOT ({countable_sql()})")
    wanted = found.recalls + len(found.silent_event_ids())
    if events != wanted:
        result.add(f"events: {events} instead of {wanted}")
    group = legacy.name(MESSAGES, "group_id")
    counts = await legacy.connection.read(
        f"SELECT {group},COUNT(*) FROM {MESSAGES.name} WHERE {group} IS NOT NULL GROUP BY {group}"
    )
    counted = {str(group_id): count for group_id, count in counts}
    for chat in found.chats.all:
        if chat.kind == Kind.GROUP and chat.total > counted.get(str(chat.legacy_ids[0]), 0):
            result.add(f"{chat.name}: {chat.total} messages, more than the source counts")


async def _verify_chats(
    legacy: LegacyDatabase,
    target: TransferConnection,
    found: Survey,
    rules: MessageRules,
    result: Verification,
    progress: Progress,
) -> None:
    builder = ConversationBuilder(legacy, target, found.users, rules, found.silent_event_ids())
    for piece in slices(found.chats.all, 0):
        made = await builder.build(piece)
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
            result.compare(table, columns, rows, stored)
        progress("comparing conversations", high, len(found.chats.all))
