"""Push on this instance: one instance at a time reads the journal and sends; each may let devices ring."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import structlog

from nexo.background import Background, Running, end_all
from nexo.config import Config
from nexo.core.journal import ConsumerLease
from nexo.core.push import PushTarget
from nexo.core.push_texts import call_payload
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.journal.holding import Holding
from nexo.journal.ports import JournalStore
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports.ringing import Ring
from nexo.push.planner import WAITING_MAX, Planner
from nexo.push.ports import Delivered, OnlineUsers, Provider, PushRequest, PushStore
from nexo.push.sender import NoteSender

log = structlog.get_logger()

CONSUMER = "push"
RINGS_MAX = 200  # calls for which devices are being made to ring
RING_PAUSES_S = (1.0, 3.0, 8.0)  # after a service that failed


class PushService:
    """`owner` names this instance among all that share the database. Implements `ports.ringing.Ringer`."""

    def __init__(
        self,
        store: PushStore,
        journal: JournalStore,
        providers: Sequence[Provider],
        presence: OnlineUsers,
        config: Config,
        background: Background,
        owner: str,
    ) -> None:
        settings = config.push
        self._store = store
        self._background = background
        self._content = settings.content
        self._providers = {provider.kind: provider for provider in providers}
        self._senders = [
            NoteSender(store, provider, presence, settings.content, settings.ttl_h * 3600, settings.connections)
            for provider in providers
        ]
        self._planner = Planner(store, journal, settings.wait_ms, config.journal.poll_ms / 1000, self._wake_senders)
        self._holding = Holding(journal, CONSUMER, owner, config.journal.takeover_s)
        self._is_on = bool(providers) and settings.deliver
        # set by the journal after each commit
        self.woken: Mapping[str, asyncio.Event] = {CONSUMER: self._planner.woken} if self._is_on else {}
        self._running: Running | None = None
        self._rings = 0
        self._rings_dropped = 0

    @property
    def kinds(self) -> list[str]:
        return list(self._providers)

    def start(self) -> None:
        if self._is_on:
            self._running = self._background.serve("push", lambda: self._holding.run(self._work))

    def registered(self) -> None:
        self._planner.registered()

    def _wake_senders(self) -> None:
        for sender in self._senders:
            sender.wake()

    async def _work(self, lease: ConsumerLease) -> None:
        """Make notes and send them. Returns when another instance has taken the lease."""
        tasks = [asyncio.ensure_future(self._planner.run(lease))]
        tasks += [asyncio.ensure_future(sender.run()) for sender in self._senders]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            results = await end_all(tasks)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def stop(self) -> None:
        """Release the lease, so that another instance takes it at once."""
        if self._running is not None:
            await self._running.stop()
        for provider in self._providers.values():
            provider.close()

    # -- calls ---------------------------------------------------------------------------------------------

    async def is_reachable(self, user_id: str) -> bool:
        targets = await self._store.targets_of([user_id])
        return any(target.kind in self._providers for target in targets)

    def ring(self, user_ids: Sequence[str], call: Ring) -> None:
        self._ring(user_ids, call, ended=False)

    def stop_ringing(self, user_ids: Sequence[str], call: Ring) -> None:
        self._ring(user_ids, call, ended=True)

    def _ring(self, user_ids: Sequence[str], call: Ring, *, ended: bool) -> None:
        if not self._providers:
            return
        if self._rings >= RINGS_MAX:
            self._rings_dropped += 1
            return
        self._rings += 1
        self._background.start("push_ring", self._ring_all(list(user_ids), call, ended))

    async def _ring_all(self, user_ids: list[str], call: Ring, ended: bool) -> None:
        try:
            targets = await self._store.targets_of(user_ids)
            name = await self._store.name_of(call.caller_id)
            await asyncio.gather(*(self._ring_one(target, call, name, ended) for target in targets))
        except NexoError as error:
            log.warning("push_store_failed", kind="call", error=str(error))
        finally:
            self._rings -= 1

    async def _ring_one(self, target: PushTarget, call: Ring, name: str, ended: bool) -> None:
        """Tell one device, again while its service fails and it is still true."""
        provider = self._providers.get(target.kind)
        for pause_s in (*RING_PAUSES_S, None):
            if provider is None or (now_ms() >= call.expires_at and not ended):
                return
            answer = await self._send_ring(provider, target, call, name, ended)
            if answer.is_taken or answer.retry_s is None or pause_s is None:
                return
            await asyncio.sleep(max(pause_s, answer.retry_s))
            if not ended and not await self._store.is_ringing(int(call.call_id)):
                return

    async def _send_ring(self, provider: Provider, target: PushTarget, call: Ring, name: str, ended: bool) -> Delivered:
        at_ms = now_ms()
        ttl_s = max(1, (call.expires_at - at_ms) // 1000)
        payload = call_payload(
            call.call_id,
            call.call_kind,
            (call.caller_id, name),
            call.conversation_id,
            call.expires_at,
            self._content,
            target.lang,
            at_ms,
            ended=ended,
        )
        answer = await provider.send(PushRequest(target, payload, ttl_s, True))
        self._sender_of(target.kind).outcomes.add("rung" if answer.is_taken else "not_rung")
        if answer.is_gone:
            await self._store.remove(target.push_id)
        return answer

    def _sender_of(self, kind: str) -> NoteSender:
        return next(sender for sender in self._senders if sender.kind == kind)

    def samples(self) -> Iterable[Sample]:
        for sender in self._senders:
            yield from sender.samples()
        yield f.PUSH_PLANNED(self._planner.waiting)
        yield f.PUSH_PLANNED_LIMIT(WAITING_MAX)
        yield f.PUSH_FAILURES(self._planner.failures)
        yield f.PUSH_LOST(self._planner.lost_rows)
        yield f.PUSH_RINGS(self._rings)
        yield f.PUSH_RINGS_LIMIT(RINGS_MAX)
        yield f.PUSH_RINGS_DROPPED(self._rings_dropped)
