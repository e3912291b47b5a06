"""Copy a whole store from one database to another, of any two engines, table by table in the order of its keys.

Every batch is one transaction that also records how far it got, so a copy that was killed continues after its last
commit. At the end every row is read from both sides and compared, and `nexo check` runs on the copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
from msgspec import Struct, field
from sqlalchemy import Integer, Table

from nexo.config import StoreUrl
from nexo.store import check, schema
from nexo.store.engines.transfer_connection import Row, TransferConnection
from nexo.store.transfer.connections import open_source, open_target, transaction
from nexo.store.transfer.folder_locks import lock_folders
from nexo.store.transfer.progress_record import (
    NOT_COPIED,
    TransferRecord,
    TransferRefused,
    check_schema,
    check_source_unused,
    read_leases,
)
from nexo.store.transfer.table_pages import TablePages

BATCH_ROWS = 2000  # with 16 KiB of content each still no more than tens of megabytes
LISTED = 20
_DONE = "~copied"  # after every table's name

Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much


class TableReport(Struct):
    rows: int = 0
    checksum: str = ""


class CopyReport(Struct):
    """What was copied, and what the proof found. `differences` empty and `findings` zero: all is well."""

    resumed: bool = False
    tables: dict[str, TableReport] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    difference_count: int = 0
    findings: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not self.difference_count and not self.findings


def tables() -> list[Table]:
    """Returns the tables to copy, by name, also those that later versions add. A copy begins with an empty journal."""
    return [schema.metadata.tables[name] for name in sorted(set(schema.metadata.tables) - NOT_COPIED)]


def pages_of(table: Table, rows: int) -> TablePages:
    key = [column.name for column in table.primary_key]
    return TablePages(table.name, columns_of(table), key, rows)


def columns_of(table: Table) -> list[str]:
    """The key first, as pages need it."""
    key = [column.name for column in table.primary_key]
    return key + [column.name for column in table.columns if column.name not in key]


def as_copied(table: Table, rows: list[Row]) -> list[Row]:
    """Returns rows as the target gets them: leases as ended, because their last millisecond counts and their holder is
    gone."""
    if table.name != "node_leases":
        return rows
    place = columns_of(table).index("expires_at")
    return [(*row[:place], 0, *row[place + 1 :]) for row in rows]


async def copy_store(
    source_url: StoreUrl,
    target_url: StoreUrl,
    *,
    batch_rows: int = BATCH_ROWS,
    restart: bool = False,
    progress: Progress = lambda *_: None,
) -> CopyReport:
    if source_url == target_url or _is_same_file(source_url, target_url):
        raise TransferRefused("source and target are the same database")
    report = CopyReport()
    with lock_folders(source_url, target_url):
        async with open_source(source_url) as source, open_target(target_url) as target:
            await check_schema(source_url, source)
            leases = await read_leases(source, source_url)
            counts, fingerprint = await _survey(source, progress)
            record = TransferRecord(target, target_url, "copy-store", source_url.redacted())
            await record.open(fingerprint, restart=restart)
            report.resumed = record.resumed
            await _copy_all(source, target, record, counts, batch_rows, progress)
            await analyze(target)
            await _compare_all(source, target, counts, batch_rows, report, progress)
            if report.difference_count:
                return report
            report.findings = await broken_laws(target_url, progress)
            await check_source_unused(source_url, leases)
            await record.close()
    return report


async def broken_laws(url: StoreUrl, progress: Progress) -> dict[str, int]:
    """Returns what `nexo check` finds in a target that is not released yet, as a count per kind."""
    report = await check.check(url, half_done=True, progress=lambda done, of: progress("checking the laws", done, of))
    return report.counts


def _is_same_file(a: StoreUrl, b: StoreUrl) -> bool:
    return a.is_embedded and b.is_embedded and a.path.resolve() == b.path.resolve()


async def _survey(source: TransferConnection, progress: Progress) -> tuple[dict[str, int], str]:
    """Returns the rows per table, and a fingerprint that changes with anything that a server writes: counts, and the
    greatest value and a sum of every number. Leases change without a change of data and are left out."""
    counts: dict[str, int] = {}
    facts: list[object] = []
    everything = tables()
    for i, table in enumerate(everything):
        numbers = [column.name for column in table.columns if isinstance(column.type, Integer)]
        sums = "".join(f",MAX({name}),SUM({name}%1000003)" for name in numbers)
        ((count, *values),) = await source.read(f"SELECT COUNT(*){sums} FROM {table.name}")
        counts[str(table.name)] = int(count)
        if table.name != "node_leases":
            facts.append([str(table.name), int(count), *(None if value is None else int(value) for value in values)])
        progress("looking at the source", i + 1, len(everything))
    return counts, hashlib.blake2b(msgspec.json.encode(facts), digest_size=16).hexdigest()


async def _copy_all(
    source: TransferConnection,
    target: TransferConnection,
    record: TransferRecord,
    counts: dict[str, int],
    batch_rows: int,
    progress: Progress,
) -> None:
    total = sum(counts.values())
    done = sum(counts[table.name] for table in tables() if table.name < record.stage)
    for table in tables():
        if table.name < record.stage:
            continue
        after = record.position if table.name == record.stage else None
        if after is not None:
            done += await _count_copied(target, table)
        columns, pages = columns_of(table), pages_of(table, batch_rows)
        async for rows in pages.all(source, after):
            async with transaction(target):
                await target.insert(table.name, columns, as_copied(table, rows))
                await record.write(str(table.name), rows[-1][: pages.key_width])
            done += len(rows)
            progress("copying", done, total)
    async with transaction(target):
        await target.set_sequence("conversations", "id")
        await record.write(_DONE, None)


async def _count_copied(target: TransferConnection, table: Table) -> int:
    ((count,),) = await target.read(f"SELECT COUNT(*) FROM {table.name}")
    return int(count)


async def analyze(target: TransferConnection) -> None:
    """Without it the first queries on tables that were just filled could take minutes."""
    await target.analyze([str(table.name) for table in tables()])


# -- the proof -------------------------------------------------------------------------------------------


async def _compare_all(
    source: TransferConnection,
    target: TransferConnection,
    counts: dict[str, int],
    batch_rows: int,
    report: CopyReport,
    progress: Progress,
) -> None:
    total, done = sum(counts.values()), 0
    for table in tables():
        seen = report.tables[str(table.name)] = TableReport()
        digest = hashlib.blake2b(digest_size=16)
        pages = pages_of(table, batch_rows)
        async for rows in pages.all(source):
            expected = as_copied(table, rows)
            found = await _between(target, table, pages, expected)
            if found != expected:
                _tell_differences(table, pages.key_width, expected, found, report)
            digest.update(msgspec.msgpack.encode(expected))
            seen.rows += len(rows)
            done += len(rows)
            progress("comparing", done, total)
        seen.checksum = digest.hexdigest()
        stored = await _count_copied(target, table)
        if stored != seen.rows:
            _add_difference(report, f"{table.name}: {stored} rows instead of {seen.rows}")


async def _between(target: TransferConnection, table: Table, pages: TablePages, expected: list[Row]) -> list[Row]:
    """Returns the target's rows from the first to the last of these keys."""
    width = pages.key_width
    key = columns_of(table)[:width]
    first = await target.read(
        f"SELECT {','.join(columns_of(table))} FROM {table.name} WHERE {' AND '.join(f'{name}=?' for name in key)}",
        *expected[0][:width],
    )
    if len(expected) == 1 or not first:
        return first
    return first + (await pages.read(target, expected[0][:width]))[: len(expected) - 1]


def _tell_differences(table: Table, width: int, expected: list[Row], found: list[Row], report: CopyReport) -> None:
    there = {row[:width]: row for row in found}
    columns = columns_of(table)
    for row in expected:
        other = there.get(row[:width])
        if other is None:
            _add_difference(report, f"{table.name} {_key(row, width)} is missing")
        elif other != row:
            wrong = [name for name, a, b in zip(columns, row, other, strict=True) if a != b]
            _add_difference(report, f"{table.name} {_key(row, width)} differs in {', '.join(wrong)}")


def _key(row: Row, width: int) -> str:
    return ":".join(str(value) for value in row[:width])


def _add_difference(report: CopyReport, text: str) -> None:
    report.difference_count += 1
    if len(report.differences) < LISTED:
        report.differences.append(text)
