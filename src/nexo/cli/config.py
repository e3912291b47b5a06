"""`nexo config`: what the server would run with, and what may be set."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from nexo.cli.docs import render_config
from nexo.cli.output import ConfigFile, DataDir, Json, flags_of, load_config, print_json, print_text, run
from nexo.config import Config, load_with_sources, resolve_redis_url, resolve_store_url, show
from nexo.errors import StartupError
from nexo.service.filter import load_words
from nexo.service.secret import check_secret
from nexo.store.failures import startup_errors
from nexo.store.schema_version import ensure_current, read_version

CONNECT_S = 10.0

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("show")
def show_config(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Print every setting with its source, as TOML; secrets are redacted."""
    loaded = load_with_sources(config, flags=flags_of(data))
    values = show(loaded.config)
    if as_json:
        print_json(
            {key: {"value": value, "source": loaded.sources.get(key, "default")} for key, value in values.items()}
        )
        return
    sections: dict[str, list[str]] = {}  # a section may have settings on both sides of a section inside it
    for key, value in values.items():
        parent, _, name = key.rpartition(".")
        sections.setdefault(parent, []).append(_line(name, value, loaded.sources.get(key)))
    print_text("\n\n".join("\n".join([f"[{parent}]", *lines]) for parent, lines in sections.items()))


def _line(name: str, value: object, source: str | None) -> str:
    if value is None:
        return f"# {name} is left out"  # TOML has no null
    # JSON's strings, numbers, booleans and lists are TOML's.
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    return f"{line}  # {source}" if source else line


@app.command()
def check(
    connect: Annotated[bool, typer.Option("--connect", help="Also sign in at the database and Redis.")] = False,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Say whether the server could start with this configuration; exit code 2 if not."""
    loaded = load_config(config, data)
    check_secret(loaded)
    store = resolve_store_url(loaded).redacted()
    filtering = loaded.filter.file and loaded.filter.mode != "off"
    words = len(load_words(Path(loaded.filter.file))) if filtering else 0
    found = run(_connect(loaded)) if connect else {}
    if as_json:
        print_json({"ok": not any(found.values()), "store": store, "filter_words": words, **_as_json(found)})
    else:
        print_text(f"The configuration is valid. Messages are kept in {store}.")
        for name, trouble in found.items():
            print_text(f"{name}: {trouble or 'ok'}")
    if any(found.values()):
        raise typer.Exit(2)


async def _connect(config: Config) -> dict[str, str]:
    """Returns what keeps database and Redis from being used, by name; empty text: nothing."""
    found = {"database": await _try_database(config)}
    url = resolve_redis_url(config)
    if url is not None:
        # importing the client library takes a tenth of a second, which only this option needs
        found["redis"] = await import_module("nexo.bus.probe").probe_redis(url, CONNECT_S)
    return found


async def _try_database(config: Config) -> str:
    url = resolve_store_url(config)
    if url.is_embedded and not url.path.exists():
        return ""  # made by the first start
    try:
        with startup_errors(url):
            async with asyncio.timeout(CONNECT_S):
                if not url.is_embedded:
                    await ensure_current(url, config)
                await read_version(url, config)
    except StartupError as error:
        return str(error)
    return ""


def _as_json(found: dict[str, str]) -> dict[str, object]:
    return {name: {"ok": not trouble, "detail": trouble} for name, trouble in found.items()}


@app.command()
def doc() -> None:
    """Print the documentation of all settings, as Markdown."""
    print_text(render_config())
