"""`nexo worker`: saves what servers have accepted, in a process of its own."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from nexo.app import work
from nexo.cli.output import ConfigFile, DataDir, flags_of, run
from nexo.config import load

app = typer.Typer(add_completion=False)


@app.command()
def worker(
    host: Annotated[str | None, typer.Option(help="Address for health and metrics (worker.host).")] = None,
    port: Annotated[int | None, typer.Option(help="Port for health and metrics (worker.port); 0: none.")] = None,
    config_file: ConfigFile = None,
    data_dir: DataDir = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error (log.level).")] = None,
) -> None:
    """Save what servers have accepted into Redis, with the same configuration as they have.

    Servers do that themselves unless two_phase.workers is off. Any number of workers and servers share the work.
    """
    flags = flags_of(data_dir) | {"worker.host": host, "worker.port": port, "log.level": log_level}
    reread = partial(load, config_file, flags=flags)
    run(work(reread(), reread))
