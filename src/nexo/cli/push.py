"""`nexo push`: devices that are registered for push, and test notifications, also while servers run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer
from rich.table import Table

from nexo.assembly.push import make_providers
from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, console, load_config, print_json, print_text, run
from nexo.config import Config
from nexo.core.push import PushTarget, PushTrial
from nexo.push.trial import try_out
from nexo.store.journal.sql_journal import SqlJournal
from nexo.store.push.sql_push import SqlPush

app = typer.Typer(no_args_is_help=True, add_completion=False)

WhichUser = Annotated[str, typer.Argument(metavar="USER", help="The id of the user.", show_default=False)]


@app.command("test")
def try_user(user: WhichUser, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Send a test notification to all devices of a user from this machine, and show what their services answer."""
    settings = load_config(config, data)

    async def work() -> list[PushTrial]:
        async with _push(settings) as store:
            providers = await make_providers(settings, store.keep_key)
            try:
                return await try_out(store, providers, user)
            finally:
                for provider in providers:
                    provider.close()

    trials = run(work())
    if as_json:
        print_json(trials)
    elif not trials:
        print_text(f"{user} has no device that is registered for push.")
    else:
        for trial in trials:
            word = "Taken" if trial.sent else "Not taken"
            print_text(f"{word}: {trial.kind}, device {trial.device_id}: {trial.detail}")
    if not trials or not all(trial.sent for trial in trials):
        raise typer.Exit(1)


@app.command("list")
def list_devices(user: WhichUser, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """List the devices of a user that are registered for push, without their tokens."""
    settings = load_config(config, data)

    async def work() -> list[PushTarget]:
        async with _push(settings) as store:
            return await store.targets_of([user])

    found = run(work())
    if as_json:
        print_json([{"kind": one.kind, "device_id": one.device_id, "lang": one.lang} for one in found])
        return
    table = Table("kind", "device", "language")
    for one in found:
        table.add_row(one.kind, one.device_id, one.lang)
    console.print(table)


@asynccontextmanager
async def _push(config: Config) -> AsyncIterator[SqlPush]:
    async with opened(config) as database:
        hot = database.kind.make_hot_sql()
        yield SqlPush(database, hot, SqlJournal(database, hot))
