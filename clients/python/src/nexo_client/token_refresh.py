"""Refreshes the session before its access token expires."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from nexo_client.core.backoff import Backoff
from nexo_client.core.ids import now_ms
from nexo_client.core.options import Options
from nexo_client.errors import ClientError
from nexo_client.sessions import Sessions

_RETRY_FAILURES = 4  # the pauses between attempts are those after so many failures


class TokenRefresh:
    def __init__(
        self,
        sessions: Sessions,
        options: Options,
        spawn: Callable[[Coroutine[Any, Any, Any]], object],
        is_needed: Callable[[], bool],
        ended: Callable[[str], None],
    ) -> None:
        """`ended` is called with the reason when the server ends the session. Without a connection nothing is
        refreshed: the next call or connection does it."""
        self._sessions = sessions
        self._backoff = Backoff(options, random.Random())
        self._spawn = spawn
        self._is_needed = is_needed
        self._ended = ended
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Sets the timer for the current session."""
        self.stop()
        session = self._sessions.session
        if session is not None:
            self._wait(max(0.0, (session.refresh_at - now_ms()) / 1000))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _wait(self, pause_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(pause_s, lambda: self._spawn(self._refresh()))

    async def _refresh(self) -> None:
        if not self._is_needed():
            return
        try:
            await self._sessions.refresh()
        except ClientError as error:
            if self._sessions.is_over(error):
                self._ended(error.reason)
            elif self._sessions.session is not None:
                self._wait(self._backoff.pause_s(_RETRY_FAILURES, error.retry_after_ms))
