"""Health: whether the server is alive, whether it can store and deliver, and its metrics."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable

import structlog

from nexo.background import Background
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample

log = structlog.get_logger()

Canary = Callable[[], Awaitable[None]]
Troubles = Callable[[], Iterable[str]]  # what keeps the server from serving, one sentence each
Expose = Callable[[str], tuple[bytes, str]]  # given what the asker accepts

CANARY_TIMEOUT_S = 3.0
# Every client may ask, and each canary is a write: requests within a second share an answer.
CANARY_PAUSE_S = 1.0
# How often readiness is checked without a request for it, so that `nexo_ready` and its alert need no prober.
WATCH_S = 5.0
FIRST_WATCH_S = 1.0  # the server has to listen first


class Health:
    def __init__(
        self,
        canary: Canary,
        expose: Expose,
        background: Background | None = None,
        troubles: Troubles = tuple,
        timeout_s: float = CANARY_TIMEOUT_S,
        pause_s: float = CANARY_PAUSE_S,
    ) -> None:
        """`canary` sends something through the real path and returns when it arrived; `background` names the
        long-lived tasks that fail; `troubles` are known without a trial."""
        self._background = background
        self._troubles = troubles
        self._trouble = ""
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
        reason = self._look_for_trouble() or self._reason
        if not self._trouble and time.monotonic() >= self._good_until:
            if self._run is None:
                self._run = asyncio.create_task(self._try())
            # shielded: a caller that stops waiting must not cancel it for other callers
            reason = await asyncio.shield(self._run)
            reason = self._look_for_trouble() or reason
        if reason:
            raise NexoError("server_busy", reason)

    async def watch(self) -> None:
        """Check readiness now and then until cancelled."""
        await asyncio.sleep(FIRST_WATCH_S)
        while True:
            with contextlib.suppress(NexoError):  # logged and counted already
                await self.check_ready()
            await asyncio.sleep(WATCH_S)

    def _look_for_trouble(self) -> str:
        before, self._trouble = self._trouble, "; ".join(self._troubles())
        if self._trouble and self._trouble.split(":")[0] != before.split(":")[0]:  # without numbers that change
            log.warning("not_ready", reason=self._trouble)
        elif before and not self._trouble:
            log.info("ready_again", after=before)
        return self._trouble

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """The text exposition and its content type."""
        return self._expose(accept)

    def samples(self) -> Iterable[Sample]:
        trouble = self._look_for_trouble()
        if trouble or self.is_ready is not None:
            yield f.READY(float(bool(self.is_ready) and not trouble))
        if self.is_ready is not None:
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
        failing = self._background.failing() if self._background is not None else {}
        if failing:
            return f"Tasks that failed lately: {', '.join(sorted(failing))}; the log has the cause"
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
