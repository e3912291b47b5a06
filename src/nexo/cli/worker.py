"""`nexo worker`: saves what servers have accepted, in a process of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from nexo.app import work
from nexo.cli.output import ConfigFile, DataDir, flags_of, run
from nexo.config import load

app = typer.Typer(add_completion=False)


@app.command()
def worker(
    config_file: ConfigFile = None,
    data_dir: DataDir = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Save what servers have accepted into Redis, with the same configuration as they have.

    Servers do that themselves unless two_phase.workers is off. Any number of workers and servers share the work.
    """
    run(work(load(config_file, flags=flags_of(data_dir)), log_level))
