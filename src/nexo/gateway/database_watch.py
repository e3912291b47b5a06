"""While other instances cannot be heard, the database tells what is new: small queries, each for some of those who
are connected here, all of them in turn.

Found conversations are told by their heads, and clients pull. What this instance has pushed itself is left out.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

import structlog

from nexo.core import events
from nexo.errors import NexoError
from nexo.gateway.connection import Connection
from nexo.gateway.hub import Hub
from nexo.gateway.pushing import Pushing
from nexo.ids import CANARY_IDS
from nexo.ports import ConversationStore

log = structlog.get_logger()

ROUND_S = 1.0
# Whoever is told of something pulls it at once: all of them in the same moment kept sends waiting for 20 ms.
PAUSE_S = 0.1
USERS_AT_ONCE = 50
# A transaction's time is taken before it is committed, and a lock is waited for two seconds at most.
LOOK_BACK_MS = 10_000
TOLD_MAX = 200_000


class DatabaseWatch:
    def __init__(
        self,
        conversations: ConversationStore,
        hub: Hub[Connection],
        pushing: Pushing,
        last_pushed: Callable[[str], int],
    ) -> None:
        """`last_pushed` is the highest seq of a conversation that was pushed here, 0 when there is none."""
        self._conversations = conversations
        self._hub = hub
        self._pushing = pushing
        self._last_pushed = last_pushed
        self._task: asyncio.Task[None] | None = None
        self._told: dict[tuple[str, str], int] = {}
        self.queries = 0

    def start(self) -> None:
        if self._task is None:
            self._told.clear()
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        since_ms: int | None = None
        while True:
            users = [user_id for user_id in self._hub.online_users() if user_id not in CANARY_IDS]
            round_began_ms: int | None = None
            at_once = min(USERS_AT_ONCE, max(1, math.ceil(len(users) * PAUSE_S / ROUND_S)))
            starts = range(0, max(1, len(users)), at_once)
            pause_s = max(PAUSE_S, ROUND_S / len(starts))
            for start in starts:
                began = time.monotonic()
                seen_ms = await self._look(users[start : start + at_once], since_ms)
                round_began_ms = round_began_ms or seen_ms
                await asyncio.sleep(max(0.0, began + pause_s - time.monotonic()))
            if round_began_ms is not None:
                since_ms = round_began_ms - LOOK_BACK_MS

    async def _look(self, users: list[str], since_ms: int | None) -> int | None:
        if not users:
            return None
        try:
            self.queries += 1
            active = await self._conversations.active_since(users, since_ms)
        except NexoError as error:
            log.warning("database_watch_failed", error=error.name)
            return None
        news: dict[str, list[tuple[str, int]]] = {}
        for user_id, conversation_id, head_seq in active.heads:
            key = (user_id, conversation_id)
            if head_seq > max(self._told.get(key, 0), self._last_pushed(conversation_id)):
                news.setdefault(user_id, []).append((conversation_id, head_seq))
                self._told[key] = head_seq
        if len(self._told) > TOLD_MAX:
            self._told.clear()
        for user_id, heads in news.items():
            self._pushing.to_user_here(user_id, events.HeadsChanged(heads))
        return active.now_ms
