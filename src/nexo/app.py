"""The composition root: the only place that knows which implementation is used for what."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from nexo import __version__
from nexo.api.app import make_api
from nexo.api.site import Site
from nexo.bus.local import LocalBus
from nexo.config import Config, StoreUrl, resolve_data_dir, resolve_redis_url, resolve_store_url
from nexo.errors import StartupError
from nexo.gateway.canary import Canary
from nexo.gateway.gateway import Gateway
from nexo.gateway.server import Server, allow_many_connections, listen
from nexo.logs import set_up_logs
from nexo.metrics.cluster import Cluster
from nexo.metrics.exposition import Metrics
from nexo.metrics.families import Sample
from nexo.metrics.http import HttpMeter
from nexo.metrics.live import Collect, LiveStats
from nexo.metrics.process import ProcessMeter
from nexo.metrics.siblings import Siblings
from nexo.ports import Accepting, Bus, Presence
from nexo.service.accounts import Accounts
from nexo.service.conversations import Conversations
from nexo.service.filter import FilterFile
from nexo.service.groups import Groups
from nexo.service.limits import Limits
from nexo.service.receipts import Acknowledging
from nexo.service.secret import load_secret
from nexo.service.send import Sending
from nexo.store.account_store import SqlAccounts
from nexo.store.current import ensure_current
from nexo.store.failures import telling_failures
from nexo.store.folder import locked_folder
from nexo.store.stores import Store
from nexo.supervisor import Link


class JoinedBus(Bus, Protocol):
    """A bus, and the presence that belongs to it."""

    @property
    def presence(self) -> Presence: ...

    def samples(self) -> Iterable[Sample]: ...

    async def exchange(self, status: bytes) -> dict[str, bytes]: ...


class Core(Struct, frozen=True):
    """The message core: everything Nexo does, before any socket."""

    config: Config
    store: Store
    words: FilterFile
    sending: Sending
    acknowledging: Acknowledging
    conversations: Conversations
    groups: Groups


@asynccontextmanager
async def open_core(config: Config) -> AsyncIterator[Core]:
    """Open the store and the services on it. The embedded default brings its own schema up to date; a
    server database must have been migrated."""
    url = resolve_store_url(config)
    with telling_failures(url):
        await ensure_current(url, config)
    words = FilterFile(Path(config.filter.file) if config.filter.file else None, config.filter.mode)
    store = Store(config, url)
    with telling_failures(url):
        await store.open()
    try:
        groups = Groups(store.groups, config)
        yield Core(
            config=config,
            store=store,
            words=words,
            sending=Sending(store.messages, words, config.send.deadline_ms / 1000),
            acknowledging=Acknowledging(store.messages, store.conversations),
            conversations=Conversations(store.messages, store.conversations, groups),
            groups=groups,
        )
    finally:
        await store.close()


Ready = Callable[[str], Awaitable[None]]


@contextlib.contextmanager
def _alone(config: Config, url: StoreUrl) -> Iterator[None]:
    """The embedded database belongs to one server; a server database to as many as there are."""
    if url.engine == "sqlite":
        with locked_folder(resolve_data_dir(config)):
            yield
    else:
        yield


class Sibling(Struct, frozen=True):
    """One of several processes on a port: its number, and what joins it to the others."""

    number: int
    link: Link
    folder: Path  # where they leave their numbers for each other


async def serve(
    config: Config, log_level: str = "info", ready: Ready | None = None, sibling: Sibling | None = None
) -> None:
    """Run the server until it is told to stop. `ready` gets its address once it listens; without it, it is printed."""
    set_up_logs(log_level, process=None if sibling is None else sibling.number)
    allow_many_connections()
    secret = load_secret(config)
    listener = listen(config.server.host, config.server.port, shared=sibling is not None)
    metrics = Metrics()
    siblings = None if sibling is None else Siblings(sibling.folder, sibling.number, metrics.samples)
    with _alone(config, resolve_store_url(config)):
        async with open_core(config) as core:
            bus = make_bus(config)
            server, accounts, gateway = make_server(core, secret, metrics, bus, siblings)
            server.on_signals(core.words.reload)
            if sibling is not None:
                sibling.link.on_lost(server.stop)
            _calm_collector()
            pipeline = make_pipeline(core, gateway, bus, metrics, saves=config.two_phase.workers)
            try:
                if gateway.neighbours is not None:
                    await bus.start(gateway.neighbours)
                if pipeline is not None:
                    pipeline.start()
                address = address_of(config.server.host, listener.getsockname()[1])
                await server.serve(listener, lambda: ready(address) if ready else _say_where(config, address))
            finally:
                if pipeline is not None:
                    await pipeline.stop()
                if siblings is not None:
                    siblings.stop()
                await bus.stop()
                accounts.close()


async def work(config: Config, log_level: str = "info") -> None:
    """Save what servers have accepted, until told to stop. Nobody connects here."""
    set_up_logs(log_level)
    if resolve_redis_url(config) is None:
        raise StartupError("nexo worker saves what was accepted into Redis: set redis.url, as the servers have it")
    metrics = Metrics()
    with _alone(config, resolve_store_url(config)):
        async with open_core(config) as core:
            bus = make_bus(config)
            _, accounts, gateway = make_server(core, load_secret(config), metrics, bus)
            pipeline = make_pipeline(core, gateway, bus, metrics, saves=True)
            assert pipeline is not None
            assert gateway.neighbours is not None
            stopped = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stopped.set)
            try:
                await bus.start(gateway.neighbours)
                pipeline.start()
                sys.stdout.write(f"Nexo saves what was accepted, into {resolve_store_url(config).redacted()}\n")
                sys.stdout.flush()
                await stopped.wait()
            finally:
                await pipeline.stop()
                await bus.stop()
                accounts.close()


class Joined(Protocol):
    """What `make_pipeline` gives: see `pipeline/pipeline.py`."""

    accepting: Accepting

    def start(self) -> None: ...

    async def stop(self) -> None: ...

    def samples(self) -> Iterable[Sample]: ...


def make_pipeline(core: Core, gateway: Gateway, bus: JoinedBus, metrics: Metrics, *, saves: bool) -> Joined | None:
    """With a Redis there is one even where two-phase is switched off: something may be left to be saved."""
    config, store = core.config, core.store
    url = resolve_redis_url(config)
    if url is None:
        if config.two_phase.enabled:
            raise StartupError("two_phase.enabled needs a Redis: set redis.url, or switch two-phase off")
        return None
    pipeline: Joined = import_module("nexo.pipeline.pipeline").Pipeline(
        config,
        url,
        messages=store.messages,
        owners=store.owners,
        new_ids=store.database.ids,
        teller=gateway,
        instance_id=bus.instance_id,
        saves=saves,
    )
    metrics.add(pipeline.samples)
    if config.two_phase.enabled:
        core.sending.accepting = pipeline.accepting
    return pipeline


def _calm_collector() -> None:
    """What exists now stays: the cycle collector need not look at it, nor run as often as in a script. Nor so rarely
    that everybody waits for it: 50,000 objects that came meanwhile take it 40 ms, whatever becomes of them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 200, 20)


