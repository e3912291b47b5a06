"""`nexo key`: keys of backends and bots, also while servers run; they notice within 5 s."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, console, load_config, print_json, print_text, run, split_values
from nexo.config import Config
from nexo.core.keys import SCOPES, ApiKey
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.service.keys import Keys
from nexo.store.audit import SqlAudit
from nexo.store.keys import SqlKeys

app = typer.Typer(no_args_is_help=True, add_completion=False)

ACTOR = "command line"
_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="The name of the key.", show_default=False)],
    scope: Annotated[
        list[str] | None, typer.Option(help=f"What it opens, repeated or separated by commas: {', '.join(SCOPES)}.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="Make it a bot's key: it acts as this user only.")] = None,
    expires: Annotated[str, typer.Option(help="How long it is valid: 90d, 12h, 30m. Without it: for ever.")] = "",
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it, once: only its hash is kept."""
    settings = load_config(config, data)
    expires_at = _expires_at(expires)

    async def work() -> tuple[ApiKey, str]:
        async with _keys(settings) as (keys, audit):
            key, text = await keys.add(name, split_values(scope), user, expires_at)
            await audit.write(ACTOR, "key.add", key.name, {"key_id": key.key_id, "scopes": list(key.scopes)})
            return key, text

    key, text = run(work())
    if as_json:
        print_json({**_as_json(key), "key": text})
    else:
        print_text(text)
        typer.echo(f"nexo: this is the key {key.name} ({key.key_id}); it is not shown again.", err=True)


@app.command("list")
def list_keys(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """List all keys, revoked ones too; never their text."""
    settings = load_config(config, data)

    async def work() -> list[ApiKey]:
        async with _keys(settings) as (keys, _):
            return await keys.all()

    found = run(work())
    if as_json:
        print_json([_as_json(key) for key in found])
        return
    table = Table("id", "name", "scopes", "user", "made", "expires", "last used", "state")
    for key in found:
        table.add_row(
            key.key_id,
            key.name,
            ", ".join(key.scopes),
            key.user_id or "",
            _day(key.created_at),
            _day(key.expires_at),
            _day(key.last_used_at),
            _state(key),
        )
    console.print(table)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Its name or id.", show_default=False)],
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Revoke a key; servers refuse it within 5 s."""
    settings = load_config(config, data)

    async def work() -> ApiKey:
        async with _keys(settings) as (keys, audit):
            revoked = await keys.revoke(key)
            await audit.write(ACTOR, "key.revoke", revoked.name, {"key_id": revoked.key_id})
            return revoked

    revoked = run(work())
    if as_json:
        print_json({"key_id": revoked.key_id, "name": revoked.name})
    else:
        print_text(f"Revoked the key {revoked.name} ({revoked.key_id}). Servers refuse it within 5 s.")


@asynccontextmanager
async def _keys(config: Config) -> AsyncIterator[tuple[Keys, SqlAudit]]:
    async with opened(config) as database:
        yield Keys(SqlKeys(database)), SqlAudit(database)


def _expires_at(text: str) -> int:
    if not text:
        return 0
    found = re.fullmatch(r"([1-9][0-9]{0,4})([mhd])", text)
    if found is None:
        raise NexoError("bad_duration", "--expires is a number of days, hours or minutes: 90d, 12h, 30m")
    return now_ms() + int(found[1]) * _UNITS_MS[found[2]]


def _state(key: ApiKey) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= now_ms() else "valid"


def _day(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}" if at_ms else ""


def _as_json(key: ApiKey) -> dict[str, object]:
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": list(key.scopes),
        "user_id": key.user_id,
        "created_at": key.created_at,
        "expires_at": key.expires_at or None,
        "last_used_at": key.last_used_at or None,
        "state": _state(key),
    }
