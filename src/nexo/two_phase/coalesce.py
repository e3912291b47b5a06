"""Coalesces concurrent calls into one batch: while a call is under way, later ones wait and are made as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Coalescer(Generic[Question, Answer]):
    def __init__(self, ask: Callable[[Sequence[Question]], Awaitable[Sequence[Answer]]]) -> None:
        """`ask` returns one answer for each question, or fails for all of them."""
        self._ask = ask
        self._waiting: list[tuple[Sequence[Question], asyncio.Future[Sequence[Answer]]]] = []
        self._task: asyncio.Task[None] | None = None

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """Returns one answer for each question."""
        loop = asyncio.get_running_loop()
        answers: asyncio.Future[Sequence[Answer]] = loop.create_future()
        self._waiting.append((questions, answers))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work(), context=Context())  # of many requests
        return await answers

    async def _work(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            try:
                found = await self._ask([question for questions, _ in taken for question in questions])
                start = 0
                for questions, answers in taken:
                    if not answers.done():
                        answers.set_result(found[start : start + len(questions)])
                    start += len(questions)
            except Exception as error:  # whatever it is, every caller gets an answer
                for _, answers in taken:
                    if not answers.done():
                        answers.set_exception(error)
