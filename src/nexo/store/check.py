"""Check a store by every law of `laws.py`: violations are counted in full and listed in part.

Conversations are checked in slices, each in one read-only snapshot: no writer waits, memory stays small, and what
is found is wrong even when a server is writing meanwhile. Only values that follow from others can be repaired,
conversation by conversation under the lock that sending takes; never a message, a cursor or a span, and nothing in
a conversation whose messages are themselves damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field
from sqlalchemy import Connection, UniqueConstraint, inspect, text
from sqlalchemy.exc import DBAPIError

from nexo.config import StoreUrl
from nexo.store import laws, migrate, schema
from nexo.store.data_folder import check_database_exists
from nexo.store.engines.kind import EngineKind
from nexo.store.engines.registry import engine_kind
from nexo.store.laws import Law, LawScan

LISTED_PER_KIND = 100
SLICE_CONVERSATIONS = 10_000
SLICE_WEIGHT = 200_000  # messages and members: a second or two on any engine
_LAST = (1 << 63) - 1

Value = int | str | None


class Finding(Struct):
    """One violation of a law."""

    kind: str
    conversation_id: str | None = None
    user_id: str | None = None
    seq: int | None = None
    found: Value = None
    expected: Value = None
    detail: str = ""


class Report(Struct):
    conversations: int = 0
    messages: int = 0
    findings: list[Finding] = field(default_factory=list)  # at most LISTED_PER_KIND of each kind
    counts: dict[str, int] = field(default_factory=dict)  # all of them
    repaired: dict[str, int] = field(default_factory=dict)
    left: int = 0  # violations that remain after the repair

    def add(self, kind: str, count: int, listed: list[Finding]) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + count
        self.findings += listed
        self.left += count

    def room(self, kind: str) -> int:
        return LISTED_PER_KIND - sum(finding.kind == kind for finding in self.findings)


class _Slice(NamedTuple):
    high: int
    conversations: int
    messages: int
    repairable: set[int]  # conversations with repairable values


async def check(
    url: StoreUrl,
    *,
    repair: bool = False,
    progress: Callable[[int, int], None] | None = None,
    half_done: bool = False,
) -> Report:
    """Check the whole store. `progress` is called with how many of how many messages were read. `half_done`: the
    store is the unfinished copy of the caller, and marked as such."""
    check_database_exists(url)
    if not half_done:
        await migrate.check_current(url)
    report = Report()
    kind = engine_kind(url)
    if kind.needs_analyze:
        await migrate.with_connection(url, _analyze)
    total = await migrate.with_connection(url, partial(_check_whole, kind=kind, report=report))
    low = 0
    while low <= _LAST:
        left = report.left
        part = await migrate.with_connection(url, partial(_check_slice, kind=kind, low=low, high=None, report=report))
        if repair and part.repairable:
            for conv in sorted(part.repairable):
                await migrate.with_connection(url, partial(_repair_conversation, kind=kind, conv=conv, report=report))
            again = Report()
            await migrate.with_connection(url, partial(_check_slice, kind=kind, low=low, high=part.high, report=again))
            report.left = left + again.left
        report.conversations += part.conversations
        report.messages += part.messages
        if progress is not None:
            progress(report.messages, max(total, report.messages))
        low = part.high + 1
    return report


# -- once for the whole store ----------------------------------------------------------------------------


def _analyze(connection: Connection) -> None:
    """Analyze the tables. Where that is not allowed (on a standby, or without ownership of the tables) the check is
    only slower."""
    names = ",".join(table.name for table in schema.metadata.sorted_tables)
    with suppress(DBAPIError), connection.begin_nested():
        connection.execute(text(f"ANALYZE {names}"))


def _check_whole(connection: Connection, kind: EngineKind, report: Report) -> int:
    """Check what belongs to no conversation; returns the number of messages there should be."""
    connection.exec_driver_sql(kind.begin_snapshot)
    for table, columns in _missing_keys(connection):
        name = f"{table}({', '.join(columns)})"
        report.add("missing_unique_key", 1, [Finding("missing_unique_key", detail=name)])
        _find_duplicates(connection, table, columns, report)
    count = _number(connection, f"SELECT COUNT(*) FROM ({laws.UNMARKED_BLOCKS}) s")
    if count:
        rows = connection.execute(text(f"{laws.UNMARKED_BLOCKS} LIMIT {LISTED_PER_KIND}"))
        listed = [Finding("block_unmarked", user_id=row[1], found=0, expected=1, detail=f"by {row[0]}") for row in rows]
        report.add("block_unmarked", count, listed)
    count = _number(connection, f"SELECT COUNT(*) FROM ({laws.UNMARKED_CONTACTS}) s")
    if count:
        rows = connection.execute(text(f"{laws.UNMARKED_CONTACTS} LIMIT {LISTED_PER_KIND}"))
        listed = [
            Finding("contact_unmarked", user_id=row[0], found=0, expected=1, detail=f"of {row[1]}") for row in rows
        ]
        report.add("contact_unmarked", count, listed)
    count = _number(connection, f"SELECT COUNT(*) FROM ({laws.STRAY_REACTIONS}) s")
    if count:
        rows = connection.execute(text(f"{laws.STRAY_REACTIONS} LIMIT {LISTED_PER_KIND}"))
        listed = [Finding("reaction_stray", user_id=row[1], detail=f"message {row[0]}") for row in rows]
        report.add("reaction_stray", count, listed)
    return _number(connection, "SELECT SUM(head_seq) FROM conversations")


def _missing_keys(connection: Connection) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Returns the unique keys that the schema has and the database has not."""
    inspector = inspect(connection)
    names = list(schema.metadata.tables)
    primary = inspector.get_multi_pk_constraint(filter_names=names)
    unique = inspector.get_multi_unique_constraints(filter_names=names)
    indexes = inspector.get_multi_indexes(filter_names=names)
    for table in schema.metadata.sorted_tables:
        place = (None, table.name)
        present = [set(primary[place]["constrained_columns"])] if place in primary else []
        present += [set(key["column_names"]) for key in unique.get(place, ())]
        present += [set(map(str, key["column_names"])) for key in indexes.get(place, ()) if key["unique"]]
        wanted = [tuple(table.primary_key.columns.keys())]
        wanted += [tuple(key.columns.keys()) for key in table.constraints if isinstance(key, UniqueConstraint)]
        yield from ((table.name, columns) for columns in wanted if set(columns) not in present)


