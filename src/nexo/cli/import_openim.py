"""`nexo import-openim`: an export of OpenIM's MongoDB becomes a Nexo store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from nexo.cli.copy_store import Restart
from nexo.cli.import_legacy import TargetUrl, print_report, read_renames
from nexo.cli.output import Json, print_json
from nexo.cli.transfer import EXIT_DIFFERENT, parse_url, run_transfer, shown
from nexo.openim.export.staging import RECALLED, check_export, digest_of, fill
from nexo.store.engines.sqlite.import_tables import made_tables, url_of
from nexo.store.legacy.importer import ImportOptions, import_legacy
from nexo.store.transfer.copy import BATCH_ROWS

app = typer.Typer(add_completion=False)


@app.command("import")
def import_(
    source: Annotated[
        Path,
        typer.Option("--from", metavar="FOLDER", help="The export: user.bson, msg.bson … or .json.", exists=True),
    ],
    target: TargetUrl,
    report: Annotated[
        Path, typer.Option("--report", metavar="FILE", help="What does not come along as it was, line by line.")
    ] = Path("nexo-import-report.jsonl"),
    work: Annotated[
        Path, typer.Option("--work", metavar="FILE", help="A file for the export in tables, deleted at the end.")
    ] = Path("nexo-import-openim/tables.db"),
    accept: Annotated[bool, typer.Option("--accept", help="Continue with the changes that the report lists.")] = False,
    rename: Annotated[
        Path | None, typer.Option("--rename", metavar="FILE", help='New user ids: {"old id": "new id"} in JSON.')
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, max=100_000, help="Rows per transaction.")] = BATCH_ROWS,
    restart: Restart = False,
    as_json: Json = False,
) -> None:
    """Import users, groups, conversations and messages out of an export of OpenIM's MongoDB into an empty database.

    The export is the folder of `mongodump --db openim_v3`, or what `bsondump` makes of its files (a document per
    line). Messages keep their order, their client ids and what OpenIM's clients read of them; read positions come
    along. Killed half-way, the same command continues where it stopped.

    Exit code 0: imported and proven; 1: refused (see the report); 2: wrong usage or a database that cannot be
    used; 3: the import differs, do not use it; 4: interrupted, run it again.
    """
    target_url = parse_url(target, "--to")
    begun = time.monotonic()
    check_export(source)
    work.parent.mkdir(parents=True, exist_ok=True)
    with shown() as progress:
        notes = made_tables(work, digest_of(source), lambda tables: fill(source, tables, progress))
        options = ImportOptions(
            recalled_status=RECALLED,
            renames=read_renames(rename),
            accept=accept,
            restart=restart,
            batch_rows=batch,
            kind="import-openim",
            notes=notes,
        )
        done = run_transfer(import_legacy(url_of(work), target_url, report, options, progress), target_url)
    seconds = round(time.monotonic() - begun, 1)
    if done.good:
        work.unlink(missing_ok=True)  # it holds messages
    if as_json:
        outcome = {"source": str(source), "target": target_url.redacted(), "seconds": seconds, "good": done.good}
        values = {name: getattr(done, name) for name in done.__struct_fields__}
        print_json(outcome | {"report": str(report)} | values)
    else:
        print_report(str(source), target_url, report, done, seconds)
    if not done.good:
        raise typer.Exit(EXIT_DIFFERENT)
