"""Writes the events of reactions: soon after a reaction on this instance, and later for reactions that another instance
left.

A reaction is marked in its own transaction (`store/reactions.py`), so nothing in this module has to survive a crash:
the mark is found again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from nexo.background import Background
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports import MessageChangeStore

COALESCE_S = 0.05  # reactions of one moment share an event
SWEEP_S = 3.0
LEFT_BEHIND_MS = 3000  # marks so old were left by an instance that ended
SWEEP_MAX = 500
WAITING_MAX = 10_000
AT_ONCE = 4


class ReactionEvents:
    def __init__(self, changes: MessageChangeStore) -> None:
        self._changes = changes
        self._due: dict[int, float] = {}  # message: when its event may be written
        self._woken = asyncio.Event()

    def start(self, background: Background) -> None:
        background.serve("reaction_events", self._run)

    def note(self, server_msg_id: int) -> None:
        """Write the event of a message soon."""
        if server_msg_id not in self._due and len(self._due) < WAITING_MAX:
            self._due[server_msg_id] = asyncio.get_running_loop().time() + COALESCE_S
            self._woken.set()

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(len(self._due), "reaction_events")
        yield f.QUEUE_LIMIT(WAITING_MAX, "reaction_events")

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        sweep_at = loop.time()
        while True:
            now = loop.time()
            if now >= sweep_at:
                await self._sweep(now)
                sweep_at = loop.time() + SWEEP_S
            ready = [server_msg_id for server_msg_id, at in self._due.items() if at <= now]
            for start in range(0, len(ready), AT_ONCE):
                await asyncio.gather(*map(self._write, ready[start : start + AT_ONCE]))
            wait_s = min([sweep_at, *self._due.values()]) - loop.time()
            self._woken.clear()
            if wait_s > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._woken.wait()

    async def _sweep(self, now: float) -> None:
        try:
            left = await self._changes.marked(LEFT_BEHIND_MS, SWEEP_MAX)
        except NexoError:
            return  # logged by the store; the next sweep tries again
        for server_msg_id in left:
            self._due.setdefault(server_msg_id, now)

    async def _write(self, server_msg_id: int) -> None:
        del self._due[server_msg_id]  # reactions from now on are noted again
        try:
            written = await self._changes.announce(server_msg_id)
        except NexoError:
            return  # the mark is left for a sweep
        if written.again_ms:
            self._due.setdefault(server_msg_id, asyncio.get_running_loop().time() + written.again_ms / 1000)
