"""Checks of what users ask search. They take turns: one who asks much delays another by one question at most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from nexo.core.search_index import MediaPage, SearchFilter, SearchPage
from nexo.core.search_query import Question, parse_question
from nexo.core.search_text import KIND_NAMES, MediaKind
from nexo.errors import NexoError
from nexo.ids import check_user_id
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.service.fair_turns import FairTurns

AT_ONCE = 4
WAITING_MAX = 1000
MEDIA_LIMIT = 50
MEDIA_LIMIT_MAX = 200


class MessageSearch(Protocol):
    async def search(
        self,
        user_id: str,
        question: Question,
        wanted: SearchFilter,
        conversation_id: str | None,
        limit: int | None,
        cursor: str | None,
    ) -> SearchPage:
        """Returns messages that the user may see, newest first. Raises `not_implemented` where search is off, and as
        reading a conversation does for one that is named."""

    async def media(
        self, user_id: str, conversation_id: str, kind: MediaKind, before_seq: int | None, limit: int
    ) -> MediaPage: ...


class SearchQuestions:
    def __init__(self, search: MessageSearch) -> None:
        self._search = search
        self._turns = FairTurns(AT_ONCE, WAITING_MAX, "Too many questions wait for search")

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(self._turns.waiting, "search")
        yield f.QUEUE_LIMIT(WAITING_MAX, "search")

    async def search(
        self,
        user_id: str,
        query: str,
        wanted: SearchFilter,
        conversation_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> SearchPage:
        """`limit`: 20 when absent, at most 100."""
        question = parse_question(query)
        if wanted.sender_id is not None:
            check_user_id(wanted.sender_id)
        async with self._turns.turn(user_id):
            return await self._search.search(user_id, question, wanted, conversation_id, limit, cursor or None)

    async def media(
        self, user_id: str, conversation_id: str, kind: str, before_seq: int | None, limit: int | None
    ) -> MediaPage:
        if kind not in KIND_NAMES:
            raise NexoError("bad_kind", f"kind is one of {', '.join(KIND_NAMES)}")
        count = MEDIA_LIMIT if limit is None else limit if 0 < limit <= MEDIA_LIMIT_MAX else MEDIA_LIMIT_MAX
        async with self._turns.turn(user_id):
            return await self._search.media(user_id, conversation_id, KIND_NAMES[kind], before_seq, count)
