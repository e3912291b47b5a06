"""`nexo serve`: the server."""

from __future__ import annotations

from typing import Annotated

import typer

from nexo.app import serve as run_server
from nexo.cli.output import ConfigFile, DataDir, flags_of, run
from nexo.config import load

app = typer.Typer(add_completion=False)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (server.host).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (server.port); 0: any free one.")] = None,
    config_file: ConfigFile = None,
    data_dir: DataDir = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Run the server: HTTP, WebSocket and the API's documentation on one port.

    Without any configuration it makes its data folder, secret and database by itself.
    """
    flags = flags_of(data_dir) | {"server.host": host, "server.port": port}
    run(run_server(load(config_file, flags=flags), log_level))
