"""Two-phase acknowledgement on messaging, where there is a Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Protocol

from nexo.assembly.messaging import Messaging
from nexo.config import resolve_redis_url
from nexo.errors import StartupError
from nexo.metrics.exposition import Metrics
from nexo.metrics.families import Sample
from nexo.ports import SendAcceptor


class TwoPhaseRunner(Protocol):
    """What `make_two_phase` returns: see `two_phase/two_phase.py`."""

    acceptor: SendAcceptor

    @property
    def trouble(self) -> str: ...

    def switch(self, share: float, observe: bool) -> None: ...

    def start(self) -> None: ...

    async def stop(self) -> None: ...

    def samples(self) -> Iterable[Sample]: ...


def make_two_phase(
    messaging: Messaging, metrics: Metrics, *, saves: bool, flush: Callable[[], None] | None = None
) -> TwoPhaseRunner | None:
    """Returns the two-phase service; with a Redis also where it is switched off, because entries may be left to be
    saved. `flush` writes the frames that connections got in this turn of the event loop."""
    core, delivery = messaging.core, messaging.delivery
    config, store = core.config, core.store
    url = resolve_redis_url(config)
    if url is None:
        if config.two_phase.enabled or config.two_phase.observe:
            raise StartupError("two_phase.enabled needs a Redis: set redis.url, or switch two-phase off")
        return None
    service = import_module("nexo.two_phase.two_phase").TwoPhaseService(
        config,
        url,
        messages=store.messages,
        owners=store.owners,
        new_ids=store.database.ids,
        teller=delivery,
        deliver=delivery.push_to_connection,
        instance_id=messaging.bus.instance_id,
        saves=saves,
        background=messaging.background,
    )
    metrics.add(service.samples)
    delivery.on_outcome = service.acceptor.settled
    if flush is not None:
        service.acceptor.flush = flush
    core.sending.acceptor = service.acceptor  # switched off it takes nothing
    made: TwoPhaseRunner = service
    return made
