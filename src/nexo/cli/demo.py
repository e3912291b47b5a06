"""`nexo demo`: a populated server to look at, which leaves nothing behind."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from nexo.app import open_core
from nexo.app import serve as run_server
from nexo.cli import demo_bots
from nexo.cli.demo_fill import fill
from nexo.cli.demo_story import ADMIN, CHATTER_IN, PASSWORD, ROBOTS, YOU
from nexo.cli.output import print_text, run
from nexo.config import Config
from nexo.config.tree import Auth, Data, Server

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 8900,
    robots: Annotated[bool, typer.Option(help="Some of the people answer.")] = True,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    """Run a server with people, groups and history in it, to look at and click through.

    It keeps everything in a temporary folder, listens on this machine alone, and is gone after Ctrl-C.
    """
    folder = Path(tempfile.mkdtemp(prefix="nexo-demo-"))
    try:
        run(_run(_config(folder, port), robots, log_level))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _config(folder: Path, port: int) -> Config:
    """Nothing of this machine's configuration counts: a demo must not end up in somebody's database."""
    return Config(
        data=Data(dir=str(folder)),
        server=Server(port=port),
        auth=Auth(argon2_memory_kib=64, argon2_time_cost=1),  # passwords that everybody knows
    )


async def _run(config: Config, robots: bool, log_level: str) -> None:
    async with open_core(config) as core:
        groups = await fill(core)
    living: list[asyncio.Task[None]] = []

    async def ready(address: str) -> None:
        _greet(address, robots)
        if robots:
            living.append(asyncio.create_task(demo_bots.live(address, groups[CHATTER_IN])))

    try:
        await run_server(config, log_level, ready)
    finally:
        for task in living:
            task.cancel()
        await asyncio.gather(*living, return_exceptions=True)


def _greet(address: str, robots: bool) -> None:
    print_text(f"Nexo demo runs at {address}")
    print_text(f"  sign in as {' or '.join(YOU)} with the password {PASSWORD} (two browsers, and they can talk)")
    if robots:
        print_text(f"  those who answer: {', '.join(ROBOTS)}")
    print_text(f"  live status: {address}/admin as {ADMIN}, the same password")
    print_text("Everything is in a temporary folder and is gone after Ctrl-C.")
