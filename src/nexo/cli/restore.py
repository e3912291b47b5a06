"""`nexo restore`: a backup in place of the embedded database."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from nexo.cli.file_work import laws, print_proof, proof_fields, refuse_server, reported
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text
from nexo.cli.transfer import shown
from nexo.config import resolve_data_dir, resolve_store_url
from nexo.service.secret import FILE_NAME
from nexo.store.backup.restoring import RestoreReport, restore_backup

app = typer.Typer(add_completion=False)

Backup = Annotated[Path, typer.Argument(metavar="FILE", help="What `nexo backup` wrote, or a copy of nexo.db.")]


@app.command()
def restore(file: Backup, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Restore a backup of the embedded database. Stop the server first: a folder in use is refused.

    The backup is copied and read back before anything is changed. The database that was there is kept beside the new
    one as `nexo.db.before-TIME`, and so is its secret if that differs. A kill at any moment leaves the old database or
    the restored one, and the same command can be run again. An older schema is migrated at the next start.

    Exit code 0: restored; 1: refused; 2: wrong usage, or a file that cannot be used; 3: the backup is damaged;
    4: interrupted, run it again. After 1, 2 and 3 the old database is in its place.
    """
    loaded = load_config(config, data)
    url = resolve_store_url(loaded)
    refuse_server(url, "restore", lambda commands: commands.restore, as_json)
    folder = resolve_data_dir(loaded)
    begun = time.monotonic()
    with reported(url, f"{file} is damaged, nothing was changed"), shown() as progress:
        report = restore_backup(
            url,
            file,
            data_dir=folder,
            secret=None if loaded.auth.secret else folder / FILE_NAME,
            progress=progress,
            verify=laws(progress),
        )
    seconds = round(time.monotonic() - begun, 1)
    if as_json:
        print_json(
            {
                "store": url.redacted(),
                "backup": str(file),
                "made_at": report.made_at,
                "kept": None if report.kept is None else str(report.kept),
                "secret": report.secret_restored,
                "seconds": seconds,
            }
            | proof_fields(report.proven)
        )
        return
    print_text(f"Restored {file}{_made(report)} to {url.redacted()} in {seconds} s.")
    print_proof(report.proven)
    if report.kept is not None:
        print_text(f"The database that was there is kept as {report.kept}; remove it when it is not needed.")
    if not report.secret_restored:
        print_text("No signing secret was restored: sessions stay valid if the server has the secret of that time.")


def _made(report: RestoreReport) -> str:
    if not report.made_at:
        return ""
    return f" of {datetime.fromtimestamp(report.made_at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
