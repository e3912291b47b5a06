"""`nexo migrate`: bring the database to the schema this version needs."""

from __future__ import annotations

import typer
from alembic.script import ScriptDirectory

from nexo.cli.database import database_failures
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.config import resolve_store_url
from nexo.store import migrate as store_migrate
from nexo.store import migrations

app = typer.Typer(add_completion=False)


@app.command()
def migrate(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Bring the database to the schema this version needs; harmless when it is there already."""
    url = resolve_store_url(load_config(config, data))
    with database_failures(url):
        before, after = run(store_migrate.upgrade(url))
    steps = _steps(before, after)
    if as_json:
        done = [{"revision": revision, "title": title} for revision, title in steps]
        print_json({"store": url.redacted(), "before": before, "after": after, "steps": done})
    elif not steps:
        print_text(f"The database {url.redacted()} is at {after} already; nothing to do.")
    else:
        print_text(f"The database {url.redacted()} went from {before or 'empty'} to {after}:")
        for revision, title in steps:
            print_text(f"  {revision}  {title}")


def _steps(before: str | None, after: str) -> list[tuple[str, str]]:
    """The migrations that lead from one revision to the other, in the order they ran."""
    directory = ScriptDirectory(migrations.__path__[0])
    return [(script.revision, script.doc) for script in directory.iterate_revisions(after, before or "base")][::-1]
