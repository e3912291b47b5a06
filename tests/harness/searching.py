"""Search on an open core without a server: an index that is filled on demand, texts and questions, and the scan that
search is compared with."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from nexo.assembly.core import Core
from nexo.assembly.search import make_index
from nexo.core.model import Message, MessageStatus
from nexo.core.search_index import SearchFilter
from nexo.core.search_query import parse_question
from nexo.core.search_text import search_text
from nexo.search.indexer import Indexer
from nexo.search.ports import SearchIndex
from nexo.search.searching import Searching
from nexo.store.search.sql_search import SqlSearch

WORDS = (
    "hello", "Hello", "help", "world", "Wörld", "café", "Cafe", "naïve", "straße", "strasse", "über", "uber", "2024",
    "meeting", "meet", "data-base", "foo_bar", "naı̈ve", "今天", "天气", "很好", "中文搜索", "我们去吃饭吧", "日本語",
    "ひらがな", "カタカナ", "ｶﾀｶﾅ", "データ", "買い物リスト", "한국어", "공부합니다", "👍", "👍🏽", "😀😀", "привет",
    "Привет", "Ёлка", "Ελλάς", "iPhone手机", "ﬁne", "ＦＵＬＬ", "a.b@c.de", "C++", "3.14", "O'Neil", "हिन्दी", "ไทย",
)  # fmt: skip


class SearchBench:
    def __init__(self, core: Core, index: SearchIndex) -> None:
        self.core = core
        self.index = index
        self.store = SqlSearch(core.store.database, core.store.journal)
        self.searching = Searching(self.store, index)
        self.indexer = self.new_indexer()

    def new_indexer(self) -> Indexer:
        return Indexer(self.store, self.index, self.core.store.journal, "tests", 10, 0.05)

    async def find(
        self, user_id: str, query: str, conversation_id: str | None = None, limit: int = 100, **wanted: Any
    ) -> list[Message]:
        """Returns all results, page after page."""
        found: list[Message] = []
        cursor: str | None = None
        while True:
            page = await self.searching.search(
                user_id,
                parse_question(query),
                SearchFilter(**wanted),
                conversation_id,
                limit,
                cursor,
            )
            found += [hit.message for hit in page.hits]
            if not page.has_more:
                return found
            cursor = page.next_cursor

    async def texts(self, user_id: str, query: str) -> list[str]:
        return [search_text(one.msg_type, one.content) for one in await self.find(user_id, query)]

    async def scan(self, user_id: str, query: str, conversation_ids: Iterable[str]) -> list[Message]:
        """Returns what a user finds by reading everything that is visible."""
        question = parse_question(query)
        found = []
        for name in conversation_ids:
            for message in await self.read(user_id, name):
                text = search_text(message.msg_type, message.content, message.extra)
                if message.status == MessageStatus.NORMAL and not message.is_event and question.matches(text):
                    found.append(message)
        return sorted(found, key=lambda message: message.server_msg_id, reverse=True)

    async def read(self, user_id: str, conversation_id: str) -> list[Message]:
        messages: list[Message] = []
        begin = 1
        while True:
            page = await self.core.store.messages.pull(user_id, conversation_id, begin, None, None)
            messages += page.messages
            if not page.has_more:
                return messages
            begin = page.next_seq or 0


@asynccontextmanager
async def open_search(core: Core) -> AsyncIterator[SearchBench]:
    index = make_index(core.store.database)
    await index.open()
    try:
        yield SearchBench(core, index)
    finally:
        await index.close()


def random_text(rng: random.Random) -> str:
    parts = [rng.choice(WORDS) for _ in range(rng.randint(1, 8))]
    return "".join(part + rng.choice((" ", " ", ", ", "", "。", "\n")) for part in parts)


def random_question(rng: random.Random) -> str:
    """Returns one that asks for something: words, their beginnings, parts of runs, phrases."""
    while True:
        parts = []
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            word = rng.choice(WORDS)
            start = rng.randrange(len(word)) if rng.random() < 0.3 else 0
            part = word[start : rng.randint(start + 1, len(word))]
            if rng.random() < 0.2:
                part = f'"{word} {rng.choice(WORDS)}"' if rng.random() < 0.3 else f'"{part}"'
            parts.append(part.upper() if rng.random() < 0.2 else part)
        query = " ".join(parts)
        if any(character.isalnum() for character in query):
            return query