def make_bus(config: Config) -> JoinedBus:
    url = resolve_redis_url(config)
    if url is None:
        return LocalBus()
    # a tenth of a second that only those wait for who have a Redis
    bus: JoinedBus = import_module("nexo.bus.redis").RedisBus(config, url)
    return bus


def make_server(
    core: Core, secret: str, metrics: Metrics, bus: JoinedBus, siblings: Siblings | None = None
) -> tuple[Server, Accounts, Gateway]:
    """The gateway and the HTTP API on a core, behind one port."""
    config, store = core.config, core.store
    instance = f"{socket.gethostname()}:{os.getpid()}"
    limits = Limits(config, bus.take if bus.is_shared else None)
    accounts = Accounts(SqlAccounts(store.database), config, secret, lambda sids: gateway.sessions_ended(sids))
    gateway = Gateway(
        config,
        messages=store.messages,
        conversation_store=store.conversations,
        group_store=store.groups,
        accounts=accounts,
        sending=core.sending,
        acknowledging=core.acknowledging,
        conversations=core.conversations,
        groups=core.groups,
        limits=limits,
        sends=store.committer.meter,
        bus=bus,
        presence=bus.presence,
        instance=instance,
    )
    http = HttpMeter()
    process = ProcessMeter(__version__, store.url.engine, config.gateway.websocket)
    for measured in (store, gateway, accounts, limits, bus, http, process):
        metrics.add(measured.samples)
    process.start()
    shown = metrics
    if siblings is not None:
        siblings.start()
        shown = Metrics()
        shown.add(siblings.samples)
    live = LiveStats(_by_instance(instance, metrics, siblings, bus))
    live.start()
    api = make_api(
        config=config,
        accounts=accounts,
        sending=core.sending,
        acknowledging=core.acknowledging,
        conversations=core.conversations,
        groups=core.groups,
        publisher=gateway,
        online=gateway,
        limits=limits,
        canary=Canary(gateway, core.sending, store.beat),
        expose=shown.expose,
        meter=http,
        live=live,
        site=Site(config),
    )
    return Server(config, api, gateway), accounts, gateway


def _by_instance(name: str, metrics: Metrics, siblings: Siblings | None, bus: JoinedBus) -> Collect:
    """What the live page adds up: every instance that can be heard, else what is on this machine."""
    if bus.is_shared:
        cluster = Cluster(name, metrics.samples, bus.exchange)
        cluster.start()
        return cluster.samples
    return siblings.by_process if siblings is not None else lambda: {name: metrics.samples()}


def address_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _say_where(config: Config, address: str) -> None:
    announce(config, address)


def announce(config: Config, address: str) -> None:
    """What whoever started the server wants to know first."""
    sys.stdout.write(
        f"Nexo runs at {address} (the API: {address}/docs)\n"
        f"Messages are kept in {resolve_store_url(config).redacted()}\n"
        "Add somebody:  nexo user add NAME\n"
    )
    sys.stdout.flush()
