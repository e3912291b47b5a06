"""Is the server alive, can it store and deliver, and what do its counters say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

import structlog

from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample

log = structlog.get_logger()

Canary = Callable[[], Awaitable[None]]
Expose = Callable[[str], tuple[bytes, str]]  # given what the asker accepts

CANARY_TIMEOUT_S = 3.0
# Anybody may ask, and each canary is a write: those who ask within a second share an answer.
CANARY_PAUSE_S = 1.0


class Health:
    def __init__(
        self,
        canary: Canary,
        expose: Expose,
        timeout_s: float = CANARY_TIMEOUT_S,
        pause_s: float = CANARY_PAUSE_S,
    ) -> None:
        """`canary` sends something through the real path and returns when it arrived."""
        self._canary = canary
        self._expose = expose
        self._timeout_s = timeout_s
        self._pause_s = pause_s
        self._run: asyncio.Task[str] | None = None
        self._reason = ""
        self._good_until = 0.0
        self.is_ready: bool | None = None  # as the last canary found it
        self.canary_s = 0.0

    async def check_ready(self) -> None:
        """Raises `server_busy` with the reason when nothing can be stored or delivered."""
        reason = self._reason
        if time.monotonic() >= self._good_until:
            if self._run is None:
                self._run = asyncio.create_task(self._try())
            # shielded: one who stops waiting does not end it for the others
            reason = await asyncio.shield(self._run)
        if reason:
            raise NexoError("server_busy", reason)

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """The text exposition and its content type."""
        return self._expose(accept)

    def samples(self) -> Iterable[Sample]:
        if self.is_ready is not None:
            yield f.READY(float(self.is_ready))
            yield f.CANARY(self.canary_s)

    async def _try(self) -> str:
        """Why the canary did not arrive, or nothing; remembered for a moment."""
        started = time.monotonic()
        try:
            self._reason = await self._send_canary()
        finally:
            self._run = None
        self.canary_s = time.monotonic() - started
        if self.is_ready is False and not self._reason:
            log.info("ready_again", canary_ms=round(self.canary_s * 1000, 1))
        self.is_ready = not self._reason
        self._good_until = time.monotonic() + self._pause_s
        if self._reason:
            log.warning("not_ready", reason=self._reason)
        return self._reason

    async def _send_canary(self) -> str:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._canary()
        except TimeoutError:
            return f"A message sent on trial did not arrive within {self._timeout_s:g} s"
        except NexoError as error:
            return f"A message sent on trial was refused: {error}"
        except Exception:
            log.exception("canary_failed")
            return "A message sent on trial failed; the log has the cause"
        return ""