def _find_duplicates(connection: Connection, table: str, columns: tuple[str, ...], report: Report) -> None:
    """Looks for duplicates where the unique key is missing; with it, the database refuses them."""
    names = ",".join(columns)
    filled = " AND ".join(f"{name} IS NOT NULL" for name in columns)
    source = f"SELECT {names},COUNT(*) AS times FROM {table} WHERE {filled} GROUP BY {names} HAVING COUNT(*)>1"
    count = _number(connection, f"SELECT COUNT(*) FROM ({source}) s")
    if not count:
        return
    listed = []
    for row in connection.execute(text(f"{source} ORDER BY {names} LIMIT {LISTED_PER_KIND}")).mappings():
        values = ", ".join(f"{name}={row[name]}" for name in columns)
        listed.append(Finding("duplicate_key", found=row["times"], expected=1, detail=f"{table}: {values}"))
    report.add("duplicate_key", count, listed[: report.room("duplicate_key")])


# -- slice by slice --------------------------------------------------------------------------------------


def _check_slice(connection: Connection, kind: EngineKind, low: int, high: int | None, report: Report) -> _Slice:
    """Check the conversations from `low` to `high`, or a slice of bounded size."""
    connection.exec_driver_sql(kind.begin_snapshot)
    chosen, conversations, messages = _choose(connection, low)
    high = chosen if high is None else high
    repairable: set[int] = set()
    bounds = {"low": low, "high": high}
    for scan in laws.scans(kind.sql):
        for law, count in _broken(connection, scan, bounds):
            report.add(law.kind, count, _list(connection, scan, law, bounds, report.room(law.kind)))
            if law.repair is not None:
                wrong = f"SELECT DISTINCT conv FROM ({scan.source}) s WHERE {law.wrong}"
                repairable.update(row[0] for row in connection.execute(text(wrong), bounds))
    return _Slice(high, conversations, messages, repairable)


