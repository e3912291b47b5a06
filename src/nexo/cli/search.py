"""`nexo search`: the index of search, also while servers run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import typer
from msgspec import Struct
from rich.progress import Progress

from nexo.assembly.search import is_search_on, make_index
from nexo.background import Background
from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.cli.output import progress as progress_console
from nexo.config import Config, resolve_store_url
from nexo.core.search_index import IndexState
from nexo.errors import StartupError
from nexo.search.indexer import CONSUMER, Indexer
from nexo.search.ports import SearchIndex
from nexo.store.journal.sql_journal import SqlJournal
from nexo.store.search.sql_search import SqlSearch

app = typer.Typer(no_args_is_help=True, add_completion=False)

LOOK_S = 0.3


class _Opened(Struct, frozen=True):
    index: SearchIndex
    reader: SqlSearch
    journal: SqlJournal
    owner: str

    async def share(self, state: IndexState) -> float:
        """Returns how much of the time of all messages is indexed."""
        if not state.below and state.place is not None:
            return 1.0
        oldest, newest = await self.reader.ends()
        if state.place is None or newest <= oldest:
            return 0.0
        return min(1.0, max(0.0, (newest - state.below) / (newest - oldest)))


@asynccontextmanager
async def _search(config: Config) -> AsyncIterator[_Opened]:
    async with opened(config) as database:
        index = make_index(database)
        await index.open()
        try:
            journal = SqlJournal(database, database.kind.make_hot_sql())
            yield _Opened(index, SqlSearch(database, journal), journal, database.ids.holder)
        finally:
            await index.close()


@app.command()
def rebuild(config: ConfigFile = None, data: DataDir = None) -> None:
    """Build the index anew from all messages, the newest first. Servers may be running: one of them does the work then,
    and search finds what is indexed already. A rebuild that was interrupted is continued."""
    settings = load_config(config, data)
    if not is_search_on(settings, resolve_store_url(settings)):
        raise StartupError("search is switched off: set search.enabled, here and for the servers")
    bar = Progress(console=progress_console, disable=not progress_console.is_terminal, transient=True)

    async def work() -> int:
        async with _search(settings) as search:
            state = await search.index.state()
            if state.place is None or not state.below:
                await search.index.begin(await search.reader.now())
            else:
                print_text("Continuing a rebuild that was begun before.")
            limits = settings.journal
            indexer = Indexer(
                search.reader, search.index, search.journal, search.owner, limits.takeover_s, limits.poll_ms / 1000
            )
            filling = Background().serve("search_index", indexer.run)  # waits while a server does it
            task = bar.add_task("Indexing", total=1.0)
            try:
                while True:
                    state = await search.index.state()
                    if state.place is not None and not state.below:
                        return state.entries
                    bar.update(task, completed=await search.share(state))
                    await asyncio.sleep(LOOK_S)
            finally:
                await filling.stop()

    with bar:
        entries = run(work())
    print_text(f"The index is complete: {entries} messages.")


@app.command()
def status(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Show whether messages can be searched, how many are indexed, and how far the index is behind."""
    settings = load_config(config, data)
    is_on = is_search_on(settings, resolve_store_url(settings))

    async def work() -> dict[str, object]:
        async with _search(settings) as search:
            state = await search.index.state()
            journal = await search.journal.state()
            held = next((one for one in journal.consumers if one.name == CONSUMER), None)
            return {
                "enabled": is_on,
                "entries": state.entries,
                "complete": state.place is not None and not state.below,
                "indexed_share": round(await search.share(state), 3),
                "lag_rows": journal.newest if state.place is None else max(0, journal.newest - state.place.row),
                "instance": held.owner or None if held is not None else None,
            }

    found = run(work())
    if as_json:
        print_json(found)
        return
    print_text(f"Search is {'on' if is_on else 'off (search.enabled)'}. {found['entries']} messages are indexed.")
    if not found["complete"]:
        print_text(f"Older messages are missing: {float(str(found['indexed_share'])):.0%} of their time is indexed.")
    print_text(f"{found['lag_rows']} rows of the journal behind; filled by {found['instance'] or 'no instance'}.")
