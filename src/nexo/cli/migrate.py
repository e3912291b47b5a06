"""`nexo migrate`: bring the database to the schema this version needs."""

from __future__ import annotations

import typer

from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.config import resolve_store_url
from nexo.store import migrate as store_migrate
from nexo.store.failures import startup_errors
from nexo.store.migration_names import between

app = typer.Typer(add_completion=False)


@app.command()
def migrate(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Bring the database to the schema this version needs; harmless when it has it already."""
    url = resolve_store_url(load_config(config, data))
    with startup_errors(url):
        before, after = run(store_migrate.upgrade(url))
    steps = between(before, after)
    if as_json:
        done = [step._asdict() for step in steps]
        print_json({"store": url.redacted(), "before": before, "after": after, "steps": done})
    elif not steps:
        print_text(f"The database {url.redacted()} is at {after} already; there was nothing to do.")
    else:
        print_text(f"The database {url.redacted()} was migrated from {before or 'empty'} to {after}:")
        for step in steps:
            print_text(f"  {step.name}  {step.title}")
