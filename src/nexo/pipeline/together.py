"""Many who ask the same one at the same time: while a question is under way, the next ones wait and go as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Together(Generic[Question, Answer]):
    def __init__(self, ask: Callable[[Sequence[Question]], Awaitable[Sequence[Answer]]]) -> None:
        """`ask` has one answer for each question, or fails for all of them."""
        self._ask = ask
        self._waiting: list[tuple[Sequence[Question], asyncio.Future[Sequence[Answer]]]] = []
        self._task: asyncio.Task[None] | None = None

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        loop = asyncio.get_running_loop()
        answers: asyncio.Future[Sequence[Answer]] = loop.create_future()
        self._waiting.append((questions, answers))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())
        return await answers

    async def _work(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            try:
                found = await self._ask([question for questions, _ in taken for question in questions])
            except Exception as error:
                for _, answers in taken:
                    if not answers.done():
                        answers.set_exception(error)
                continue
            start = 0
            for questions, answers in taken:
                if not answers.done():
                    answers.set_result(found[start : start + len(questions)])
                start += len(questions)
