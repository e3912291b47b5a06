"""`nexo streams`: what was accepted and not saved, and the dead letters among it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import typer
from rich.table import Table

from nexo.bus.redis_client import BusDown, RedisClient
from nexo.cli.output import ConfigFile, DataDir, Json, console, load_config, print_json, print_text, run
from nexo.config import Config, resolve_redis_url
from nexo.errors import NexoError, StartupError
from nexo.two_phase.entries import BadEntry, decode_entry
from nexo.two_phase.streams import Raw, Streams

app = typer.Typer(no_args_is_help=True, add_completion=False)

LETTERS_MAX = 10_000
HIDDEN = ("content", "extra")  # written by users: shown only on request

EntryId = Annotated[str, typer.Argument(metavar="SHARD/ENTRY", help="As `nexo streams show` names it, or `all`.")]


@asynccontextmanager
async def _opened(config: Config) -> AsyncIterator[Streams]:
    url = resolve_redis_url(config)
    if url is None:
        raise StartupError("there are no streams without Redis: set redis.url, as the servers have it")
    link = RedisClient(url, max(2.0, config.redis.timeout_ms / 1000))
    try:
        yield Streams(link, config.two_phase, config.redis.prefix, "nexo-streams")
    except BusDown as error:
        raise StartupError(f"Redis at {url.redacted()} cannot be reached: {error.__cause__}") from error
    finally:
        await link.close()


@app.command("list")
def list_(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """How much waits in each shard."""
    settings = load_config(config, data)

    async def work() -> dict[int, tuple[int, int, int]]:
        async with _opened(settings) as streams:
            return await streams.lengths(range(settings.two_phase.shards))

    lengths = run(work())
    if as_json:
        print_json([{"shard": shard, "accepted": a, "to_save": b, "dead": c} for shard, (a, b, c) in lengths.items()])
        return
    table = Table("shard", "accepted", "to save", "dead letters")
    for shard, counts in lengths.items():
        table.add_row(str(shard), *map(str, counts))
    table.add_row("all", *(str(sum(counts[i] for counts in lengths.values())) for i in range(3)))
    console.print(table)


@app.command()
def show(
    content: Annotated[bool, typer.Option("--content", help="Show also what people wrote.")] = False,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """The dead letters: entries that could not be saved, and why."""
    settings = load_config(config, data)

    async def work() -> list[dict[str, str]]:
        async with _opened(settings) as streams:
            return [_described(shard, raw, content) async for shard, raw in _letters(streams)]

    letters = run(work())
    if as_json:
        print_json(letters)
        return
    if not letters:
        print_text("There are no dead letters.")
    for letter in letters:
        print_text("\n".join(f"{name:<16} {value}" for name, value in letter.items()) + "\n")


@app.command()
def replay(entry: EntryId, config: ConfigFile = None, data: DataDir = None) -> None:
    """Try to save a dead letter once more: it goes to the end of its shard."""
    settings = load_config(config, data)

    async def work() -> int:
        async with _opened(settings) as streams:
            count = 0
            async for shard, raw in _named(streams, entry):
                try:
                    conversation_id = decode_entry(raw.entry_id, raw.fields).draft.conversation_id
                except BadEntry as error:
                    raise NexoError("bad_request", f"{shard}/{raw.entry_id} cannot be read: {error}") from error
                count += await streams.replay(shard, raw, conversation_id)
            return count

    print_text(f"{run(work())} will be tried again.")


@app.command()
def drop(entry: EntryId, config: ConfigFile = None, data: DataDir = None) -> None:
    """Remove a dead letter for good."""
    settings = load_config(config, data)

    async def work() -> int:
        async with _opened(settings) as streams:
            return sum([await streams.drop_dead(shard, raw.entry_id) async for shard, raw in _named(streams, entry)])

    print_text(f"{run(work())} removed.")


async def _letters(streams: Streams) -> AsyncIterator[tuple[int, Raw]]:
    for shard in range(streams.settings.shards):
        for raw in await streams.dead_letters(shard, LETTERS_MAX):
            yield shard, raw


async def _named(streams: Streams, entry: str) -> AsyncIterator[tuple[int, Raw]]:
    found = [(shard, raw) async for shard, raw in _letters(streams) if entry in ("all", f"{shard}/{raw.entry_id}")]
    if not found and entry != "all":
        raise NexoError("not_found", f"There is no dead letter {entry}; `nexo streams show` names them")
    for item in found:
        yield item


def _described(shard: int, raw: Raw, content: bool) -> dict[str, str]:
    return {"entry": f"{shard}/{raw.entry_id}", **dict(_fields(raw.fields, content))}


def _fields(fields: Any, content: bool) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        text = name.decode(errors="replace")
        if content or text not in HIDDEN:
            yield text, value.decode(errors="replace")
