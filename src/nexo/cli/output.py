"""What all commands share: their common options, how they print, and how they run something async."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
import uvloop
from rich.console import Console

from nexo.config import Config, load
from nexo.logs import set_up_logs

T = TypeVar("T")

ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Config file instead of nexo.toml.")]
DataDir = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Data folder (the setting data.dir).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# For tables and progress bars. `progress` is a console of its own, so that piped output stays clean.
console = Console()
progress = Console(stderr=True)


def flags_of(data_dir: Path | None) -> dict[str, object]:
    """The common options as the configuration's flags."""
    return {"data.dir": None if data_dir is None else str(data_dir)}


def load_config(config_file: Path | None, data_dir: Path | None) -> Config:
    return load(config_file, flags=flags_of(data_dir))


def print_text(text: str) -> None:
    """Text as it is: never wrapped to the terminal's width, no markup."""
    typer.echo(text)


def print_json(value: object) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def split_values(given: Iterable[str] | None) -> list[str]:
    """Returns the values of an option that may be repeated, or hold several separated by commas."""
    return [value for part in given or () for value in part.split(",") if value]


def run(work: Coroutine[Any, Any, T]) -> T:
    set_up_logs("warning")  # to stderr: standard output is the command's own
    return uvloop.run(work)
