"""Watches calls that have not ended: calls that ring too long, calls without participants, and calls that never end.

Every instance does so, because the instance that took a call may be gone; the end is written once, by the first
instance. The instance that took a call looks at the right moment, other instances every few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterable

import structlog

from nexo.background import Background
from nexo.calls.ports import CallStore, Connected
from nexo.config.tree_calls import CallsConfig
from nexo.core.calls import CallState, Ending, OpenCall, UserCall
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports.ringing import Ringer

log = structlog.get_logger()

BUSY_S = 1.0  # between two looks while there are calls
IDLE_S = 3.0
PAGE = 500
LATE_S = 0.02  # a moment after the time, so that one look suffices


class CallWatch:
    def __init__(
        self,
        config: CallsConfig,
        store: CallStore,
        connected: Connected,
        ringer: Ringer,
        ended: Callable[[UserCall], None],
        ring_here: Callable[[OpenCall], Awaitable[None]],
        *,
        is_alone: bool,
    ) -> None:
        """`ring_here` pushes the invitation to the devices that are connected to this instance. `is_alone`: there is no
        other instance, so this one knows when a call begins."""
        self._ring_here = ring_here
        self._is_alone = is_alone
        self._is_lost = False
        self._pushed: set[int] = set()  # calls that ring whose invitation this instance has pushed by itself
        self._gone_ms = config.gone_s * 1000
        self._max_ms = config.max_s * 1000
        self._store = store
        self._connected = connected
        self._ringer = ringer
        self._ended = ended
        self._open = 0
        self._due_at = 0.0
        self._woken = asyncio.Event()

    def start(self, background: Background) -> None:
        background.serve("calls", self.run)

    def lost(self) -> None:
        """Something that other instances published may be missing, invitations included."""
        self._is_lost = True
        self._due_at = 0.0
        self._woken.set()

    def note(self, call_id: int, ring_s: float) -> None:
        """A call has begun on this instance."""
        self._pushed.add(call_id)
        self._due_at = min(self._due_at, asyncio.get_running_loop().time() + min(BUSY_S, ring_s + LATE_S))
        self._woken.set()

    def samples(self) -> Iterable[Sample]:
        yield f.CALLS_OPEN(self._open)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._due_at = math.inf  # a call that begins during the look brings the next one forward
            try:
                wait_s = await self.look()
            except NexoError as error:
                log.warning("calls_not_watched", error=error.name)
                wait_s = BUSY_S
            self._due_at = min(self._due_at, loop.time() + wait_s)
            while (left_s := self._due_at - loop.time()) > 0:
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left_s if left_s < math.inf else None):
                        await self._woken.wait()

    async def look(self) -> float:
        """Look at all calls that have not ended. Returns the seconds until the next look."""
        after, found, wait_ms = 0, 0, math.inf if self._is_alone else IDLE_S * 1000
        is_lost, self._is_lost = self._is_lost, False
        ringing: set[int] = set()
        while True:
            now_ms, page = await self._store.open_calls(after, PAGE)
            if page:
                wait_ms = min(wait_ms, BUSY_S * 1000, await self._judge(now_ms, page, is_lost))
                found += len(page)
                ringing |= {call.call_id for call in page if call.state == CallState.RINGING}
                after = page[-1].call_id
            if len(page) < PAGE:
                break
        self._open = found
        self._pushed &= ringing
        return max(LATE_S, wait_ms / 1000)

    async def _judge(self, now_ms: int, calls: list[OpenCall], is_lost: bool) -> float:
        """End the calls whose time is over. Returns the milliseconds until the next one rings too long. After a loss,
        and while other instances cannot be heard, calls ring here by what the database says."""
        connected = await self._connected.among({name for call in calls for name in (call.caller_id, call.callee_id)})
        next_ms = BUSY_S * 1000
        for call in calls:
            ending = self._over(call, now_ms)
            if ending is not None:
                await self._finish(call.call_id, ending)
                continue
            if call.state == CallState.RINGING:
                next_ms = min(next_ms, call.ring_until - now_ms + LATE_S * 1000)
                if (is_lost or connected is None) and call.call_id not in self._pushed:
                    self._pushed.add(call.call_id)
                    await self._ring_here(call)
            if connected is not None:
                await self._look_for(call, connected, now_ms)
        return next_ms

    def _over(self, call: OpenCall, now_ms: int) -> Ending | None:
        if call.state == CallState.RINGING:
            return Ending.TIME_OUT if now_ms >= call.ring_until else None
        return Ending.TOO_LONG if now_ms - call.answered_at >= self._max_ms else None

    async def _look_for(self, call: OpenCall, connected: set[str], now_ms: int) -> None:
        """Note since when a participant has no connection, and end the call when that is too long."""
        caller_gone_at = 0 if call.caller_id in connected else call.caller_gone_at or now_ms
        callee_gone_at = 0 if call.callee_id in connected else call.callee_gone_at or now_ms
        if callee_gone_at and call.state == CallState.RINGING and await self._ringer.is_reachable(call.callee_id):
            callee_gone_at = 0  # it rings by push
        if caller_gone_at and now_ms - caller_gone_at >= self._gone_ms:
            await self._finish(call.call_id, Ending.CALLER_GONE, caller_gone_at)
        elif callee_gone_at and now_ms - callee_gone_at >= self._gone_ms:
            await self._finish(call.call_id, Ending.CALLEE_GONE, callee_gone_at)
        elif (caller_gone_at, callee_gone_at) != (call.caller_gone_at, call.callee_gone_at):
            await self._store.note_gone(call.call_id, caller_gone_at, callee_gone_at)

    async def _finish(self, call_id: int, ending: Ending, at: int = 0) -> None:
        call = await self._store.finish(call_id, ending, at=at)
        if call is not None:
            log.info("call_ended", call_id=call_id, ending=ending.name.lower())
            self._ended(call)
