"""Coalesces concurrent reactions into one transaction: a crowd that reacts at once costs the sends beside it little."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import structlog

from nexo.background import Background
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports import ReactResult
from nexo.store.batch import HotSql
from nexo.store.database import Database
from nexo.store.engine import MakeScript, StoreError
from nexo.store.reaction_batch import ReactionRequest, react

log = structlog.get_logger()

WAITING_MAX = 10_000
BATCH_MAX = 200


class _Waiting(NamedTuple):
    request: ReactionRequest
    answer: asyncio.Future[ReactResult]


class ReactionWriter:
    """`on_reacted` gets the messages whose reactions have changed, after the commit. It is a hint: marks are stored."""

    def __init__(self, database: Database, hot: HotSql, retention_ms: int, background: Background) -> None:
        self._database = database
        self._hot = hot
        self._retention_ms = retention_ms
        self.on_reacted: Callable[[int], None] = lambda server_msg_id: None
        self._background = background.branch()
        self._waiting: deque[_Waiting] = deque()
        self._task: asyncio.Task[None] | None = None

    async def react(self, user_id: str, server_msg_id: int, emoji: str, on: bool) -> ReactResult:
        """Returns after the commit. A caller that is cancelled changes nothing: the reaction is written."""
        if len(self._waiting) >= WAITING_MAX:
            raise NexoError("server_busy", "Too many reactions are waiting to be written", retry_after_ms=1000)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[ReactResult] = loop.create_future()
        self._waiting.append(_Waiting(ReactionRequest(user_id, server_msg_id, emoji, on), answer))
        if self._task is None:
            self._task = self._background.start("reactions", self._run(), detached=True)  # of many requests
        return await answer

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(len(self._waiting), "reactions")
        yield f.QUEUE_LIMIT(WAITING_MAX, "reactions")

    async def stop(self) -> None:
        """Write what waits."""
        if self._task is not None:
            await asyncio.wait({self._task})
        await self._background.stop()

    async def _run(self) -> None:
        try:
            while self._waiting:  # what arrives during a transaction is the next batch
                await self._write([self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))])
        finally:
            self._task = None

    async def _write(self, batch: list[_Waiting]) -> None:
        """Writes a batch. When that fails, each message's reactions are tried alone: a lock or a row that another
        transaction holds delays no other message for longer than one attempt."""
        messages: dict[int, list[_Waiting]] = {}
        for item in batch:
            messages.setdefault(item.request.server_msg_id, []).append(item)
        if len(messages) > 1:
            try:
                self._answer(batch, await self._database.engine.write_once(self._script(batch)))
                return
            except StoreError as error:
                log.warning("reactions_tried_alone", error=f"{type(error).__name__}: {error}", count=len(batch))
        await asyncio.gather(*map(self._write_alone, messages.values()))

    async def _write_alone(self, items: list[_Waiting]) -> None:
        try:
            self._answer(items, await self._database.change(self._script(items)))
        except Exception as error:  # each caller gets it
            for item in items:
                if not item.answer.done():
                    item.answer.set_exception(error)

    def _script(self, items: list[_Waiting]) -> MakeScript[list[ReactResult | NexoError]]:
        requests = [item.request for item in items]
        return lambda: self._hot.beside(react(self._database.sql, requests, self._retention_ms))

    def _answer(self, items: list[_Waiting], answers: list[ReactResult | NexoError]) -> None:
        for server_msg_id in {one.server_msg_id for one in answers if isinstance(one, ReactResult) and one.is_changed}:
            self.on_reacted(server_msg_id)
        for item, answer in zip(items, answers, strict=True):
            if item.answer.done():  # cancelled
                continue
            if isinstance(answer, NexoError):
                item.answer.set_exception(answer)
            else:
                item.answer.set_result(answer)