def _choose(connection: Connection, low: int) -> tuple[int, int, int]:
    """Returns the end of a slice, its conversations and their messages. The last slice has no end, so that the slices
    cover all numbers and rows without a conversation are found as well."""
    query = "SELECT id,head_seq,member_count FROM conversations WHERE id>=:low ORDER BY id LIMIT :many"
    rows = connection.execute(text(query), {"low": low, "many": SLICE_CONVERSATIONS + 1}).all()
    weight = messages = 0
    for i, (conv, head_seq, member_count) in enumerate(rows):
        if i and (weight + head_seq + member_count > SLICE_WEIGHT or i == SLICE_CONVERSATIONS):
            return conv - 1, i, messages
        weight += head_seq + member_count
        messages += head_seq
    return _LAST, len(rows), messages


def _broken(connection: Connection, scan: LawScan, bounds: dict[str, int]) -> list[tuple[Law, int]]:
    """Returns the laws of a scan that rows break, and how often, in one pass."""
    sums = ",".join(f"SUM(CASE WHEN {law.wrong} THEN 1 ELSE 0 END)" for law in scan.laws)
    row = connection.execute(text(f"SELECT {sums} FROM ({scan.source}) s"), bounds).one()
    return [(law, int(count)) for law, count in zip(scan.laws, row, strict=True) if count]


def _list(connection: Connection, scan: LawScan, law: Law, bounds: dict[str, int], room: int) -> list[Finding]:
    if room <= 0:
        return []
    user = "user_id" if scan.has_user else "NULL"
    rows = connection.execute(
        text(
            "SELECT s.conv,(SELECT c.conversation_id FROM conversations c WHERE c.id=s.conv) AS chat,"
            f"{user} AS who,{law.seq} AS at_seq,{law.found} AS found,{law.expected} AS expected "
            f"FROM ({scan.source}) s WHERE {law.wrong} ORDER BY 1,3,4 LIMIT {room}"
        ),
        bounds,
    )
    return [
        Finding(law.kind, chat, who, at_seq, _plain(found), _plain(expected), "" if chat else f"conversation {conv}")
        for conv, chat, who, at_seq, found, expected in rows
    ]


# -- repairing -------------------------------------------------------------------------------------------


def _repair_conversation(connection: Connection, kind: EngineKind, conv: int, report: Report) -> None:
    """Repairs values that follow from the messages, under the locks of all writers and in their order."""
    if not _lock_conversation(connection, kind, conv):
        return
    bounds = {"low": conv, "high": conv}
    scans = laws.scans(kind.sql)
    if any(law.kind in laws.DAMAGE for scan in scans for law, _ in _broken(connection, scan, bounds)):
        return
    for scan in scans:
        for law, _ in _broken(connection, scan, bounds):
            if law.repair is None:
                continue
            user = "user_id" if scan.has_user else "NULL"
            wrong = f"SELECT {user} AS who,{law.expected} AS expected FROM ({scan.source}) s WHERE {law.wrong}"
            changes = [
                {"conv": conv, "who": who, "expected": _plain(expected)}
                for who, expected in connection.execute(text(wrong), bounds)
            ]
            table, column = law.repair
            place = "conv=:conv AND user_id=:who" if scan.has_user else "id=:conv"
            connection.execute(text(f"UPDATE {table} SET {column}=:expected WHERE {place}"), changes)
            report.repaired[law.kind] = report.repaired.get(law.kind, 0) + len(changes)


def _lock_conversation(connection: Connection, kind: EngineKind, conv: int) -> bool:
    connection.exec_driver_sql(kind.begin_repair)
    for_update = kind.sql.for_update
    names = {"conv": conv}
    found = connection.execute(text(f"SELECT id FROM conversations WHERE id=:conv{for_update}"), names).all()
    # cursors are moved without the conversation's lock
    connection.execute(
        text(f"SELECT user_id FROM members WHERE conv=:conv ORDER BY conv,user_id{for_update}"), names
    ).all()
    return bool(found)


# -- names and numbers ----------------------------------------------------------------------------------------


def _number(connection: Connection, query: str) -> int:
    return int(connection.execute(text(query)).scalar() or 0)


def _plain(value: Any) -> Value:
    """Sums come as Decimal from some engines."""
    return value if value is None or isinstance(value, str) else int(value)
