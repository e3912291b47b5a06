"""`nexo demo`: a populated server to look at, which leaves nothing behind."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from nexo.app import serve as run_server
from nexo.assembly.core import open_core
from nexo.background import Background
from nexo.cli import demo_bots
from nexo.cli.demo_fill import fill
from nexo.cli.demo_story import ADMIN, CHATTER_IN, PASSWORD, ROBOTS, YOU
from nexo.cli.output import print_text, run
from nexo.config import Config
from nexo.config.tree import AuthConfig, DataConfig, LogConfig, LogLevel, ServerConfig

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 8900,
    robots: Annotated[bool, typer.Option(help="Some of the people answer.")] = True,
    log_level: Annotated[LogLevel, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    """Run a server with people, groups and history in it, to look at and click through.

    It keeps everything in a temporary folder, listens on this machine alone, and is gone after Ctrl-C.
    """
    folder = Path(tempfile.mkdtemp(prefix="nexo-demo-"))
    try:
        run(_run(_config(folder, port, log_level), robots))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _config(folder: Path, port: int, log_level: LogLevel) -> Config:
    """Returns a configuration that ignores this machine's own: a demo must not write into a real database."""
    return Config(
        data=DataConfig(dir=str(folder)),
        server=ServerConfig(port=port),
        log=LogConfig(level=log_level),
        auth=AuthConfig(argon2_memory_kib=64, argon2_time_cost=1),  # passwords that are public
    )


async def _run(config: Config, robots: bool) -> None:
    async with open_core(config, Background()) as core:
        groups = await fill(core)
    living: list[asyncio.Task[None]] = []

    async def ready(address: str) -> None:
        _greet(address, robots)
        if robots:
            living.append(asyncio.create_task(demo_bots.live(address, groups[CHATTER_IN])))

    try:
        await run_server(config, ready)
    finally:
        for task in living:
            task.cancel()
        await asyncio.gather(*living, return_exceptions=True)


def _greet(address: str, robots: bool) -> None:
    print_text(f"Nexo demo runs at {address}")
    print_text(f"  sign in as {' or '.join(YOU)} with the password {PASSWORD} (two browsers, and they can talk)")
    if robots:
        print_text(f"  users that answer: {', '.join(ROBOTS)}")
    print_text(f"  live status: {address}/admin as {ADMIN}, the same password")
    print_text("Everything is in a temporary folder and is gone after Ctrl-C.")
