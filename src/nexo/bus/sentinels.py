"""Sentinels, asked all at once: one that is dead or silent hides no other sentinel.

The library asks them one after the other, each with its own time-out and retries, which together take longer than an
answer of Redis may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel
from redis.exceptions import RedisError

WAIT_SHARE = 0.5  # of the time-out of an answer: connecting to the master has to fit into the rest


class Sentinels(Sentinel):
    def __init__(self, hosts: Sequence[tuple[str, int]], options: dict[str, Any]) -> None:
        """`options` are those of a connection to a sentinel."""
        super().__init__(hosts, sentinel_kwargs=options)  # type: ignore[no-untyped-call]
        self._wait_s = float(options["socket_timeout"]) * WAIT_SHARE

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        """Returns the address that the newest of the answers names. Waits for a majority, and then for no more: a
        sentinel that was cut off with the old master answers too, under an older number."""
        asking = {asyncio.create_task(_ask(sentinel, service_name)) for sentinel in self.sentinels}
        answered: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._wait_s
        try:
            while asking and len(answered) <= len(self.sentinels) // 2:
                wait_s = ends - loop.time()
                done, asking = await asyncio.wait(asking, timeout=max(0.0, wait_s), return_when=asyncio.FIRST_COMPLETED)
                answered += [state for task in done if (state := task.result()) is not None]
                if not done:
                    break
        finally:
            for task in asking:
                task.cancel()
        good = [state for state in answered if self.check_master_state(state, service_name)]
        if not good:
            raise MasterNotFoundError(
                f"{len(answered)} of {len(self.sentinels)} sentinels answer, and none knows a master {service_name!r} "
                "that is up"
            )
        newest = max(good, key=lambda state: int(state["config-epoch"]))
        return str(newest["ip"]), int(newest["port"])


async def _ask(sentinel: Redis, service_name: str) -> dict[str, Any] | None:
    """Returns what one sentinel says of the master; None when it cannot be asked or does not know it."""
    try:
        masters: Any = await sentinel.sentinel_masters()
    except (RedisError, OSError, TimeoutError):
        return None
    state: dict[str, Any] | None = masters.get(service_name)
    return state
