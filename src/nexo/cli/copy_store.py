"""`nexo copy-store`: a whole store from one database to another."""

from __future__ import annotations

import shlex
import time
from typing import Annotated

import typer

from nexo.cli.output import Json, print_json, print_text
from nexo.cli.transfer import EXIT_DIFFERENT, parse_url, run_transfer, shown
from nexo.config import StoreUrl
from nexo.store.transfer.copy import BATCH_ROWS, CopyReport, copy_store

app = typer.Typer(add_completion=False)

SourceUrl = Annotated[
    str,
    typer.Option("--from", metavar="URL", help="The store to copy."),
]
TargetUrl = Annotated[
    str,
    typer.Option("--to", metavar="URL", help="Empty, or half a copy."),
]
Batch = Annotated[int, typer.Option("--batch", min=1, max=100_000, help="Rows per transaction.")]
Restart = Annotated[bool, typer.Option("--restart", help="Empty a target with an unfinished copy; begin anew.")]


@app.command()
def copy(
    source: SourceUrl, target: TargetUrl, batch: Batch = BATCH_ROWS, restart: Restart = False, as_json: Json = False
) -> None:
    """Copy a store to another database, of any engine: sqlite:////path/nexo.db, mysql://…, postgresql://…

    Stop every server first. If it is interrupted, the same command continues where it stopped. At the end every row is
    compared and the laws of `nexo check` are asked. `env:NAME` instead of a URL takes it from an environment
    variable, where `ps` does not show its password.

    Exit code 0: copied and proven; 1: refused; 2: wrong usage or a database that cannot be used; 3: the copy
    differs, do not use it; 4: interrupted, run it again.
    """
    source_url, target_url = parse_url(source, "--from"), parse_url(target, "--to")
    begun = time.monotonic()
    with shown() as progress:
        work = copy_store(source_url, target_url, batch_rows=batch, restart=restart, progress=progress)
        report = run_transfer(work, source_url, target_url)
    seconds = round(time.monotonic() - begun, 1)
    if as_json:
        print_json(
            {"source": source_url.redacted(), "target": target_url.redacted(), "seconds": seconds, "good": report.good}
            | {name: getattr(report, name) for name in report.__struct_fields__}
        )
    else:
        _print_report(source_url, target_url, report, seconds)
    if not report.good:
        raise typer.Exit(EXIT_DIFFERENT)


def _print_report(source: StoreUrl, target: StoreUrl, report: CopyReport, seconds: float) -> None:
    again = " (begun earlier, finished now)" if report.resumed else ""
    print_text(f"Copied {source.redacted()} to {target.redacted()} in {seconds} s{again}:")
    for name, table in report.tables.items():
        print_text(f"  {name:<16} {table.rows:>12,} rows  {table.checksum}")
    if report.difference_count:
        print_text(f"\nThe copy differs in {report.difference_count} places; do not use it:")
        for text in report.differences:
            print_text(f"  {text}")
        print_text("Run the command again with --restart; if it differs again, the target's disk or memory fails.")
        return
    print_text("Every row is the same on both sides.")
    if report.findings:
        found = ", ".join(f"{kind} {count}" for kind, count in report.findings.items())
        print_text(f"`nexo check` finds what was wrong in the source already: {found}")
        return
    print_text("`nexo check` finds nothing wrong.\n")
    print_text(secret_hint(source, target))


def secret_hint(source: StoreUrl, target: StoreUrl) -> str:
    """Access tokens are signed; the store does not hold the key."""
    if source.is_embedded and not target.is_embedded:
        return (
            "Clients stay signed in if the new servers have the same signing secret. It is not in the database; take "
            f'it along:\n  export NEXO_AUTH__SECRET="$(cat {_quoted(source)})"\n'
            "(or the auth.secret that the old server was configured with)."
        )
    if source.is_embedded:
        return (
            "Clients stay signed in if the signing secret goes along. It is not in the database:\n"
            f"  cp -p {_quoted(source)} {_quoted(target)}\n"
            "(unless auth.secret is configured)."
        )
    return "Clients stay signed in if the new servers are given the same auth.secret as the old ones."


def _quoted(url: StoreUrl) -> str:
    """The file beside an embedded database that has the secret, for a shell."""
    return shlex.quote(str(url.path.absolute().parent / "secret"))
