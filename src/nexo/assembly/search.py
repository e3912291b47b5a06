"""Search on an open store."""

from __future__ import annotations

from nexo.background import Background
from nexo.config import Config, StoreUrl
from nexo.journal.journal import Journal
from nexo.search.ports import SearchIndex
from nexo.search.search import Search
from nexo.store.database import Database
from nexo.store.search.sql_search import SqlSearch
from nexo.store.search.table_index import TableIndex
from nexo.store.store import Store


def is_search_on(config: Config, url: StoreUrl) -> bool:
    return url.is_embedded if config.search.enabled is None else config.search.enabled


def make_index(database: Database) -> SearchIndex:
    """Returns the index of search: a file beside an embedded database, tables in a server's."""
    in_file = database.kind.make_index_file(database.url)
    return in_file if in_file is not None else TableIndex(database)


def make_search(config: Config, store: Store, journal: Journal, background: Background) -> Search:
    """Returns search, not started; the journal wakes it."""
    search = Search(
        SqlSearch(store.database, store.journal),
        make_index(store.database),
        store.journal,
        config.journal,
        background,
        store.database.ids.holder,
        is_on=is_search_on(config, store.url),
    )
    journal.followers.append(search.woken)
    return search
