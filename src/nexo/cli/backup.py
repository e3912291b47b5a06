"""`nexo backup`: the embedded database and its secret in one file, while the server runs."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from nexo import __version__
from nexo.cli.file_work import laws, print_proof, proof_fields, refuse_server, reported
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text
from nexo.cli.transfer import shown
from nexo.config import resolve_data_dir, resolve_store_url
from nexo.ids import now_ms
from nexo.service.secret import FILE_NAME, load_secret
from nexo.store.backup.writing import write_backup

app = typer.Typer(add_completion=False)

Target = Annotated[
    Path, typer.Argument(metavar="TARGET", help="A file that does not exist, or a folder: a name with the time.")
]


@app.command()
def backup(target: Target, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Back up the embedded database, also while the server runs and writes.

    The backup is one file that only its owner can read: everything stored as it was at one moment, and the secret of
    the data folder that signs sessions. It is read back before it gets its name; what `nexo check` finds in it is
    printed, and does not prevent it. With a server database the lines for that server's own tools are printed instead.

    Exit code 0: written and proven; 1: refused; 2: wrong usage, or a file that cannot be used; 3: the database is
    damaged, no backup was written; 4: interrupted, no backup was written.
    """
    loaded = load_config(config, data)
    url = resolve_store_url(loaded)
    refuse_server(url, "back up", lambda commands: commands.backup, as_json)
    notes = {"version": __version__, "made_at": str(now_ms())}
    if not loaded.auth.secret and (resolve_data_dir(loaded) / FILE_NAME).exists():
        notes["secret"] = load_secret(loaded)
    begun = time.monotonic()
    with reported(url, f"{url.path} is damaged, no backup was written"), shown() as progress:
        report = write_backup(url, target, notes, progress=progress, verify=laws(progress))
    seconds = round(time.monotonic() - begun, 1)
    if as_json:
        print_json(
            {
                "store": url.redacted(),
                "backup": str(report.path),
                "bytes": report.size,
                "secret": report.has_secret,
                "seconds": seconds,
            }
            | proof_fields(report.proven)
        )
        return
    print_text(f"Backed up {url.redacted()} to {report.path} in {seconds} s ({report.size:,} bytes).")
    print_proof(report.proven)
    print_text(f"Only its owner can read it. Restore it with: nexo restore {shlex.quote(str(report.path))}")
    if not report.has_secret:
        print_text("There is no signing secret in the data folder to back up: keep the configured auth.secret safe.")
