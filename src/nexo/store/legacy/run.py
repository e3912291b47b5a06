"""The import from beginning to end: survey, users, messages, conversations with their members, proof.

Each batch is one transaction that also says how far it got. Killed anywhere, the next run surveys the source
again, finds it unchanged, and goes on after the last commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path

from msgspec import Struct, field

from nexo.config import StoreUrl
from nexo.store.legacy import people as users
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.members import COLUMNS, Finisher, slices
from nexo.store.legacy.messages import COLUMNS as MESSAGE_COLUMNS
from nexo.store.legacy.messages import MENTION_COLUMNS, Rules
from nexo.store.legacy.proof import Proof, prove
from nexo.store.legacy.survey import Survey, survey
from nexo.store.legacy.tables import MESSAGES, USERS, Legacy
from nexo.store.transfer.copy import BATCH_ROWS, Progress, analyze, broken_laws, set_sequence
from nexo.store.transfer.links import Link, source_link, target_link, transaction
from nexo.store.transfer.places import held
from nexo.store.transfer.record import TABLE, Record, Refused

RECALLED = 4  # t_message.status
_USERS, _STRANGERS, _MESSAGES, _CHATS, _DONE = "1 users", "2 strangers", "3 messages", "4 conversations", "5 done"


class Options(Struct):
    zone: tzinfo = UTC
    recalled_status: int = RECALLED
    renames: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    accept: bool = False
    restart: bool = False
    batch_rows: int = BATCH_ROWS


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


class NotAccepted(Refused):
    """There is something to decide first; nothing was written."""

    def __init__(self, decisions: Mapping[str, int], path: Path) -> None:
        self.decisions = decisions
        found = ", ".join(f"{kind} {count}" for kind, count in decisions.items())
        super().__init__(
            f"not everything can come along as it is ({found}): {path} has a line for each, with what would become "
            "of it. Change the source, or choose user ids with --rename, or add --accept; nothing was written"
        )


async def import_legacy(
    source_url: StoreUrl, target_url: StoreUrl, report_path: Path, options: Options, progress: Progress
) -> ImportReport:
    rules = Rules(options.zone, options.recalled_status)
    with held(source_url, target_url), Issues(report_path) as issues:
        async with source_link(source_url) as link, target_link(target_url) as target:
            legacy = await Legacy.open(link, options.columns)
            position = await _position(target)
            found = await survey(legacy, issues, rules, options.renames, position, options.batch_rows, progress)
            if issues.decisions and not options.accept:
                raise NotAccepted(issues.decisions, report_path)
            record = Record(target, target_url, "import-legacy", source_url.redacted())
            await record.open(found.digest.hexdigest(), restart=options.restart)
            report = ImportReport(
                record.resumed, len(found.people), len(found.chats.all), found.messages, found.recalls
            )
            await _write_users(legacy, target, record, found, rules, options.batch_rows, progress)
            await _write_messages(legacy, target, record, found, rules, options.batch_rows, progress)
            await _write_chats(legacy, target, record, found, rules, progress)
            await analyze(target)
            proof = await prove(legacy, target, found, rules, options.batch_rows, progress)
            _take(report, proof, issues)
            if not report.difference_count:
                report.findings = await broken_laws(target_url, progress)
            if report.good:
                await record.close()
    return report


def _take(report: ImportReport, proof: Proof, issues: Issues) -> None:
    report.issues = dict(issues.counts)
    report.differences, report.difference_count = proof.differences, proof.count


async def _position(target: Link) -> int:
    """The last message that an earlier run stored; 0 without one."""
    if not await target.columns(TABLE):
        return 0
    found = await target.read(f"SELECT position FROM {TABLE} WHERE kind='import-legacy' AND stage='{_MESSAGES}'")
    return int(found[0][0].strip("[]")) if found and found[0][0] else 0


async def _write_users(
    legacy: Legacy, target: Link, record: Record, found: Survey, rules: Rules, batch_rows: int, progress: Progress
) -> None:
    total = len(found.people)
    done = 0
    if record.stage <= _USERS and legacy.has(USERS):
        after = record.position[0] if record.position else None
        async for page in legacy.pages(USERS, batch_rows, after):
            rows = [users.user_row(row, found.people.find(row[0]), rules.zone) for row in page]
            async with transaction(target):
                await target.insert("users", users.COLUMNS, rows)
                await record.write(_USERS, page[-1][:1])
            done += len(page)
            progress("importing users", done, total)
    if record.stage <= _STRANGERS:
        first = record.position[0] if record.stage == _STRANGERS and record.position else 0
        for start in range(first, len(found.people.strangers), batch_rows):
            some = found.people.strangers[start : start + batch_rows]
            async with transaction(target):
                await target.insert("users", users.COLUMNS, [users.stranger_row(user_id) for user_id in some])
                await record.write(_STRANGERS, [start + len(some)])
        progress("importing users", total, total)


async def _write_messages(
    legacy: Legacy, target: Link, record: Record, found: Survey, rules: Rules, batch_rows: int, progress: Progress
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
    legacy: Legacy, target: Link, record: Record, found: Survey, rules: Rules, progress: Progress
) -> None:
    if record.stage > _CHATS:
        return
    after = record.position[0] if record.stage == _CHATS and record.position else 0
    finisher = Finisher(legacy, target, found.people, rules, found.silent_event_ids())
    for piece in slices(found.chats.all, after):
        made = await finisher.finish(piece)
        async with transaction(target):
            for table, rows in made._asdict().items():
                if rows:
                    await target.insert(table, COLUMNS[table], rows)
            await record.write(_CHATS, [piece[-1].conv])
        progress("importing conversations", piece[-1].conv, len(found.chats.all))
    async with transaction(target):
        await set_sequence(target, "conversations", "id")
        await record.write(_DONE, None)
