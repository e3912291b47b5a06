"""`nexo log`: what running servers log, changed without a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text
from nexo.config import resolve_data_dir
from nexo.control import Control, read_control, write_control
from nexo.errors import StartupError

app = typer.Typer(no_args_is_help=True, add_completion=False)

Level = Literal["debug", "info", "warning", "error", "default"]


@app.command()
def level(
    name: Annotated[Level, typer.Argument(metavar="LEVEL", help="debug, info, warning, error or default.")],
    config: ConfigFile = None,
    data: DataDir = None,
) -> None:
    """Set the level; `default` returns to the configured one."""

    def change(control: Control) -> None:
        control.log_level = None if name == "default" else name

    _change(config, data, change)


@app.command()
def ack(
    off: Annotated[
        Literal["off", "default"] | None, typer.Argument(help="`off`: none; `default`: as configured.")
    ] = None,
    sample: Annotated[float | None, typer.Option(min=0, max=1, help="A random share of all, for example 0.01.")] = None,
    user: Annotated[list[str] | None, typer.Option(help="All of this user; may be repeated.")] = None,
    conversation: Annotated[list[str] | None, typer.Option(help="All in this conversation; may be repeated.")] = None,
    config: ConfigFile = None,
    data: DataDir = None,
) -> None:
    """Choose the acknowledgements, resends and refused pushes that are logged at level info."""
    if off is None and sample is None and not user and not conversation:
        raise typer.BadParameter("name what to log (--sample, --user, --conversation), or off")

    def change(control: Control) -> None:
        is_default = off == "default"
        control.ack_sample = None if is_default else 0.0 if off else sample or 0.0
        control.ack_users = None if is_default else [] if off else user or []
        control.ack_conversations = None if is_default else [] if off else conversation or []

    _change(config, data, change)


@app.command()
def show(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Print what overrides the configuration now."""
    control = read_control(resolve_data_dir(load_config(config, data)))
    values = {name: value for name, value in msgspec.structs.asdict(control).items() if value is not None}
    if as_json:
        print_json(values)
    elif not values:
        print_text("Nothing: servers log as configured.")
    else:
        print_text("\n".join(f"{name} = {value}" for name, value in values.items()))


@app.command()
def reset(config: ConfigFile = None, data: DataDir = None) -> None:
    """Return to the configured log settings."""

    def change(control: Control) -> None:
        control.log_level = control.ack_sample = control.ack_users = control.ack_conversations = None

    _change(config, data, change)


def _change(config: Path | None, data: Path | None, change: Callable[[Control], None]) -> None:
    folder = resolve_data_dir(load_config(config, data))
    try:
        control = read_control(folder)
    except StartupError:  # damaged: begin anew
        control = Control()
    change(control)
    path = write_control(folder, control)
    print_text(f"Written to {path}; servers and workers that use this data folder follow within a second.")
