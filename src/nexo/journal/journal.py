"""The journal on this instance: its consumers, its housekeeping, and the readers with a cursor of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from nexo.background import Background, Running
from nexo.config import Config
from nexo.core.events import Event
from nexo.core.model import CursorChange, Head, Sent
from nexo.errors import NexoError
from nexo.journal.consumer import Consumer, ConsumerLoop
from nexo.journal.erasing import Erasing, ExpiryStore
from nexo.journal.housekeeping import Chore, Housekeeping
from nexo.journal.pollers import Pollers
from nexo.journal.ports import JournalStore
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports import Deletion, GroupChange, MessageEvent, Origin, RecallResult

HOUR_MS = 3_600_000


class Journal:
    """`owner` names this instance among all that share the database."""

    def __init__(self, store: JournalStore, config: Config, background: Background, owner: str) -> None:
        settings = config.journal
        self._store = store
        self._background = background
        self._owner = owner
        self._takeover_s = settings.takeover_s
        self._poll_s = settings.poll_ms / 1000
        self._housekeeping = Housekeeping(store, owner, settings.retention_h * HOUR_MS)
        self.pollers = Pollers(store, self._poll_s, settings.pollers_max)
        self._erasing: Erasing | None = None
        self._woken: dict[str, asyncio.Event] = {}  # by consumer
        # Set after each commit: the events of the consumers, and those of readers with places of their own.
        self.followers: list[Mapping[str, asyncio.Event]] = [self._woken]
        self._loops: dict[str, ConsumerLoop] = {}
        self._running: dict[str, Running] = {}

    def start(self) -> None:
        self._running[""] = self._background.serve("journal_housekeeping", self._housekeeping.run)
        self._running[".pollers"] = self._background.serve("journal_pollers", self.pollers.watch)
        if self._erasing is not None:
            self._running[".erasing"] = self._background.serve("erasing", self._erasing.run)

    def add_chore(self, chore: Chore) -> None:
        """Do a chore of the database on the instance that trims the journal."""
        self._housekeeping.chores.append(chore)

    def erase(self, store: ExpiryStore) -> None:
        """Erase messages whose time is over on this instance, while no other instance does."""
        self._erasing = Erasing(store, self._store, self._owner)

    def add(self, consumer: Consumer) -> None:
        """Run a consumer on this instance while no other instance does."""
        if consumer.name in self._loops:
            raise NexoError("internal_error", f"The consumer {consumer.name} runs already")
        loop = ConsumerLoop(self._store, consumer, self._owner, self._takeover_s, self._poll_s)
        self._loops[consumer.name] = loop
        self._woken[consumer.name] = loop.woken
        self._running[consumer.name] = self._background.serve(f"journal_{consumer.name}", loop.run)

    async def remove(self, name: str) -> None:
        """Stop a consumer on this instance. Its place stays stored."""
        self._loops.pop(name, None)
        self._woken.pop(name, None)
        running = self._running.pop(name, None)
        if running is not None:
            await running.stop()

    def wake(self) -> None:
        """Wake the consumers of this instance after a commit, before their next poll."""
        if self.pollers.count:
            self.pollers.wake()
        for follower in self.followers:
            for woken in follower.values():
                woken.set()

    # -- the publish seam (`ports.CommitListener`): each commit wakes the consumers ----------------------------

    def on_saved(self, origins: Sequence[Origin], outcomes: Sequence[Sent | NexoError]) -> None:
        self.wake()

    def on_group_changed(self, change: GroupChange) -> None:
        self.wake()

    def on_recalled(self, recall: RecallResult) -> None:
        self.wake()

    def on_message_changed(self, change: MessageEvent) -> None:
        self.wake()

    def on_cursors_moved(self, changes: list[CursorChange]) -> None:
        self.wake()

    def on_deleted(self, deletion: Deletion) -> None: ...

    def on_settings_changed(self, user_id: str, heads: list[Head]) -> None: ...

    def on_audience_changed(self, conversation_id: str) -> None: ...

    def on_account_changed(self, user_id: str) -> None:
        self.wake()

    def on_user_event(self, user_ids: Sequence[str], event: Event) -> None:
        self.wake()

    def on_visibility_changed(self, user_id: str) -> None: ...

    def samples(self) -> Iterable[Sample]:
        yield from self._housekeeping.samples()
        yield from self.pollers.samples()
        if self._erasing is not None:
            yield from self._erasing.samples()
        for name, loop in self._loops.items():
            yield f.JOURNAL_ENTRIES(loop.counts.entries, name)
            yield f.JOURNAL_FAILURES(loop.counts.failures, name)
            yield f.JOURNAL_LOST(loop.counts.lost_rows, name)

    async def stop(self) -> None:
        """Release all leases, so that other instances take them at once."""
        self.pollers.stop()
        while self._running:
            _, running = self._running.popitem()
            await running.stop()
        self._loops.clear()
        self._woken.clear()
