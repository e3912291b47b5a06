"""`nexo check`: is everything that is stored consistent?"""

from __future__ import annotations

from itertools import groupby
from typing import Annotated

import typer
from rich.progress import Progress

from nexo.cli import files
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.cli.output import progress as progress_console
from nexo.config import StoreUrl, resolve_store_url
from nexo.store.check import Finding, Report
from nexo.store.check import check as check_store
from nexo.store.failures import startup_errors

app = typer.Typer(add_completion=False)

EXIT_FINDINGS = 1


@app.command()
def check(
    repair: Annotated[
        bool, typer.Option("--repair", help="Set counters right; messages, cursors and spans are only reported.")
    ] = False,
    with_files: Annotated[
        bool, typer.Option("--files", help="Compare the storage of files with the database too.")
    ] = False,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check that the store is consistent: seqs without holes, unique keys, cursors in range, counters equal to a
    recount. A server may be running. Exit code 0: nothing is wrong (any more), 1: something is."""
    settings = load_config(config, data)
    url = resolve_store_url(settings)
    with (
        startup_errors(url),
        Progress(console=progress_console, disable=not progress_console.is_terminal, transient=True) as bar,
    ):
        task = bar.add_task("Checking", total=None)
        report = run(
            check_store(url, repair=repair, progress=lambda done, of: bar.update(task, completed=done, total=of))
        )
    in_files = run(files.check_now(settings)) if with_files else None
    if as_json:
        print_json(_as_json(url, report) | ({} if in_files is None else {"files": in_files}))
    else:
        _print_report(url, report)
        if in_files is not None:
            files.show(in_files, as_json=False)
    if report.left or (in_files is not None and files.is_damaged(in_files)):
        raise typer.Exit(EXIT_FINDINGS)


def _as_json(url: StoreUrl, report: Report) -> dict[str, object]:
    return {
        "store": url.redacted(),
        "conversations": report.conversations,
        "messages": report.messages,
        "counts": report.counts,
        "repaired": report.repaired,
        "left": report.left,
        "findings": report.findings,
    }


def _print_report(url: StoreUrl, report: Report) -> None:
    print_text(f"Checked {report.conversations} conversations with {report.messages} messages in {url.redacted()}.")
    if not report.counts:
        print_text("Nothing is wrong.")
        return
    for kind, listed in groupby(sorted(report.findings, key=_kind), key=_kind):
        count, repaired = report.counts[kind], report.repaired.get(kind, 0)
        print_text(f"\n{kind}: {count}{f', {repaired} repaired' if repaired else ''}")
        shown = [_line(finding) for finding in listed]
        for line in shown:
            print_text(f"  {line}")
        if count > len(shown):
            print_text(f"  … and {count - len(shown)} more")
    print_text(f"\n{sum(report.counts.values())} findings, {report.left} left.")


def _kind(finding: Finding) -> str:
    return finding.kind


def _line(finding: Finding) -> str:
    place = [
        finding.conversation_id or "",
        finding.user_id or "",
        "" if finding.seq is None else f"seq {finding.seq}",
        finding.detail,
    ]
    values = ""
    if finding.found is not None or finding.expected is not None:
        values = f": found {finding.found}, expected {finding.expected}"
    return " ".join(part for part in place if part) + values
