"""`nexo serve`: the server, in one process or in several on one port."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nexo.app import address_of, announce
from nexo.app import serve as run_server
from nexo.assembly.server import Sibling
from nexo.cli.output import ConfigFile, DataDir, flags_of, run
from nexo.config import Config, load, resolve_redis_url, resolve_store_url
from nexo.errors import StartupError
from nexo.logs import set_up_logs
from nexo.metrics.siblings import keep_ended
from nexo.supervisor import Supervisor, SupervisorLink
from nexo.transport.server import reserve

app = typer.Typer(add_completion=False)


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (server.host).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (server.port); 0: any free one.")] = None,
    config_file: ConfigFile = None,
    data_dir: DataDir = None,
    processes: Annotated[
        int,
        typer.Option(min=1, max=256, help="Processes on this port; more than one need a server database and Redis."),
    ] = 1,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error (log.level).")] = None,
    process: Annotated[int, typer.Option(hidden=True)] = 0,
    link_fd: Annotated[int, typer.Option(hidden=True)] = -1,
    folder: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run the server: HTTP, WebSocket and the API's documentation on one port.

    Without any configuration it makes its data folder, secret and database by itself.
    """
    flags = flags_of(data_dir) | {"server.host": host, "server.port": port, "log.level": log_level}
    reread = partial(load, config_file, flags=flags)
    config = reread()
    if process and folder is not None:  # started by a supervisor
        link = SupervisorLink(link_fd)
        run(run_server(config, partial(_report_ready, link), Sibling(process, link, folder), reread))
    elif processes == 1:
        run(run_server(config, reread=reread))
    else:
        check_shareable(config)
        options = ["--log-level", log_level] if log_level is not None else []
        options += ["--config", str(config_file)] if config_file is not None else []
        options += ["--data", str(data_dir)] if data_dir is not None else []
        raise typer.Exit(_supervise(config, processes, options))


async def _report_ready(link: SupervisorLink, _: str) -> None:
    link.ready()


def check_shareable(config: Config) -> None:
    """Refuses several processes without a server database and Redis: they are instances that share both."""
    if resolve_store_url(config).is_embedded:
        raise StartupError(
            "--processes needs a server database (store.url): an SQLite file belongs to one process; "
            "`nexo copy-store` takes what is in it along"
        )
    if resolve_redis_url(config) is None:
        raise StartupError(
            "--processes needs redis.url: without it people connected to different processes would not get "
            "each other's messages until they reconnect"
        )


def _supervise(config: Config, count: int, options: list[str]) -> int:
    host = config.server.host
    folder = Path(tempfile.mkdtemp(prefix="nexo-"))
    try:
        with reserve(host, config.server.port) as holder:
            port = holder.getsockname()[1]
            command = [sys.executable, "-m", "nexo", "serve", "--host", host, "--port", str(port), *options]

            async def supervise() -> int:
                set_up_logs(config.log.level, process="supervisor")
                supervisor = Supervisor(
                    count,
                    [*command, "--folder", str(folder)],
                    shutdown_s=config.server.shutdown_s,
                    on_ready=lambda: announce(config, address_of(host, port)),
                    on_end=partial(keep_ended, folder),
                )
                supervisor.heed_signals()
                return await supervisor.run()

            return run(supervise())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
