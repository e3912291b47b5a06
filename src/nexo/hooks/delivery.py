"""Delivers the journal to one webhook, on the instance that holds its lease.

The place in the journal is saved up to `SAVE_S` after the receiver has taken everything before it; what was taken in
between is delivered again after a crash. Events are read when there is room in the window, so a receiver that is slow
or gone costs a bounded amount of memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence

import msgspec
import structlog

from nexo.config.tree_hooks import HooksConfig
from nexo.core.entry_shapes import event_shape
from nexo.core.hooks import Hook
from nexo.core.journal import ConsumerLease, JournalEntry, JournalPage, Place
from nexo.errors import NexoError
from nexo.hooks.ports import HookStates
from nexo.hooks.posting import HookClient, PostResult
from nexo.hooks.window import RUN_EVENTS, Window, WindowPage, WindowRun, count_of
from nexo.ids import now_ms
from nexo.journal.holding import Holding
from nexo.journal.ports import JournalStore
from nexo.metrics.measures import Tally

log = structlog.get_logger()

PAGE_ENTRIES = 512
SAVE_S = 0.5
READ_EVERY_S = 0.05  # commits in between are read together
SOON_S = 0.05
STALE_S = 5.0  # events that were read earlier are read again before they are repeated: they may have been recalled
NOTE_FAILING_S = 5.0
BUSY_PAUSE_S = 1.0  # after the database has failed
HOUR_S = 3600

_encode = msgspec.json.Encoder().encode


class HookDelivery:
    def __init__(
        self,
        hook: Hook,
        store: JournalStore,
        states: HookStates,
        settings: HooksConfig,
        owner: str,
        takeover_s: float,
        poll_s: float,
    ) -> None:
        self.hook = hook
        self._store = store
        self._states = states
        self._settings = settings
        self._types = hook.types or None
        self._poll_s = poll_s
        self._holding = Holding(store, hook.consumer, owner, takeover_s, from_now=None)
        self.woken = asyncio.Event()
        self._client = HookClient(hook, settings)
        self._window: Window | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._carried_since = self._noted_since = hook.failing_since
        self._noted_at = 0.0
        self._last_failure = hook.reason
        self.events = 0  # that were taken
        self.lost_rows = 0
        self.attempts = Tally({"taken": 0, "refused": 0, "failed": 0})

    @property
    def is_held(self) -> bool:
        return self._window is not None

    @property
    def waiting(self) -> int:
        return self._window.count if self._window is not None else 0

    @property
    def lag_s(self) -> float:
        """Returns the age of the oldest event that was read and not taken."""
        oldest = self._window.oldest_at if self._window is not None else 0
        return max(0.0, (now_ms() - oldest) / 1000) if oldest else 0.0

    async def run(self) -> None:
        try:
            await self._holding.run(self._hold)
        finally:
            self._client.close()

    async def _hold(self, lease: ConsumerLease) -> None:
        if await self._work(lease):
            await asyncio.Event().wait()  # paused: `Hooks` sees it and stops this delivery

    async def _work(self, lease: ConsumerLease) -> bool:
        """Read, send and save. Returns False when another instance has taken the webhook, True when it was given up."""
        place = saved = lease.place
        window = self._window = Window(place)
        saved_at = read_at = 0.0
        try:
            while True:
                self.woken.clear()
                now = time.monotonic()
                page: JournalPage | None = None
                if not window.is_full and now >= read_at + READ_EVERY_S:
                    read_at = now
                    page, place = await self._read(place)
                    if page.place != place:
                        self._add(window, place, page)
                        place = page.place
                        self._send(window)
                    if page.has_more:
                        read_at = 0.0
                if await self._is_given_up(window, lease.place):
                    return True
                if window.place != saved and time.monotonic() >= saved_at + SAVE_S:
                    if not await self._save(lease, window.place):
                        return False
                    saved, saved_at = window.place, time.monotonic()
                await self._wait(self._pause_s(window, page, window.place != saved, saved_at))
                rest_s = read_at + READ_EVERY_S - time.monotonic()
                if rest_s > 0 and not window.is_full:
                    await asyncio.sleep(rest_s)  # however often it is woken meanwhile
        finally:
            self._window = None
            if self._timer is not None:
                self._timer.cancel()
            for task in self._requests:
                task.cancel()
            await asyncio.gather(*self._requests, return_exceptions=True)
            if window.place != saved:
                with contextlib.suppress(NexoError):
                    await self._store.save(lease, window.place)

    # -- reading and saving --------------------------------------------------------------------------------

    async def _read(self, place: Place) -> tuple[JournalPage, Place]:
        """Returns the page after a place, and the place, which moves if it was trimmed."""
        while True:
            try:
                return await self._store.page(place, PAGE_ENTRIES, self._types), place
            except NexoError as error:
                if error.name == "cursor_expired":
                    oldest = await self._store.oldest()
                    self.lost_rows += oldest.row - place.row
                    log.error("hook_events_lost", hook=self.hook.name, rows=oldest.row - place.row)
                    place = oldest
                else:
                    log.warning("journal_not_read", consumer=self.hook.consumer, error=str(error))
                    await asyncio.sleep(BUSY_PAUSE_S)

    def _add(self, window: Window, start: Place, page: JournalPage) -> None:
        made = WindowPage(start, page.place)
        read_at, wants = time.monotonic(), self.hook.wants
        by_key: dict[str, list[JournalEntry]] = {}
        for entry in (
            page.entries if not self.hook.conversations else [one for one in page.entries if wants(one.conversation_id)]
        ):
            key = entry.conversation_id or f"user:{entry.user_id or ''}"
            own = by_key.get(key)
            if own is None:
                by_key[key] = [entry]
            else:
                own.append(entry)
        runs = []
        for key, entries in by_key.items():
            for first in range(0, len(entries), RUN_EVENTS):
                chosen = entries[first : first + RUN_EVENTS]
                text = _encoded(chosen)
                event_ids = [entry.event_id for entry in chosen]
                runs.append(WindowRun(key, chosen[0].at, read_at, made, event_ids, text, len(text)))
        window.add(made, runs)

    async def _save(self, lease: ConsumerLease, place: Place) -> bool:
        while True:
            try:
                return await self._store.save(lease, place)
            except NexoError as error:
                log.warning("journal_place_not_saved", consumer=self.hook.consumer, error=str(error))
                await asyncio.sleep(BUSY_PAUSE_S)

    def _pause_s(self, window: Window, page: JournalPage | None, is_unsaved: bool, saved_at: float) -> float:
        pause_s = self._poll_s
        if page is not None and page.is_waiting:
            pause_s = SOON_S
        elif page is not None and page.has_more and not window.is_full:
            pause_s = 0.0
        if is_unsaved:
            pause_s = min(pause_s, saved_at + SAVE_S - time.monotonic())
        return max(0.0, pause_s)

    async def _wait(self, timeout_s: float) -> None:
        if timeout_s <= 0:
            await asyncio.sleep(0)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.woken.wait()

    # -- sending -------------------------------------------------------------------------------------------

    def _send(self, window: Window) -> None:
        """Start all requests that may be started now."""
        if window is not self._window:
            return
        now = time.monotonic()
        while runs := window.take(now, self._settings.connections):
            task = asyncio.get_running_loop().create_task(self._request(window, runs))
            self._requests.add(task)
            task.add_done_callback(self._requests.discard)
        due_s = window.due_in(now, self._settings.connections)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_s is not None:
            self._timer = asyncio.get_running_loop().call_later(due_s, self._send, window)

    async def _request(self, window: Window, runs: list[WindowRun]) -> None:
        try:
            result = await self._attempt(runs)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("hook_request_failed", hook=self.hook.name)
            result = PostResult(False, 0, f"{type(error).__name__}: {error}")
        was_down = window.is_down
        if result.is_taken:
            self.attempts.add("taken")
            self.events += count_of(runs)
            window.taken(runs)
            if was_down:
                log.info("hook_back", hook=self.hook.name, events=window.count)
        else:
            self.attempts.add("refused" if result.status else "failed")
            window.failed(runs, time.monotonic())
            self._last_failure = result.detail
            if window.is_down and not was_down:
                log.warning("hook_down", hook=self.hook.name, error=result.detail, events=window.count)
        self.woken.set()
        self._send(window)

    async def _attempt(self, runs: list[WindowRun]) -> PostResult:
        if min(run.read_at for run in runs) < time.monotonic() - STALE_S:
            await self._read_again(runs)
        if time.monotonic() >= self._holding.until:
            return PostResult(False, 0, "the lease has ended")
        event_ids = [event_id for run in runs for event_id in run.event_ids]
        return await self._client.post(event_ids, [run.text for run in runs])

    async def _read_again(self, runs: Sequence[WindowRun]) -> None:
        """Renew the data of events that have waited: what was recalled since is blank."""
        found: dict[str, JournalEntry] = {}
        pages = {run.page.start: run.page for run in runs}
        for place, page in pages.items():
            while place < page.end:
                try:
                    again = await self._store.page(place, PAGE_ENTRIES, self._types)
                except NexoError as error:
                    if error.name != "cursor_expired":
                        raise
                    break  # trimmed: they are sent as they were read
                found.update((entry.event_id, entry) for entry in again.entries)
                if again.place == place:
                    break
                place = again.place
        read_at = time.monotonic()
        for run in runs:
            entries = [found[event_id] for event_id in run.event_ids if event_id in found]
            if len(entries) == len(run.event_ids):
                run.text, run.read_at = _encoded(entries), read_at

    # -- giving up -----------------------------------------------------------------------------------------

    async def _is_given_up(self, window: Window, start: Place) -> bool:
        """Note since when the webhook fails, and pause it when that is too long."""
        now = time.monotonic()
        failing = window.failing_since
        since = round(now_ms() - (now - failing) * 1000) if failing else 0
        if window.place != start:
            self._carried_since = 0  # what an earlier delivery could not hand over was taken
        if self._carried_since:
            since = self._carried_since
        try:
            if failing and now_ms() - since >= self._settings.give_up_h * HOUR_S * 1000:
                reason = f"failing for {self._settings.give_up_h} h; the last failure: {self._last_failure}"
                log.error("hook_given_up", hook=self.hook.name, url=self.hook.url, reason=reason)
                await self._states.give_up(self.hook, reason)
                return True
            if bool(since) != bool(self._noted_since) and now - self._noted_at >= NOTE_FAILING_S:
                self._noted_since, self._noted_at = since, now
                await self._states.set_failing(self.hook, since)
        except NexoError as error:
            log.warning("hook_state_not_saved", hook=self.hook.name, error=str(error))
        return False


def _encoded(entries: Iterable[JournalEntry]) -> bytes:
    """Returns the JSON of events, separated by commas."""
    return _encode([event_shape(entry) for entry in entries])[1:-1]
