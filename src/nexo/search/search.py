"""Search on this instance: the index, the service that fills it, and the questions to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

import structlog

from nexo.background import Background, Running
from nexo.config.tree_journal import JournalConfig
from nexo.core.search_index import IndexState, MediaPage, SearchFilter, SearchPage
from nexo.core.search_query import Question
from nexo.core.search_text import MediaKind
from nexo.errors import NexoError
from nexo.journal.ports import JournalStore
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets
from nexo.search.indexer import Indexer
from nexo.search.ports import SearchIndex, SearchStore
from nexo.search.searching import Searching

log = structlog.get_logger()

OPEN_AGAIN_S = 5.0
STATE_S = 5.0  # for which it is remembered that the index is complete


class Search:
    """`owner` names this instance among all that share the database. With `is_on` False nothing is indexed or found;
    lists of media work from the messages themselves."""

    def __init__(
        self,
        store: SearchStore,
        index: SearchIndex,
        leases: JournalStore,
        settings: JournalConfig,
        background: Background,
        owner: str,
        *,
        is_on: bool,
    ) -> None:
        self._index = index
        self._background = background
        self.is_on = is_on
        self._indexer = Indexer(store, index, leases, owner, settings.takeover_s, settings.poll_ms / 1000)
        self.woken: Mapping[str, asyncio.Event] = {"search": self._indexer.woken} if is_on else {}
        self._searching = Searching(store, index)
        self._running: Running | None = None
        self._complete_at = 0.0
        self._seconds = Buckets()
        self._failed_questions = 0

    def start(self) -> None:
        if self.is_on:
            self._running = self._background.serve("search_index", self._run)

    async def stop(self) -> None:
        if self._running is not None:
            await self._running.stop()
            await self._index.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._index.open()
                break
            except Exception as error:
                self._indexer.failures += 1
                log.warning("search_index_failed", error=str(error), exc_info=not isinstance(error, NexoError))
                await asyncio.sleep(OPEN_AGAIN_S)
        await self._indexer.run()

    # -- questions -------------------------------------------------------------------------------------------

    async def search(
        self,
        user_id: str,
        question: Question,
        wanted: SearchFilter,
        conversation_id: str | None,
        limit: int | None,
        cursor: str | None,
    ) -> SearchPage:
        if not self.is_on:
            raise NexoError("not_implemented", "Search is switched off on this server (search.enabled)")
        started = time.perf_counter()
        try:
            page = await self._searching.search(user_id, question, wanted, conversation_id, limit, cursor)
        except NexoError as error:
            self._failed_questions += error.name in ("server_busy", "internal_error")
            raise
        self._seconds.observe(time.perf_counter() - started)
        return page

    async def media(
        self, user_id: str, conversation_id: str, kind: MediaKind, before_seq: int | None, limit: int
    ) -> MediaPage:
        is_indexed = self.is_on and await self._is_complete()
        return await self._searching.media(user_id, conversation_id, kind, before_seq, limit, is_indexed)

    async def state(self) -> IndexState:
        return await self._index.state()

    async def _is_complete(self) -> bool:
        if time.monotonic() < self._complete_at + STATE_S:
            return True
        try:
            state = await self._index.state()
        except NexoError:
            return False
        if state.place is None or state.below:
            return False
        self._complete_at = time.monotonic()
        return True

    def samples(self) -> Iterable[Sample]:
        if not self.is_on:
            return
        indexer = self._indexer
        yield f.SEARCH_QUESTIONS(self._seconds)
        yield f.SEARCH_FAILURES(self._failed_questions, "question")
        yield f.SEARCH_FAILURES(indexer.failures, "index")
        yield f.SEARCH_MESSAGES(indexer.messages)
        yield f.SEARCH_REBUILDS(indexer.rebuilds)
        if indexer.state is not None:
            yield f.SEARCH_ENTRIES(indexer.state.entries)
            yield f.SEARCH_BUILDING(float(indexer.state.below > 0))
            yield f.SEARCH_LAG(indexer.lag_s)
