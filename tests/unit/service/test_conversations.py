"""Reading: users take turns, so that one who reads much does not keep others from their messages and heads."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.waiting import loop_turns
from nexo.service.conversations import Conversations


class SlowStore:
    """Reads end when they are let go."""

    def __init__(self) -> None:
        self.under_way: list[tuple[str, asyncio.Future[Any]]] = []

    def __getattr__(self, name: str) -> Any:
        async def read(user_id: str, *_: object) -> Any:
            self.under_way.append((user_id, asyncio.get_running_loop().create_future()))
            return await self.under_way[-1][1]

        return read


async def test_a_user_with_a_thousand_requests_delays_another_by_one_read_at_most() -> None:
    messages, conversations = SlowStore(), SlowStore()
    reading = Conversations(messages, conversations, None, reads_at_once=2)  # type: ignore[arg-type]
    tasks = [asyncio.ensure_future(reading.history("greedy", "sg_x")) for _ in range(1000)]
    await loop_turns(5)
    assert len(messages.under_way) == 2, "the database has not more to do than it can at once"
    tasks += [asyncio.ensure_future(reading.pull("ann", "sg_x")), asyncio.ensure_future(reading.offline("ben"))]
    tasks.append(asyncio.ensure_future(reading.sync("cy")))
    await loop_turns(5)
    assert [user_id for user_id, _ in conversations.under_way] == ["cy"], "heads do not wait for history"
    order: list[str] = []
    while messages.under_way:
        user_id, future = messages.under_way.pop(0)
        order.append(user_id)
        future.set_result(None)
        await loop_turns(5)
    assert {"ann", "ben"} <= set(order[:5])
    conversations.under_way[0][1].set_result(None)
    await asyncio.gather(*tasks)
