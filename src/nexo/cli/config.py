"""`nexo config`: what the server would run with, and what may be set."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from nexo.cli.docs import render_config
from nexo.cli.output import ConfigFile, DataDir, Json, flags_of, load_config, print_json, print_text
from nexo.config import load_with_sources, resolve_store_url, show
from nexo.service.filter import load_words
from nexo.service.secret import check_secret

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
    section = ""
    for key, value in values.items():
        parent, _, name = key.rpartition(".")
        if parent != section:
            print_text(f"{'' if not section else chr(10)}[{parent}]")
            section = parent
        source = loaded.sources.get(key)
        # JSON's strings, numbers, booleans and lists are TOML's.
        line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
        print_text(f"{line}  # {source}" if source else line)


@app.command()
def check(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Say whether the server could start with this configuration; exit code 2 if not."""
    loaded = load_config(config, data)
    check_secret(loaded)
    store = resolve_store_url(loaded).redacted()
    filtering = loaded.filter.file and loaded.filter.mode != "off"
    words = len(load_words(Path(loaded.filter.file))) if filtering else 0
    if as_json:
        print_json({"ok": True, "store": store, "filter_words": words})
    else:
        print_text(f"The configuration is valid. Messages are kept in {store}.")


@app.command()
def doc() -> None:
    """Print the documentation of all settings, as Markdown."""
    print_text(render_config())
