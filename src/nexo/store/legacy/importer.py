"""The import from beginning to end: survey, users, messages, conversations with their members, verification.

Each batch is one transaction that also records how far it got. After a kill at any point, the next run surveys the
source again, finds it unchanged, and continues after the last commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path

from msgspec import Struct, field

from nexo.config import StoreUrl
from nexo.store.engines.transfer_connection import TransferConnection
from nexo.store.legacy import users
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.members import COLUMNS, ConversationBuilder, slices
from nexo.store.legacy.messages import COLUMNS as MESSAGE_COLUMNS
from nexo.store.legacy.messages import MENTION_COLUMNS, MessageRules
from nexo.store.legacy.survey import Survey, survey
from nexo.store.legacy.tables import MESSAGES, USERS, LegacyDatabase
from nexo.store.legacy.verification import Verification, verify
from nexo.store.transfer.connections import open_source, open_target, transaction
from nexo.store.transfer.copy import BATCH_ROWS, Progress, analyze, broken_laws
from nexo.store.transfer.folder_locks import lock_folders
from nexo.store.transfer.progress_record import TABLE, TransferRecord, TransferRefused

RECALLED = 4  # t_message.status
_USERS, _STRANGERS, _MESSAGES, _CHATS, _DONE = "1 users", "2 strangers", "3 messages", "4 conversations", "5 done"


class ImportOptions(Struct):
    zone: tzinfo = UTC
    recalled_status: int = RECALLED
    renames: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    accept: bool = False
    restart: bool = False
    batch_rows: int = BATCH_ROWS
    kind: str = "import-legacy"
    notes: list[tuple[str, str, int]] = field(default_factory=list)  # kind, place, count: issues that are known before


class ImportReport(Struct):
    resumed: bool = False
    users: int = 0
    conversations: int = 0
    messages: int = 0
    recalls: int = 0
    issues: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    difference_count: int = 0
    findings: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not self.difference_count and not self.findings


class NotAccepted(TransferRefused):
    """The operator has to decide first; nothing was written."""

    def __init__(self, decisions: Mapping[str, int], path: Path) -> None:
        self.decisions = decisions
        found = ", ".join(f"{kind} {count}" for kind, count in decisions.items())
        super().__init__(
            f"not everything can come along as it is ({found}): {path} has a line for each, with what would become "
            "of it. Change the source, or choose user ids with --rename, or add --accept; nothing was written"
        )


async def import_legacy(
    source_url: StoreUrl, target_url: StoreUrl, report_path: Path, options: ImportOptions, progress: Progress
) -> ImportReport:
    rules = MessageRules(options.zone, options.recalled_status)
    with lock_folders(source_url, target_url), Issues(report_path) as issues:
        async with open_source(source_url) as connection, open_target(target_url) as target:
            legacy = await LegacyDatabase.open(connection, options.columns)
            position = await _position(target, options.kind)
            for kind, place, count in options.notes:
                issues.add(kind, place, count=count)
            found = await survey(legacy, issues, rules, options.renames, position, options.batch_rows, progress)
            if issues.decisions and not options.accept:
                raise NotAccepted(issues.decisions, report_path)
            record = TransferRecord(target, target_url, options.kind, source_url.redacted())
            await record.open(found.digest.hexdigest(), restart=options.restart)
            report = ImportReport(record.resumed, len(found.users), len(found.chats.all), found.messages, found.recalls)
            await _write_users(legacy, target, record, found, rules, options.batch_rows, progress)
            await _write_messages(legacy, target, record, found, rules, options.batch_rows, progress)
            await _write_chats(legacy, target, record, found, rules, progress)
            await analyze(target)
            verified = await verify(legacy, target, found, rules, options.batch_rows, progress)
            _take(report, verified, issues)
            if not report.difference_count:
                report.findings = await broken_laws(target_url, progress)
            if report.good:
                await record.close()
    return report


def _take(report: ImportReport, verified: Verification, issues: Issues) -> None:
    report.issues = dict(issues.counts)
    report.differences, report.difference_count = verified.differences, verified.count


async def _position(target: TransferConnection, kind: str) -> int:
    """Returns the last message that an earlier run stored; 0 without one."""
    if not await target.columns(TABLE):
        return 0
    found = await target.read(f"SELECT position FROM {TABLE} WHERE kind=? AND stage='{_MESSAGES}'", kind)
    return int(found[0][0].strip("[]")) if found and found[0][0] else 0


async def _write_users(
    legacy: LegacyDatabase,
    target: TransferConnection,
    record: TransferRecord,
    found: Survey,
    rules: MessageRules,
    batch_rows: int,
    progress: Progress,
) -> None:
    total = len(found.users)
    done = 0
    if record.stage <= _USERS and legacy.has(USERS):
        after = record.position[0] if record.position else None
        async for page in legacy.pages(USERS, batch_rows, after):
            rows = [users.user_row(row, found.users.find(row[0]), rules.zone) for row in page]
            async with transaction(target):
                await target.insert("users", users.COLUMNS, rows)
                await record.write(_USERS, page[-1][:1])
            done += len(page)
            progress("importing users", done, total)
    if record.stage <= _STRANGERS:
        first = record.position[0] if record.stage == _STRANGERS and record.position else 0
        for start in range(first, len(found.users.strangers), batch_rows):
            some = found.users.strangers[start : start + batch_rows]
            async with transaction(target):
                await target.insert("users", users.COLUMNS, [users.stranger_row(user_id) for user_id in some])
                await record.write(_STRANGERS, [start + len(some)])
        progress("importing users", total, total)


async def _write_messages(
    legacy: LegacyDatabase,
    target: TransferConnection,
    record: TransferRecord,
    found: Survey,
    rules: MessageRules,
    batch_rows: int,
    progress: Progress,
) -> None:
    if record.stage > _MESSAGES:
        return
    after = record.position[0] if record.stage == _MESSAGES and record.position else None
    converter = found.converter(Issues(), rules)
    if after is not None:
        found.chats.restore(found.at_position)
        converter.recalls = found.recalls_at_position
    done = sum(chat.count for chat in found.chats.all)
    async for page in legacy.pages(MESSAGES, batch_rows, after):
        made = converter.convert(page, found.first_event_id)
        async with transaction(target):
            await target.insert("messages", MESSAGE_COLUMNS, made.messages)
            if made.mentions:
                await target.insert("mentions", MENTION_COLUMNS, made.mentions)
            await record.write(_MESSAGES, page[-1][:1])
        done += len(page)
        progress("importing messages", done, found.messages)


async def _write_chats(
    legacy: LegacyDatabase,
    target: TransferConnection,
    record: TransferRecord,
    found: Survey,
    rules: MessageRules,
    progress: Progress,
) -> None:
    if record.stage > _CHATS:
        return
    after = record.position[0] if record.stage == _CHATS and record.position else 0
    builder = ConversationBuilder(legacy, target, found.users, rules, found.silent_event_ids())
    for piece in slices(found.chats.all, after):
        made = await builder.build(piece)
        async with transaction(target):
            for table, rows in made._asdict().items():
                if rows:
                    await target.insert(table, COLUMNS[table], rows)
            await record.write(_CHATS, [piece[-1].conv])
        progress("importing conversations", piece[-1].conv, len(found.chats.all))
    async with transaction(target):
        await target.set_sequence("conversations", "id")
        await record.write(_DONE, None)
