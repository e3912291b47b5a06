"""`nexo audit`: what administrators, keys and commands have done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.core.audit import AuditEntry
from nexo.store.audit import SqlAudit

app = typer.Typer(add_completion=False)


@app.command()
def audit(
    target: Annotated[str, typer.Argument(metavar="[TARGET]", help="Only about this user, group, key or hook.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many entries at most.")] = 100,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show the audit log, newest first. Its lines are only ever added."""
    settings = load_config(config, data)

    async def work() -> list[AuditEntry]:
        async with opened(settings) as database:
            return await SqlAudit(database).read(0, limit, target)

    found = run(work())
    if as_json:
        print_json(found)
        return
    for entry in found:
        at = datetime.fromtimestamp(entry.at / 1000, UTC)
        detail = msgspec.json.encode(entry.detail).decode() if entry.detail else ""
        print_text(f"{at:%Y-%m-%d %H:%M:%S} UTC  {entry.actor}  {entry.act}  {entry.target}  {detail}".rstrip())
