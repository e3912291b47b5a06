"""`nexo journal`: how much of the journal is kept, and how far its consumers are."""

from __future__ import annotations

import typer
from rich.table import Table

from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, console, load_config, print_json, print_text, run
from nexo.core.journal import ConsumerState, JournalState
from nexo.store.journal.sql_journal import SqlJournal

app = typer.Typer(add_completion=False)


@app.command()
def journal(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Show how much of the journal is kept, and for each consumer how far it is, how many rows and seconds it lags
    behind, and which instance runs it. A row is one transaction with a change. Servers may be running."""
    settings = load_config(config, data)

    async def work() -> JournalState:
        async with opened(settings) as database:
            return await SqlJournal(database, database.kind.make_hot_sql()).state()

    state = run(work())
    if as_json:
        print_json(_as_json(state))
    else:
        _print(state)


def _as_json(state: JournalState) -> dict[str, object]:
    return {
        "newest": state.newest,
        "newest_at": state.newest_at,
        "oldest_at": state.oldest_at,
        "trimmed_to": state.trimmed_to,
        "rows": state.newest - state.trimmed_to,
        "consumers": [_consumer(one) for one in state.consumers],
    }


def _consumer(one: ConsumerState) -> dict[str, object]:
    return {
        "name": one.name,
        "position": one.place.row,
        "part": one.place.part,
        "lag_rows": one.lag_rows,
        "lag_s": one.lag_ms / 1000,
        "instance": one.owner or None,
        "updated_at": one.updated_at,
    }


def _print(state: JournalState) -> None:
    if not state.newest:
        print_text("The journal is empty.")
    else:
        age_h = (state.now_ms - state.oldest_at) / 3_600_000
        print_text(
            f"Rows {state.trimmed_to + 1} to {state.newest} are kept; the oldest was written {age_h:.1f} hours ago."
        )
    if not state.consumers:
        print_text("There are no consumers.")
        return
    table = Table("consumer", "position", "rows behind", "seconds behind", "instance")
    for one in state.consumers:
        lag_s = f"{one.lag_ms / 1000:.1f}"
        table.add_row(one.name, str(one.place.row), str(one.lag_rows), lag_s, one.owner or "none")
    console.print(table)
