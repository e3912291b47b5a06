"""Polling of the database while an instance that may commit is not heard on the bus: small queries, each for some of
the users connected here, one after the other.

Clients get the heads of conversations with news, and pull. Messages that this instance has pushed are left out.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

import structlog

from nexo.background import Background, Running
from nexo.core import events
from nexo.delivery.fanout import Fanout
from nexo.delivery.hub import Hub
from nexo.errors import NexoError
from nexo.ids import CANARY_IDS
from nexo.ports import ConversationStore

log = structlog.get_logger()

ROUND_S = 1.0
# Clients pull as soon as they get new heads: all of them at the same moment kept sends waiting for 20 ms.
PAUSE_S = 0.1
USERS_AT_ONCE = 50
# A transaction takes its time before it commits, and waits for a lock two seconds at most.
LOOK_BACK_MS = 10_000
PUSHED_MAX = 200_000


class DatabaseWatch:
    def __init__(
        self,
        conversations: ConversationStore,
        hub: Hub,
        fanout: Fanout,
        last_pushed: Callable[[str], int],
        background: Background,
    ) -> None:
        """`last_pushed` returns the highest seq of a conversation that this instance has pushed, or 0."""
        self._conversations = conversations
        self._hub = hub
        self._fanout = fanout
        self._last_pushed = last_pushed
        self._background = background
        self._running: Running | None = None
        self._reasons: set[str] = set()
        self._pushed: dict[tuple[str, str], int] = {}

    def need(self, reason: str, is_needed: bool) -> None:
        """Add or remove a reason to poll. Polling runs while there is at least one."""
        if is_needed == (reason in self._reasons):
            return
        if is_needed:
            self._reasons.add(reason)
            self._start()
        else:
            self._reasons.discard(reason)
            if not self._reasons:
                self._stop()
        log.info("database_watch", reasons=sorted(self._reasons))

    def _start(self) -> None:
        if self._running is None:
            self._pushed.clear()
            self._running = self._background.serve("database_watch", self._watch)

    def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            self._running = None

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
                seen_ms = await self._poll(users[start : start + at_once], since_ms)
                round_began_ms = round_began_ms or seen_ms
                await asyncio.sleep(max(0.0, began + pause_s - time.monotonic()))
            if round_began_ms is not None:
                since_ms = round_began_ms - LOOK_BACK_MS

    async def _poll(self, users: list[str], since_ms: int | None) -> int | None:
        """Push new heads to these users. Returns the time of the database, or None when it could not be asked."""
        if not users:
            return None
        try:
            active = await self._conversations.active_since(users, since_ms)
        except NexoError as error:
            log.warning("database_watch_failed", error=error.name)
            return None
        news: dict[str, list[tuple[str, int]]] = {}
        for user_id, conversation_id, head_seq in active.heads:
            key = (user_id, conversation_id)
            if head_seq > max(self._pushed.get(key, 0), self._last_pushed(conversation_id)):
                news.setdefault(user_id, []).append((conversation_id, head_seq))
                self._pushed[key] = head_seq
        if len(self._pushed) > PUSHED_MAX:
            self._pushed.clear()
        for user_id, heads in news.items():
            self._fanout.to_user_here(user_id, events.HeadsChanged(heads))
        return active.now_ms
