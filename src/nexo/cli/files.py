"""`nexo files`: the files of users, listed, compared with their storage, collected, moved to another storage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from nexo.assembly.files import HOUR_MS
from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.config import Config
from nexo.core.files import StoredFile, file_shape
from nexo.errors import StartupError
from nexo.files.checking import FilesReport, check_files, delete_unknown, move_files
from nexo.files.collecting import Collecting
from nexo.files.ports import Storage, StorageError
from nexo.files.storages import make_storage
from nexo.store.files.sql_files import SqlFiles

app = typer.Typer(add_completion=False, no_args_is_help=True)

EXIT_FINDINGS = 1
KINDS = {
    "missing": "bytes that a file needs are not in the storage",
    "wrong_size": "bytes have another size than the database says",
    "unnamed": "messages name a file that is not known (also after an operator has deleted it)",
    "overdue": "what nothing names, and is kept for an hour longer than it should be; `nexo files gc` deletes it",
    "unknown": "bytes that no row refers to; `nexo files gc` deletes them",
}


@asynccontextmanager
async def opened_files(config: Config, url: str | None = None) -> AsyncIterator[tuple[SqlFiles, Storage]]:
    """Yields the metadata and the storage of files."""
    storage = make_storage(config, url)
    async with opened(config) as database:
        try:
            yield SqlFiles(database), storage
        except StorageError as error:
            raise StartupError(f"the storage {storage.url} cannot be used: {error}") from error
        finally:
            await storage.close()


@app.command("list")
def list_files(
    user: Annotated[str, typer.Option("--user", help="Only files of this user.")] = "",
    after: Annotated[str, typer.Option("--after", help="Only files whose id is behind this one: the next page.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000)] = 100,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """List files in the order of their ids: id, owner, size, type and name."""

    async def work() -> list[StoredFile]:
        async with opened_files(load_config(config, data)) as (store, _):
            return await store.list(user, after, limit)

    found = run(work())
    if as_json:
        print_json([file_shape(file, with_owner=True) for file in found])
        return
    for file in found:
        print_text(f"{file.file_id}  {file.owner_id}  {file.size}  {file.measured.mime}  {file.name}")


@app.command("check")
def check(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Compare the storage with the database, in both directions. Servers may be running. Exit code 0: no file is
    damaged, 1: one is."""
    report = run(check_now(load_config(config, data)))
    show(report, as_json)
    if is_damaged(report):
        raise typer.Exit(EXIT_FINDINGS)


@app.command("gc")
def collect(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Delete now what nothing names and whose time is over, and bytes without a row. Servers do this by themselves."""

    async def work() -> dict[str, int]:
        settings = load_config(config, data)
        async with opened_files(settings) as (store, storage):
            keep_uses_ms = settings.recall.keep_days * 24 * HOUR_MS
            collecting = Collecting(store, storage, keep_uses_ms, settings.files.deleted_keep_hours * HOUR_MS)
            while await collecting.step():
                pass
            await collecting.sweep()
            unknown = await delete_unknown(storage, await check_files(store, storage))
            return {
                "blobs": collecting.done.get("blobs", 0),
                "orphans": collecting.done.get("orphans", 0) + unknown,
            }

    done = run(work())
    if as_json:
        print_json(done)
    else:
        print_text(f"Deleted {done['blobs']} contents without a file and {done['orphans']} leftovers of crashes.")


@app.command("move")
def move(
    target: Annotated[str, typer.Argument(help="The other storage: file:///folder or s3://bucket/prefix.")],
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Copy all files to another storage. Run it while servers run, set `files.url` and restart them, then run it once
    more for what was added in between. Interrupted, it continues where it was. The old storage is left as it is."""

    async def work() -> int:
        settings = load_config(config, data)
        async with opened_files(settings) as (store, source):
            other = make_storage(settings, target)
            if other.url == source.url:
                raise StartupError("the target is the storage that is in use")
            try:
                return await move_files(store, source, other)
            finally:
                await other.close()

    copied = run(work())
    if as_json:
        print_json({"copied": copied})
    else:
        print_text(f"Copied {copied} blobs. Set files.url = {target!r}, restart the servers, and run this once more.")


async def check_now(config: Config) -> FilesReport:
    async with opened_files(config) as (store, storage):
        return await check_files(store, storage)


def is_damaged(report: FilesReport) -> bool:
    return bool(report.missing or report.wrong_size)


def show(report: FilesReport, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    print_text(f"Checked {report.blobs} contents of files with {report.bytes} bytes.")
    for kind, meaning in KINDS.items():
        if report.counts.get(kind):
            print_text(f"\n{kind}: {report.counts[kind]} ({meaning})")
            for name in getattr(report, kind):
                print_text(f"  {name}")
    if not report.counts:
        print_text("Nothing is wrong.")
