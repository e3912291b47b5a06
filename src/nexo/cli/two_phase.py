"""`nexo two-phase`: two-phase acknowledgement of running servers, switched without a restart."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from nexo.cli.output import ConfigFile, DataDir, load_config, print_text
from nexo.config import resolve_data_dir, resolve_redis_url
from nexo.control import read_control, write_control
from nexo.errors import StartupError

app = typer.Typer(add_completion=False)


@app.command()
def two_phase(
    state: Annotated[
        Literal["on", "observe", "off", "default"],
        typer.Argument(help="on, observe: only measure, off, or default: as configured."),
    ],
    share: Annotated[
        float, typer.Option(min=0, max=1, help="With `on` and `observe`: the share of conversations.")
    ] = 1.0,
    config: ConfigFile = None,
    data: DataDir = None,
) -> None:
    """Switch two-phase acknowledgement of the servers that use this data folder, for all or a share of conversations.

    What was accepted is saved in any case; nothing overtakes it.
    """
    settings = load_config(config, data)
    if state in ("on", "observe") and resolve_redis_url(settings) is None:
        raise StartupError("two-phase acknowledgement needs a Redis: set redis.url, and restart the servers")
    folder = resolve_data_dir(settings)
    control = read_control(folder)
    control.two_phase = {"on": share, "observe": share, "off": 0.0, "default": None}[state]
    control.two_phase_observe = state == "observe"
    path = write_control(folder, control)
    print_text(f"Written to {path}; servers and workers that use this data folder follow within a second.")
