"""`nexo hook`: webhooks, also while servers run; they notice within 5 s."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, console, load_config, print_json, print_text, run, split_values
from nexo.config import Config
from nexo.core.hooks import Hook
from nexo.hooks.posting import HookTesting
from nexo.service.hooks import HookAdmin, HookTrial
from nexo.store.hooks import SqlHooks
from nexo.store.journal.sql_journal import SqlJournal

app = typer.Typer(no_args_is_help=True, add_completion=False)

ACTOR = "command line"
WhichHook = Annotated[str, typer.Argument(help="Its name or id.", show_default=False)]


@app.command()
def add(
    url: Annotated[str, typer.Argument(help="Where events are posted to: http or https.", show_default=False)],
    types: Annotated[
        list[str] | None, typer.Option(help="Only events of these types, repeated or separated by commas.")
    ] = None,
    conversations: Annotated[
        list[str] | None, typer.Option(help="Only these conversations; * stands for any characters: sg_*.")
    ] = None,
    name: Annotated[str, typer.Option(help="Its name. Without it: its id.")] = "",
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Add a webhook, which gets what is committed from now on, and print the secret that signs its requests."""
    settings = load_config(config, data)

    async def work() -> tuple[Hook, str]:
        async with _hooks(settings) as hooks:
            return await hooks.add(url, split_values(types), split_values(conversations), name, ACTOR)

    _print_secret(*run(work()), as_json)


@app.command("list")
def list_hooks(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """List all webhooks and their state; `nexo journal` shows how far each is."""
    settings = load_config(config, data)

    async def work() -> list[Hook]:
        async with _hooks(settings) as hooks:
            return await hooks.all()

    found = run(work())
    if as_json:
        print_json([_as_json(hook) for hook in found])
        return
    table = Table("id", "name", "url", "types", "conversations", "state", "failing since", "reason")
    for hook in found:
        since = f"{datetime.fromtimestamp(hook.failing_since / 1000, UTC):%Y-%m-%d %H:%M}" if hook.failing_since else ""
        types = ", ".join(hook.types) or "all"
        patterns = ", ".join(hook.conversations) or "all"
        table.add_row(hook.hook_id, hook.name, hook.url, types, patterns, hook.status.word, since, hook.reason)
    console.print(table)


@app.command("test")
def try_out(hook: WhichHook, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Send a test event from this machine, once, and show the answer."""
    settings = load_config(config, data)

    async def work() -> HookTrial:
        async with _hooks(settings) as hooks:
            return await hooks.test(hook)

    trial = run(work())
    if as_json:
        print_json(trial)
    else:
        print_text(f"{'Taken' if trial.taken else 'Not taken'} after {trial.ms} ms: {trial.detail}")
    if not trial.taken:
        raise typer.Exit(1)


@app.command()
def pause(hook: WhichHook, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Stop a webhook; it keeps its place for as long as the journal is kept."""
    settings = load_config(config, data)

    async def work() -> Hook:
        async with _hooks(settings) as hooks:
            return await hooks.pause(hook, ACTOR)

    _print_done(run(work()), "Paused", as_json)


@app.command()
def resume(hook: WhichHook, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Continue a webhook where it was."""
    settings = load_config(config, data)

    async def work() -> Hook:
        async with _hooks(settings) as hooks:
            return await hooks.resume(hook, ACTOR)

    _print_done(run(work()), "Resumed", as_json)


@app.command()
def replay(
    hook: WhichHook,
    start: Annotated[
        str,
        typer.Option("--from", help="A cursor, begin, a time (2026-05-01T12:00) or an age (2h).", show_default=False),
    ],
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Deliver again what was committed since then."""
    settings = load_config(config, data)

    async def work() -> Hook:
        async with _hooks(settings) as hooks:
            return await hooks.replay(hook, start, ACTOR)

    _print_done(run(work()), "Replaying", as_json)


@app.command()
def rotate(hook: WhichHook, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Make a new secret and print it; the old one signs too for `hooks.rotation_h`."""
    settings = load_config(config, data)

    async def work() -> tuple[Hook, str]:
        async with _hooks(settings) as hooks:
            return await hooks.rotate(hook, ACTOR)

    _print_secret(*run(work()), as_json)


@app.command()
def remove(hook: WhichHook, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Remove a webhook and its place in the journal."""
    settings = load_config(config, data)

    async def work() -> Hook:
        async with _hooks(settings) as hooks:
            return await hooks.remove(hook, ACTOR)

    _print_done(run(work()), "Removed", as_json)


@asynccontextmanager
async def _hooks(config: Config) -> AsyncIterator[HookAdmin]:
    async with opened(config) as database:
        store = SqlHooks(database, SqlJournal(database, database.kind.make_hot_sql()))
        yield HookAdmin(store, HookTesting(config.hooks), config.hooks)


def _print_secret(hook: Hook, secret: str, as_json: bool) -> None:
    if as_json:
        print_json({**_as_json(hook), "secret": secret})
    else:
        print_text(secret)
        typer.echo(f"nexo: this is the secret of {hook.name} ({hook.hook_id}); it is not shown again.", err=True)


def _print_done(hook: Hook, done: str, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(hook))
    else:
        print_text(f"{done} the webhook {hook.name} ({hook.hook_id}). Servers follow within 5 s.")


def _as_json(hook: Hook) -> dict[str, object]:
    return {
        "hook_id": hook.hook_id,
        "name": hook.name,
        "url": hook.url,
        "types": list(hook.types),
        "conversations": list(hook.conversations),
        "state": hook.status.word,
        "reason": hook.reason,
        "failing_since": hook.failing_since or None,
        "created_at": hook.created_at,
    }
