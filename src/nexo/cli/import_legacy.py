"""`nexo import-legacy`: a chat database with t_* tables becomes a Nexo store."""

from __future__ import annotations

import time
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import msgspec
import typer

from nexo.cli.copy_store import Restart
from nexo.cli.output import Json, print_json, print_text
from nexo.cli.transfer import EXIT_DIFFERENT, parse_url, run_transfer, shown
from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.legacy.importer import RECALLED, ImportOptions, ImportReport, import_legacy
from nexo.store.legacy.issues import KINDS
from nexo.store.transfer.copy import BATCH_ROWS

app = typer.Typer(add_completion=False)

SourceUrl = Annotated[
    str,
    typer.Option("--from", metavar="URL", help="The old database."),
]
TargetUrl = Annotated[
    str,
    typer.Option("--to", metavar="URL", help="Empty, or half an import."),
]


@app.command("import")
def import_(
    source: SourceUrl,
    target: TargetUrl,
    report: Annotated[
        Path, typer.Option("--report", metavar="FILE", help="What does not come along as it was, line by line.")
    ] = Path("nexo-import-report.jsonl"),
    accept: Annotated[bool, typer.Option("--accept", help="Continue with the changes that the report lists.")] = False,
    rename: Annotated[
        Path | None, typer.Option("--rename", metavar="FILE", help='New user ids: {"old id": "new id"} in JSON.')
    ] = None,
    timezone: Annotated[str, typer.Option("--timezone", help="The zone of times that have none.")] = "UTC",
    recalled_status: Annotated[
        int, typer.Option("--recalled-status", help="t_message.status of a recalled message.")
    ] = RECALLED,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="TABLE.COLUMN=NAME", help="What a column is called in the old database."),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, max=100_000, help="Rows per transaction.")] = BATCH_ROWS,
    restart: Restart = False,
    as_json: Json = False,
) -> None:
    """Import a database with t_* tables, in which cursors are message ids, into an empty database.

    Message ids stay; seqs are row numbers in the order of ids; cursors become seqs. Killed half-way, the same
    command continues where it stopped.

    Exit code 0: imported and proven; 1: refused (see the report); 2: wrong usage or a database that cannot be
    used; 3: the import differs, do not use it; 4: interrupted, run it again.
    """
    source_url, target_url = parse_url(source, "--from"), parse_url(target, "--to")
    options = ImportOptions(
        zone=_zone(timezone),
        recalled_status=recalled_status,
        renames=read_renames(rename),
        columns=_columns(column or []),
        accept=accept,
        restart=restart,
        batch_rows=batch,
    )
    begun = time.monotonic()
    with shown() as progress:
        done = run_transfer(import_legacy(source_url, target_url, report, options, progress), source_url, target_url)
    seconds = round(time.monotonic() - begun, 1)
    if as_json:
        print_json(
            {
                "source": source_url.redacted(),
                "target": target_url.redacted(),
                "seconds": seconds,
                "good": done.good,
                "report": str(report),
            }
            | {name: getattr(done, name) for name in done.__struct_fields__}
        )
    else:
        print_report(source_url.redacted(), target_url, report, done, seconds)
    if not done.good:
        raise typer.Exit(EXIT_DIFFERENT)


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise StartupError(f"--timezone: there is no time zone {name}; write Asia/Shanghai, for example") from None


def read_renames(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError) as error:
        raise StartupError(f'--rename: {path} must hold {{"old id": "new id", …}} in JSON: {error}') from error


def _columns(given: list[str]) -> dict[str, str]:
    columns = {}
    for text in given:
        place, equals, name = text.partition("=")
        if not equals or "." not in place or not name:
            raise StartupError(f"--column: write TABLE.COLUMN=NAME, not {text}")
        columns[place] = name
    return columns


def print_report(source: str, target: StoreUrl, path: Path, done: ImportReport, seconds: float) -> None:
    again = " (begun earlier, finished now)" if done.resumed else ""
    print_text(f"Imported {source} into {target.redacted()} in {seconds} s{again}:")
    print_text(f"  {done.users:,} users, {done.conversations:,} conversations, {done.messages:,} messages")
    for kind, count in done.issues.items():
        print_text(f"  {kind}: {count:,} ({KINDS[kind][1]})")
    print_text(f"The report is in {path}; it can hold messages, so keep it to yourself.")
    if done.difference_count:
        print_text(f"\nThe import differs in {done.difference_count} places; do not use it:")
        for text in done.differences:
            print_text(f"  {text}")
    elif done.findings:
        found = ", ".join(f"{kind} {count}" for kind, count in done.findings.items())
        print_text(f"`nexo check` finds: {found}. Do not use it.")
    else:
        print_text("Every message and every member equals the source; `nexo check` finds nothing wrong.")
        if "password_not_usable" in done.issues:
            print_text("Users without a password that Nexo can check get one with `nexo user passwd USER`.")
