"""Asks all instances what they remember of a message."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Sequence

from msgspec import Struct

from nexo.cluster.messages import TraceAnswer, TraceQuestion, encode_message
from nexo.core.tracing import InstanceTrace, TracesFound
from nexo.delivery.delivery import Delivery
from nexo.ports import Bus

ANSWER_S = 0.5
QUESTIONS_MAX = 100  # under way


class _Question(Struct):
    missing: set[str]
    traces: list[InstanceTrace]
    done: asyncio.Event


class ClusterTracing:
    def __init__(self, bus: Bus, delivery: Delivery) -> None:
        self._bus = bus
        self._delivery = delivery
        self._questions: dict[str, _Question] = {}

    async def ask(self, server_msg_id: int, user_ids: Sequence[str]) -> TracesFound:
        """Returns what all instances remember; those that do not answer in time are named."""
        own = self._delivery.trace(server_msg_id, user_ids)
        peers = list(self._bus.peers())
        if not peers or len(self._questions) >= QUESTIONS_MAX:
            return TracesFound([own], peers)
        question = _Question(set(peers), [own], asyncio.Event())
        name = secrets.token_hex(8)
        self._questions[name] = question
        try:
            asked = TraceQuestion(name, self._bus.instance_id, server_msg_id, list(user_ids))
            self._bus.publish_to(encode_message(asked), peers)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_S):
                    await question.done.wait()
        finally:
            del self._questions[name]
        return TracesFound(question.traces, sorted(question.missing))

    def asked(self, question: TraceQuestion) -> None:
        """Answer another instance."""
        trace = self._delivery.trace(question.server_msg_id, question.user_ids)
        answer = TraceAnswer(question.name, self._bus.instance_id, trace)
        self._bus.publish_to(encode_message(answer), (question.asker,))

    def answered(self, answer: TraceAnswer) -> None:
        question = self._questions.get(answer.name)
        if question is None or answer.instance_id not in question.missing:
            return
        question.missing.discard(answer.instance_id)
        question.traces.append(answer.trace)
        if not question.missing:
            question.done.set()
